"""The results of `parse_ibnetdiscover` for whole records; unusual files are under fixtures/."""

import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from tests.effort import examples
from tests.topology.sources.damage import damaged
from tests.topology.sources.ibnetdiscover.parsed_dump import parse_ibnetdiscover
from tests.topology.sources.ibnetdiscover.printed_rows import printed
from tests.topology.sources.plain import FIXTURES, cases
from topology.model.facts import DeviceKind, Medium, PortState
from topology.model.ids import Id, IdKind

LEAF = "00a0000000000001"
HCA = "00b0000000000010"


def switch(*ports: str, image: str = LEAF) -> str:
    head = f'Switch\t65 "S-{LEAF}"\t\t# "MF0;leaf1:MQM9700/U1" enhanced port 0 lid 3 lmc 0'
    return "\n".join([f"sysimgguid=0x{image}", f"switchguid=0x{LEAF}({LEAF})", head, *ports, ""])


def hca(*ports: str, text: str = "n1 mlx5_0", devid: str = "0x1021", image: str = HCA) -> str:
    own = [f"devid={devid}", f"sysimgguid=0x{image}", f"caguid=0x{HCA}"]
    return "\n".join([*own, f'Ca\t1 "H-{HCA}"\t\t# "{text}"', *ports, ""])


def link(rate: str = "4xNDR") -> str:
    return f'[7]\t"H-{HCA}"[1](b0000000000011) \t\t# "n1 mlx5_0" lid 9 {rate}'


def parsed(text: str) -> tuple[int, ...]:
    found = parse_ibnetdiscover(text.encode())
    return len(found.devices), sum(len(one.ports) for one in found.devices), len(found.errors)


def test_it_returns_a_switch_port_and_its_neighbor() -> None:
    (leaf,) = parse_ibnetdiscover(switch(link()).encode()).devices
    (port,) = leaf.ports
    (neighbor,) = port.neighbors
    assert (leaf.kind, leaf.name, leaf.model) == (
        DeviceKind.SWITCH,
        "leaf1",
        "MF0;leaf1:MQM9700/U1",
    )
    assert leaf.ids == (Id(IdKind.NODE_GUID, LEAF), Id(IdKind.SYSTEM_IMAGE_GUID, LEAF))
    assert (port.name, port.medium, port.state) == ("7", Medium.INFINIBAND, PortState.UP)
    assert port.ids == (Id(IdKind.NODE_GUID, LEAF, "7"),)
    assert (neighbor.device_name, neighbor.port_name) == ("n1", "mlx5_0/1")
    assert neighbor.device_ids == (Id(IdKind.NODE_GUID, HCA),)
    assert neighbor.port_ids == (
        Id(IdKind.NODE_GUID, HCA, "1"),
        Id(IdKind.PORT_GUID, "00b0000000000011"),
    )


def test_both_ends_name_each_other_s_ports_alike() -> None:
    own = f'[1](b0000000000011) \t"S-{LEAF}"[7]\t\t# lid 9 lmc 0 "MF0;leaf1:MQM9700/U1" lid 3 4xNDR'
    leaf, host = parse_ibnetdiscover((switch(link()) + hca(own)).encode()).devices
    (above,), (below,) = leaf.ports[0].neighbors, host.ports[0].neighbors
    assert (above.port_ids, above.port_name) == (host.ports[0].ids, host.ports[0].name)
    assert (below.port_ids, below.port_name) == (leaf.ports[0].ids, leaf.ports[0].name)
    assert (above.device_name, below.device_name) == (host.name, leaf.name)
    assert host.ports[0].rdma_device == "mlx5_0"


@pytest.mark.parametrize(
    ("rate", "bps"),
    [
        ("4xSDR", 10_000_000_000),
        ("1xSDR", 2_500_000_000),
        ("4xFDR", 56_000_000_000),
        ("4xFDR10", 40_000_000_000),
        ("2xHDR", 100_000_000_000),
        ("2xNDR", 200_000_000_000),
        ("1xXDR", 200_000_000_000),
        ("4xXDR", 800_000_000_000),
        ("12xEDR", 300_000_000_000),
        ("4xNDR s=1 w=2 v=8", 400_000_000_000),
        ("", None),
        ("??NDR", None),
        ("4x???", None),
        ("?????", None),
    ],
)
def test_it_multiplies_lanes_and_lane_rate(rate: str, bps: int | None) -> None:
    found = parse_ibnetdiscover(switch(link(rate)).encode())
    assert found.devices[0].ports[0].rate_bps == bps
    assert not found.errors


@pytest.mark.parametrize(
    ("devid", "image", "kind"),
    [
        pytest.param("0xcf09", LEAF, DeviceKind.AGGREGATION, id="device id and the switch's image"),
        pytest.param("0xcf09", HCA, DeviceKind.HOST, id="another image"),
        pytest.param("0x1021", LEAF, DeviceKind.HOST, id="another device id"),
    ],
)
def test_it_detects_aggregation_nodes_by_device_id_and_image(
    devid: str, image: str, kind: DeviceKind
) -> None:
    text = switch(link()) + hca(devid=devid, image=image)
    leaf, node = parse_ibnetdiscover(text.encode()).devices
    assert node.kind is kind
    assert leaf.ports[0].neighbors[0].kind is kind


def test_it_detects_an_aggregation_node_by_its_text_only_without_its_record() -> None:
    text = "Mellanox Technologies Aggregation Node"
    lost = switch(link().replace("n1 mlx5_0", text))
    for dump, kind in ((lost, DeviceKind.AGGREGATION), (lost + hca(text=text), DeviceKind.HOST)):
        devices = parse_ibnetdiscover(dump.encode()).devices
        assert devices[0].ports[0].neighbors[0].kind is kind
        assert parse_ibnetdiscover(printed(dump.encode())).devices == devices


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("src/query_smp.c:196; umad failed", id="a message of a library"),
        pytest.param('[7]\t"H-00b0<redacted>"[1]\t\t# "n1" lid 9 4xNDR', id="a redacted GUID"),
        pytest.param('[7]\t"H-00b000000000001"[1]\t\t# "n1" lid 9 4xNDR', id="15 digits"),
        pytest.param(f'[7]\t"H-{HCA}"[1', id="truncated in the peer's port"),
        pytest.param('[7]\t"H-0000000000000000"[1]', id="a GUID that identifies nothing"),
        pytest.param(f'[]\t"H-{HCA}"[1]', id="no port number"),
        pytest.param("caguid=0xxyz", id="an id line without hex digits"),
        pytest.param("Can't open UMAD port", id="text that starts like a head"),
        pytest.param("...omitted", id="an omission"),
        pytest.param("\x00\x01\x02", id="binary"),
    ],
)
def test_it_skips_only_the_bad_line(line: str) -> None:
    good = f'[8]\t"H-{HCA}"[2]\t\t# "n1 mlx5_0" lid 9 4xNDR'
    found = parse_ibnetdiscover(switch(line, good).encode(), source="dump")
    assert [port.name for port in found.devices[0].ports] == ["8"]
    assert [(error.source, error.line) for error in found.errors] == [("dump", 4)]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("# a comment", id="a comment"),
        pytest.param("DR path slid 0; dlid 0; 0,1 -> new remote switch", id="a line of -s"),
        pytest.param("Chassis 1 (guid 0xb8cffff004016)", id="a chassis of -g"),
        pytest.param("Non-Chassis Nodes", id="a section of -g"),
        pytest.param("root@ufm01:~# sudo ibnetdiscover -C mlx5_0", id="a prompt"),
        pytest.param("[root@ufm01 ~]#", id="a prompt without a command"),
    ],
)
def test_it_skips_lines_that_belong_to_no_record(line: str) -> None:
    assert parsed(switch(link(), line)) == (1, 1, 0)


def test_it_drops_no_port_when_only_the_head_of_its_switch_is_bad() -> None:
    bad_head = switch(link()).replace(f'"S-{LEAF}"', '"S-garbled"')
    found = parse_ibnetdiscover(bad_head.encode())
    assert found.devices[0].ids[0] == Id(IdKind.NODE_GUID, LEAF)
    assert (len(found.devices[0].ports), len(found.errors)) == (1, 1)


def test_it_does_not_add_ports_of_a_lost_record_to_the_previous_one() -> None:
    lost = f'Switch\t65 garbled\n[9]\t"H-{HCA}"[1]\t\t# "n1" lid 9 4xNDR\n'
    assert parsed(switch(link()) + lost) == (1, 1, 2)


def test_it_reports_an_empty_file() -> None:
    assert [error.problem for error in parse_ibnetdiscover(b"").errors] == [
        "no Switch, Ca or Rt record: expected the output of `ibnetdiscover`"
    ]


def test_rows_of_a_list_among_records_are_one_error() -> None:
    row = f'Ca\t : 0x{HCA} ports 1 devid 0x1021 vendid 0x2c9 "n1 mlx5_0"\n'
    assert parsed(row * 3 + switch(link())) == (1, 1, 1)


def test_an_error_names_the_source_and_the_line() -> None:
    raw = switch("[1] cut", link(), "noise").encode()
    errors = parse_ibnetdiscover(raw, source="dump").errors
    assert [(error.source, error.line) for error in errors] == [("dump", 4), ("dump", 6)]


def test_a_later_record_adds_the_image_that_an_earlier_one_lacks() -> None:
    bare = f'switchguid=0x{LEAF}\nSwitch\t65 "S-{LEAF}"\t\t# "leaf1" base port 0\n\n'
    (leaf,) = parse_ibnetdiscover((bare + switch(link())).encode()).devices
    assert Id(IdKind.SYSTEM_IMAGE_GUID, LEAF) in leaf.ids


def test_it_does_not_parse_panel_labels_of_ibdiagnet_as_guids() -> None:
    labelled = link().replace("[7]", "[7](1/1)").replace("lid 9", "lid ")
    dump = f"# Topology file: automatically generated by IBDIAG\n{switch(labelled)}"
    assert parse_ibnetdiscover(dump.encode()) == parse_ibnetdiscover(switch(link()).encode())


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("[1]" + " " * 100_000, id="blanks"),
        pytest.param('[1] "' * 30_000, id="beginnings of port lines"),
        pytest.param("#$" * 50_000 + "x", id="marks of prompts"),
        pytest.param("Switch " + '"' * 100_000, id="quotes"),
        pytest.param("SW" + " " * 100_000, id="blanks of a row"),
        pytest.param(f"SW 1 1 0x{LEAF} 4x EDR - " + "' - '" * 30_000, id="marks within a row"),
        pytest.param(f'[1] "S-{LEAF}"[1] # ' + "lid " * 30_000, id="LIDs without a number"),
    ],
)
def test_a_hostile_line_takes_no_more_than_linear_time(line: str) -> None:
    assert len(parse_ibnetdiscover(line.encode()).errors) <= 2


@given(st.binary(max_size=400))
def test_it_never_raises_on_any_bytes(raw: bytes) -> None:
    assert parse_ibnetdiscover(raw).devices == ()


@limits(max_examples=examples(200))
@given(damaged(cases("ibnetdiscover")))
def test_the_result_of_damaged_files_survives_printing(raw: bytes) -> None:
    devices = parse_ibnetdiscover(raw).devices
    again = parse_ibnetdiscover(printed(raw))
    assert again.devices == devices
    assert not (devices and again.errors)


def test_the_order_of_records_does_not_matter() -> None:
    raw = (FIXTURES / "ibnetdiscover" / "aggregation-node" / "input.txt").read_text()
    records = raw.split("\n\n")
    backwards = "\n\n".join(reversed(records))
    assert parse_ibnetdiscover(raw.encode()) == parse_ibnetdiscover(backwards.encode())
