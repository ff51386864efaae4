"""Several dumps become one, whatever their order and form."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.topology.sources.plain import case_id, cases
from topology.facts import DeviceKind, Parsed, PortState
from topology.ids import Id, IdKind
from topology.sources.ibnetdiscover import merge_dumps, parse_ibnetdiscover

LEAF = "00a0000000000001"
HCA = "00b0000000000010"
PORT = "00b0000000000011"
FILES = cases("ibnetdiscover")


def leaf(*ports: str, text: str = "leaf1") -> Parsed:
    head = f'Switch\t65 "S-{LEAF}"\t\t# "{text}" base port 0 lid 3 lmc 0'
    return read(f"sysimgguid=0x{LEAF}", f"switchguid=0x{LEAF}", head, *ports)


def read(*lines: str) -> Parsed:
    return parse_ibnetdiscover("\n".join(lines).encode())


def link(port: int = 7, rate: str = "4xNDR", peer: str = HCA) -> str:
    return f'[{port}]\t"H-{peer}"[1](b0000000000011) \t\t# "n1 mlx5_0" lid 9 {rate}'


@pytest.mark.parametrize("path", FILES, ids=case_id)
def test_one_dump_alone_stays_as_it_is(path: Path) -> None:
    found = parse_ibnetdiscover(path.read_bytes())
    assert merge_dumps([found]) == found


@given(st.lists(st.sampled_from(FILES), min_size=1, max_size=4), st.data())
def test_neither_order_nor_repetition_of_dumps_matters(
    files: list[Path], data: st.DataObject
) -> None:
    dumps = [parse_ibnetdiscover(path.read_bytes()) for path in files]
    shuffled = data.draw(st.permutations([*dumps, dumps[0]]))
    assert merge_dumps(shuffled).devices == merge_dumps(dumps).devices


@given(st.lists(st.sampled_from(FILES), min_size=2, max_size=4))
def test_dumps_can_be_merged_in_steps(files: list[Path]) -> None:
    first, *others = (parse_ibnetdiscover(path.read_bytes()) for path in files)
    stepwise = merge_dumps([first, merge_dumps(others)])
    assert stepwise.devices == merge_dumps([first, *others]).devices


def test_ports_of_two_sweeps_add_up() -> None:
    found = merge_dumps([leaf(link(7)), leaf(link(9))])
    assert [port.name for port in found.devices[0].ports] == ["7", "9"]


def test_the_lower_rate_counts() -> None:
    found = merge_dumps([leaf(link(rate="4xNDR")), leaf(link(rate="4xHDR")), leaf(link(rate=""))])
    assert found.devices[0].ports[0].rate_bps == 200_000_000_000


def test_a_port_on_two_cables_hears_both_ends() -> None:
    found = merge_dumps([leaf(link()), leaf(link(peer="00b0000000000020"))])
    ends = [heard.device_ids[0].value for heard in found.devices[0].ports[0].neighbors]
    assert ends == [HCA, "00b0000000000020"]


def test_a_name_counts_over_the_factory_s() -> None:
    found = merge_dumps([leaf(text="Quantum Mellanox Technologies"), leaf()])
    assert (found.devices[0].name, found.devices[0].model) == ("leaf1", "leaf1")


def test_a_link_counts_over_a_port_row_without_one() -> None:
    row = f"SW  3  7 0x{LEAF} 4x SDR                                    'leaf1'"
    found = merge_dumps([read(row), leaf(link())])
    (port,) = found.devices[0].ports
    assert (port.state, len(port.neighbors)) == (PortState.UP, 1)


def test_a_port_row_takes_the_node_guid_that_a_record_tells() -> None:
    rows = read(
        f"SW  3  7 0x{LEAF} 4x NDR - CA  9  1 0x{PORT} ( 'leaf1' - 'n1 mlx5_0' )",
        f"CA  9  1 0x{PORT} 4x NDR - SW  3  7 0x{LEAF} ( 'n1 mlx5_0' - 'leaf1' )",
    )
    above, host = merge_dumps([rows, leaf(link())]).devices
    assert host.ids == (Id(IdKind.NODE_GUID, HCA),)
    assert host.ports[0].ids == (Id(IdKind.NODE_GUID, HCA, "1"), Id(IdKind.PORT_GUID, PORT))
    (heard,) = above.ports[0].neighbors
    assert (heard.device_ids, heard.port_ids) == (host.ids, host.ports[0].ids)


def test_what_aggregates_in_one_dump_does_in_all() -> None:
    text = "Mellanox Technologies Aggregation Node"
    node = [f'Ca\t1 "H-{HCA}"\t\t# "{text}"', ""]
    whole = read(
        f"switchguid=0x{LEAF}",
        f'Switch\t65 "S-{LEAF}"\t\t# "leaf1"',
        "",
        "devid=0xcf09",
        f"sysimgguid=0x{LEAF}",
        f"caguid=0x{HCA}",
        *node,
    )
    found = merge_dumps([read(f"caguid=0x{HCA}", *node), whole])
    kinds = [device.kind for device in found.devices]
    assert kinds == [DeviceKind.SWITCH, DeviceKind.AGGREGATION]


def test_errors_of_all_dumps_are_kept() -> None:
    found = merge_dumps([leaf("noise"), leaf("[1] cut")])
    assert [error.line for error in found.errors] == [4, 4]
