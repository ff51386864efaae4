"""The results of `parse_ibnetdiscover` for the port rows of -p."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.topology.sources.ibnetdiscover.parsed_dump import parse_ibnetdiscover
from tests.topology.sources.ibnetdiscover.printed_rows import printed
from topology.model.facts import DeviceKind, Medium, PortState
from topology.model.ids import Id, IdKind

LEAF = "00a0000000000001"
PORT = "00b0000000000011"
UP = f"SW  1719 10 0x{LEAF} 4x EDR - CA   134  1 0x{PORT} ( 'leaf1' - 'n1 mlx5_0' )"
DOWN = f"CA   134  1 0x{PORT} 4x EDR - SW  1719 10 0x{LEAF} ( 'n1 mlx5_0' - 'leaf1' )"
FREE = f"SW  1719 37 0x{LEAF} 4x SDR                                    'leaf1'"
RECORD = f"""switchguid=0x{LEAF}
Switch\t36 "S-{LEAF}"\t\t# "leaf1" base port 0 lid 3 lmc 0
[10]\t"H-00b0000000000010"[1](b0000000000011) \t\t# "n1 mlx5_0" lid 9 4xNDR
"""


def test_it_identifies_a_ca_by_the_guid_of_its_port_only() -> None:
    leaf, host = parse_ibnetdiscover(f"{UP}\n{DOWN}\n".encode()).devices
    assert (host.kind, host.name, host.model) == (DeviceKind.HOST, "n1", "n1 mlx5_0")
    assert host.ids == host.ports[0].ids == (Id(IdKind.PORT_GUID, PORT),)
    assert (host.ports[0].name, host.ports[0].rdma_device) == ("mlx5_0/1", "mlx5_0")
    (neighbor,) = leaf.ports[0].neighbors
    assert (neighbor.device_ids, neighbor.port_ids) == (host.ids, host.ports[0].ids)
    assert (neighbor.device_name, neighbor.port_name) == ("n1", "mlx5_0/1")


def test_it_identifies_a_switch_as_records_do() -> None:
    leaf, host = parse_ibnetdiscover(f"{UP}\n{DOWN}\n".encode()).devices
    assert leaf.ids == (Id(IdKind.NODE_GUID, LEAF),)
    assert leaf.ports[0].ids == (Id(IdKind.NODE_GUID, LEAF, "10"),)
    (neighbor,) = host.ports[0].neighbors
    assert (neighbor.device_ids, neighbor.port_ids) == (leaf.ids, leaf.ports[0].ids)
    assert leaf.ports[0].rate_bps == host.ports[0].rate_bps == 100_000_000_000


def test_a_port_without_a_link_has_no_rate() -> None:
    (leaf,) = parse_ibnetdiscover(FREE.encode()).devices
    (port,) = leaf.ports
    assert (port.name, port.medium, port.state) == ("37", Medium.INFINIBAND, PortState.DOWN)
    assert (port.rate_bps, port.neighbors) == (None, ())


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        pytest.param("( 'leaf1' - 'n1 HCA-1' )", ("leaf1", "n1"), id="plain"),
        pytest.param("( ' leaf1 ' - 'n1  mlx5_0 ' )", ("leaf1", "n1"), id="outer blanks"),
        pytest.param("( 'it's' - 'Bob's' )", ("it's", "Bob's"), id="inner quotes"),
        pytest.param("( 'a - b' - 'n - 1' )", ("a - b", "n -"), id="inner dashes"),
        pytest.param("( '' - '' )", ("", ""), id="empty"),
        pytest.param("( 'a' - 'b' - 'n1' )", ("a' - 'b", "n1"), id="a separator in a description"),
    ],
)
def test_it_separates_the_descriptions(texts: str, names: tuple[str, str]) -> None:
    row = UP.partition("( ")[0] + texts
    (leaf,) = parse_ibnetdiscover(row.encode()).devices
    assert (leaf.name, leaf.ports[0].neighbors[0].device_name) == names


@pytest.mark.parametrize("rate", ["4x ???", "?? ???", "?? EDR"])
def test_an_unknown_rate_is_none(rate: str) -> None:
    found = parse_ibnetdiscover(UP.replace("4x EDR", rate).encode())
    assert (found.devices[0].ports[0].rate_bps, found.errors) == (None, ())


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(UP[:60], id="truncated in the far end"),
        pytest.param(UP[:-3], id="truncated in the far description"),
        pytest.param(FREE[:-2], id="truncated in the own description"),
        pytest.param(FREE.replace(LEAF, "0" * 16), id="a GUID that identifies nothing"),
        pytest.param(UP.replace(PORT, "0" * 16), id="a far end with a zero GUID"),
        pytest.param(UP.replace(" 10 ", " 1000 "), id="a port number beyond any switch"),
        pytest.param(UP.replace("4x", "wide"), id="an invalid width"),
    ],
)
def test_it_skips_only_the_bad_row(row: str) -> None:
    found = parse_ibnetdiscover(f"{DOWN}\n{row}\n".encode(), source="rows")
    assert [device.name for device in found.devices] == ["n1"]
    assert [(error.source, error.line) for error in found.errors] == [("rows", 2)]


def test_it_detects_an_aggregation_node_by_its_text() -> None:
    text = "Mellanox Technologies Aggregation Node"
    devices = parse_ibnetdiscover(f"{UP}\n{DOWN}\n".replace("n1 mlx5_0", text).encode()).devices
    assert devices[1].kind is DeviceKind.AGGREGATION
    assert devices[0].ports[0].neighbors[0].kind is DeviceKind.AGGREGATION


@pytest.mark.parametrize("first", ["rows", "record"])
def test_rows_and_records_of_one_switch_add_up(first: str) -> None:
    texts = [f"{FREE}\n{UP}\n", RECORD]
    dump = "\n".join(texts if first == "rows" else reversed(texts))
    found = parse_ibnetdiscover(dump.encode())
    assert [port.name for port in found.devices[0].ports] == ["10", "37"]
    assert found.errors == ()


def test_it_reports_a_row_that_contradicts_a_record() -> None:
    found = parse_ibnetdiscover((RECORD + UP.replace(PORT, "00b0000000000099")).encode())
    assert [error.problem for error in found.errors] == ["port has two peers, the first one counts"]


def test_a_link_counts_over_a_row_without_one_in_any_order() -> None:
    free = FREE.replace(" 37 ", " 10 ")
    both = [parse_ibnetdiscover("\n".join(rows).encode()) for rows in ([UP, free], [free, UP])]
    assert both[0] == both[1]
    assert both[0].devices[0].ports[0].state is PortState.UP


ROWS = st.builds(
    "{} 0 {} 0x{} {} - {} 0 {} 0x{} ( '{}' - '{}' )".format,
    *(
        st.sampled_from(options)
        for options in (
            ("SW", "CA", "RT"),
            (1, 2),
            (LEAF, PORT),
            ("4x NDR", "12x SDR", "4x ???", "?? ???"),
            ("SW", "CA", "RT"),
            (1, 2),
            (LEAF, PORT),
            ("n1 mlx5_0", "Mellanox Technologies Aggregation Node", "x", ""),
            ("n1 mlx5_0", "Mellanox Technologies Aggregation Node", "y", "MF0;z:Q/U2"),
        )
    ),
)


@given(st.lists(st.one_of(ROWS, st.sampled_from((UP, DOWN, FREE))), max_size=6))
def test_rows_survive_rendering(rows: list[str]) -> None:
    devices = parse_ibnetdiscover("\n".join(rows).encode()).devices
    again = parse_ibnetdiscover(printed("\n".join(rows).encode()))
    assert again.devices == devices
    assert not (devices and again.errors)
