"""The output of `render_ibnetdiscover` for devices that no parser made."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.topology.sources.ibnetdiscover.parsed_dump import parse_ibnetdiscover
from topology.model.errors import InvariantError
from topology.model.facts import Device, DeviceKind, Medium, Neighbor, Port, PortState, Source
from topology.model.ids import Id, IdKind
from topology.sources.infiniband.link_rates import RATES_BPS
from topology.synthetic.sweep_output import render_ibnetdiscover

LEAF = "00a0000000000001"
HCA = "00b0000000000010"

NAMES = st.text(st.characters(categories=("L", "N", "P", "S")), max_size=20)


def end(guid: str, number: int) -> tuple[Id, ...]:
    return (Id(IdKind.NODE_GUID, guid, str(number)),)


def leaf(name: str = "leaf1", *, rate_bps: int | None = 400_000_000_000, model: str = "") -> Device:
    """Return a switch with a host behind its port 7."""
    behind = Neighbor(
        (Id(IdKind.NODE_GUID, HCA),), "n1", end(HCA, 1), "mlx5_0/1", Source.IB, DeviceKind.HOST
    )
    port = Port("7", end(LEAF, 7), Medium.INFINIBAND, PortState.UP, rate_bps, neighbors=(behind,))
    return Device(DeviceKind.SWITCH, name, (Id(IdKind.NODE_GUID, LEAF),), (port,), model)


def test_it_prints_a_switch_as_the_tool_would() -> None:
    assert render_ibnetdiscover([leaf()]).splitlines() == [
        "switchguid=0xa0000000000001",
        f'Switch\t1 "S-{LEAF}"\t\t# "leaf1" base port 0 lid 0 lmc 0',
        f'[7]\t"H-{HCA}"[1]\t\t# "n1 mlx5_0" lid 0 4xNDR',
    ]


def test_it_prints_the_description_if_it_has_the_same_name() -> None:
    assert '# "MF0;leaf1:MQM9700/U1" base' in render_ibnetdiscover(
        [leaf(model="MF0;leaf1:MQM9700/U1")]
    )
    assert '# "leaf1" base' in render_ibnetdiscover([leaf(model="some 64-port switch")])


def test_it_prints_the_own_description_of_a_peer() -> None:
    host = Device(DeviceKind.HOST, "n1", (Id(IdKind.NODE_GUID, HCA),), (), "n1  mlx5_0 ")
    assert f'"H-{HCA}"[1]\t\t# "n1  mlx5_0 " lid' in render_ibnetdiscover([leaf(), host])


@pytest.mark.parametrize("rate_bps", [None, 0, 123])
def test_a_rate_without_a_token_is_omitted(rate_bps: int | None) -> None:
    text = render_ibnetdiscover([leaf(rate_bps=rate_bps)])
    assert text.splitlines()[-1].endswith('"n1 mlx5_0" lid 0')


@pytest.mark.parametrize("rate_bps", sorted(set(RATES_BPS.values())))
def test_every_rate_of_the_tool_survives_rendering(rate_bps: int) -> None:
    text = render_ibnetdiscover([leaf(rate_bps=rate_bps)])
    assert parse_ibnetdiscover(text.encode()).devices[0].ports[0].rate_bps == rate_bps


def test_ports_without_a_known_far_end_are_omitted() -> None:
    unknown = Neighbor((), "n1", (), "", Source.IB)
    ports = (Port("1"), Port("2", end(LEAF, 2)), Port("3", end(LEAF, 3), neighbors=(unknown,)))
    device = Device(DeviceKind.SWITCH, "leaf1", (Id(IdKind.NODE_GUID, LEAF),), ports)
    assert "[" not in render_ibnetdiscover([device])


@pytest.mark.parametrize("guids", [[], [LEAF, HCA]], ids=["none", "two"])
def test_it_refuses_a_device_without_exactly_one_node_guid(guids: list[str]) -> None:
    ids = tuple(Id(IdKind.NODE_GUID, guid) for guid in guids)
    with pytest.raises(InvariantError, match="one node GUID"):
        render_ibnetdiscover([Device(DeviceKind.HOST, "n1", ids)])


@given(NAMES, NAMES)
def test_no_name_damages_its_record(name: str, model: str) -> None:
    (found,) = parse_ibnetdiscover(render_ibnetdiscover([leaf(name, model=model)]).encode()).devices
    assert [port.name for port in found.ports] == ["7"]


def test_a_line_break_in_a_name_starts_no_record() -> None:
    name = f'x\nSwitch\t1 "S-{HCA}"'
    found = parse_ibnetdiscover(render_ibnetdiscover([leaf(name)]).encode())
    assert len(found.devices) == 1
    assert not found.errors
