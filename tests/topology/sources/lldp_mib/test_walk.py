"""Walks of switches: fixtures, rows of any kind, and a comparison with the output of lldpcli."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.golden import Golden
from tests.topology.sources.damage import damaged
from tests.topology.sources.plain import case_id, cases, expected_text
from topology.model.facts import Device, DeviceKind
from topology.model.ids import Id, IdKind
from topology.reports.neighbor_report import build_report
from topology.sources.lldp.lldpcli import parse_neighbors
from topology.sources.lldp_mib.tables import (
    BASE_SPANS,
    CDP_CACHE,
    IF_HIGH_SPEED,
    IF_NAME,
    IF_PHYS_ADDRESS,
    LLDP,
    SYS_NAME,
    V2_SPANS,
    Oid,
    Value,
    WalkRow,
)
from topology.sources.lldp_mib.walk import MAX_NEIGHBORS, MAX_PORTS, parse_snmpwalk_text, parse_walk
from topology.sources.lldp_mib.walk_text import parse_walk_text

REMOTE = (*LLDP, 4, 1, 1)


@pytest.mark.parametrize("path", cases("lldp_mib"), ids=case_id)
def test_it_reads_a_saved_walk_as_expected(path: Path, golden: Golden) -> None:
    device, errors = parse_snmpwalk_text(path.read_bytes(), source=path.name)
    found = {"device": device, "errors": errors}
    golden.check(path.with_name("expected.json"), expected_text(found))


def neighbor_rows(
    index: Oid, *, chassis: tuple[int, bytes], port: tuple[int, bytes], name: bytes = b""
) -> list[WalkRow]:
    cells: list[Value] = [*chassis, *port, b"", name]
    return [((*REMOTE, 4 + at, *index), cell) for at, cell in enumerate(cells)]


def heard(chassis: tuple[int, bytes], port: tuple[int, bytes]) -> tuple[Any, ...]:
    """Return the ids of a neighbor in a walk."""
    device, _ = parse_walk(neighbor_rows((0, 1, 1), chassis=chassis, port=port, name=b"x"))
    assert device is not None
    (neighbor,) = device.ports[0].neighbors
    return neighbor.device_ids, neighbor.port_ids, neighbor.port_name


def shown(chassis: tuple[str, str], port: tuple[str, str]) -> tuple[Any, ...]:
    """Return the ids of a neighbor in the output of lldpcli."""
    sides = {
        "chassis": [{"id": [{"type": chassis[0], "value": chassis[1]}], "name": [{"value": "x"}]}],
        "port": [{"id": [{"type": port[0], "value": port[1]}]}],
    }
    document = {"lldp": [{"interface": [{"name": "swp1", "via": "LLDP", **sides}]}]}
    ((_, (neighbor,)),) = parse_neighbors(json.dumps(document).encode()).ports
    return neighbor.device_ids, neighbor.port_ids, neighbor.port_name


# What lldpd 1.0.16 answered by SNMP and printed as json0 for the same crafted frames.
SAME_FRAME = [
    (
        "macs",
        (4, b"\x02\xaa\x00\x00\x00\x01"),
        (3, b"\x02\xaa\x00\x00\x00\x02"),
        ("mac", "02:aa:00:00:00:01"),
        ("mac", "02:aa:00:00:00:02"),
    ),
    (
        "components",
        (1, b"comp"),
        (2, b"port-component"),
        ("unhandled", "63 6f 6d 70"),
        ("unhandled", "70 6f 72 74 2d 63 6f 6d 70 6f 6e 65 6e 74"),
    ),
    (
        "aliases",
        (2, b"eth99"),
        (1, b"uplink to spine"),
        ("ifalias", "eth99"),
        ("ifalias", "uplink to spine"),
    ),
    (
        "addresses",
        (5, b"\x01\xc0\x00\x02\x05"),
        (4, b"\x01\n\x01\x01\x04"),
        ("ip", "192.0.2.5"),
        ("ip", "10.1.1.4"),
    ),
    (
        "an IPv6 address",
        (5, b"\x02 \x01\r\xb8" + bytes(11) + b"\x05"),
        (6, b"\x01\x02\xaa\xbb"),
        ("ip", "2001:db8::5"),
        ("unhandled", "01 02 aa bb"),
    ),
    ("names", (6, b"mgmt0"), (5, b"swp5"), ("ifname", "mgmt0"), ("ifname", "swp5")),
    (
        "local ids",
        (7, b"local-chassis-77"),
        (7, b"512"),
        ("local", "local-chassis-77"),
        ("local", "512"),
    ),
    ("a short MAC", (4, b"\x01\x02\x03"), (5, b"swp5"), ("mac", "01:02:03"), ("ifname", "swp5")),
    (
        "an address of no family",
        (5, b"cabcd"),
        (5, b"af99"),
        ("ip", "63 61 62 63 64"),
        ("ifname", "af99"),
    ),
]


@pytest.mark.parametrize(
    ("chassis", "port", "shown_chassis", "shown_port"),
    [row[1:] for row in SAME_FRAME],
    ids=[f"for {row[0]}" for row in SAME_FRAME],
)
def test_it_gives_a_neighbor_the_ids_of_lldpcli(
    chassis: tuple[int, bytes],
    port: tuple[int, bytes],
    shown_chassis: tuple[str, str],
    shown_port: tuple[str, str],
) -> None:
    assert heard(chassis, port) == shown(shown_chassis, shown_port)


def test_it_keeps_a_local_id_and_the_mac_in_its_text() -> None:
    ids, _, _ = heard((7, b"A0:29:19:B4:AA:17"), (5, b"eth0"))
    mac = Id(IdKind.CHASSIS_ID, "a0:29:19:b4:aa:17", "mac")
    assert ids == (Id(IdKind.CHASSIS_ID, "A0:29:19:B4:AA:17", "local"), mac)


def test_it_adds_the_polled_address_and_drops_an_address_that_is_not_unique() -> None:
    rows: list[WalkRow] = [((*SYS_NAME, 0), b"leaf01")]
    polled, _ = parse_walk(rows, address="10.0.0.1")
    assert polled is not None
    assert polled.kind is DeviceKind.SWITCH
    assert polled.ids == (Id(IdKind.HOSTNAME, "leaf01"), Id(IdKind.IP, "10.0.0.1"))
    loopback, _ = parse_walk(rows, address="127.0.0.1")
    assert loopback is not None
    assert loopback.ids == (Id(IdKind.HOSTNAME, "leaf01"),)


def test_it_distinguishes_an_empty_walk_from_a_switch_without_neighbors() -> None:
    device, errors = parse_walk([], source="switch 10.0.0.1", address="10.0.0.1")
    assert device is None
    assert [str(one) for one in errors] == [
        "switch 10.0.0.1: no row describes a switch or its neighbors"
    ]
    lonely, problems = parse_walk([((*IF_NAME, 1), b"swp1")])
    assert lonely is not None
    assert [port.name for port in lonely.ports] == ["swp1"]
    assert not problems


def test_it_drops_and_reports_rows_beyond_the_limits_of_a_report() -> None:
    rows: list[WalkRow] = [((*IF_NAME, at), f"swp{at}".encode()) for at in range(MAX_PORTS + 9)]
    rows += [((*IF_PHYS_ADDRESS, at), at.to_bytes(6, "big")) for at in range(MAX_PORTS + 9)]
    for at in range(MAX_NEIGHBORS + 5):
        name = f"node-{at}".encode()
        index = (0, MAX_PORTS + 8, at)
        rows += neighbor_rows(index, chassis=(7, name), port=(5, b"eth0"), name=name)
    device, errors = parse_walk(rows)
    assert device is not None
    assert len(device.ports) == MAX_PORTS
    assert max(len(port.neighbors) for port in device.ports) == MAX_NEIGHBORS
    assert sorted(error.problem for error in errors) == [
        f"4105 ports: those beyond {MAX_PORTS} are dropped",
        f"5 neighbor rows dropped: over {MAX_NEIGHBORS} on one port",
    ]
    assert build_report(device, name="switch-x").device is not None


@pytest.mark.parametrize("mbps", [0, 20_000_000, 2**40, -5])
def test_it_ignores_an_invalid_speed(mbps: int) -> None:
    device, _ = parse_walk([((*IF_NAME, 1), b"swp1"), ((*IF_HIGH_SPEED, 1), mbps)])
    assert device is not None
    assert device.ports[0].rate_bps is None


def test_it_returns_a_repeated_neighbor_once() -> None:
    rows = [
        row
        for at in (1, 2)
        for row in neighbor_rows((0, 1, at), chassis=(4, b"\2\0\0\0\0\1"), port=(5, b"eth0"))
    ]
    device, errors = parse_walk(rows)
    assert device is not None
    assert len(device.ports[0].neighbors) == 1
    assert [error.problem for error in errors] == [
        "1 local ports with neighbors are in no port table, for example 1"
    ]


def test_it_uses_a_nameless_interface_as_the_port_with_its_number() -> None:
    table = (*LLDP, 3, 7, 1)
    rows: list[WalkRow] = [((*IF_PHYS_ADDRESS, 3), b"\x44\x38\x39\0\0\3")]
    rows += [((*table, 2, 3), 5), ((*table, 3, 3), b"swp3"), ((*table, 4, 3), b"")]
    device, _ = parse_walk(rows)
    assert device is not None
    (port,) = device.ports
    assert port.name == "swp3"
    assert Id(IdKind.IFINDEX, "3") in port.ids


def test_it_skips_rows_of_the_cdp_cache_without_a_port() -> None:
    device, errors = parse_walk([((*SYS_NAME, 0), b"leaf"), ((*CDP_CACHE, 6, 5), b"core")])
    assert device is not None
    assert not device.ports
    assert not errors


SPANS = [*BASE_SPANS, *V2_SPANS]
ROOTS = [span.first for span in SPANS] + [span.last for span in SPANS] + [SYS_NAME, (*LLDP, 3, 2)]
OIDS = st.one_of(
    st.builds(
        lambda root, rest: (*root, *rest),
        st.sampled_from(ROOTS),
        st.lists(st.integers(0, 12) | st.integers(-1, 2**40), max_size=9),
    ),
    st.lists(st.integers(), max_size=20).map(tuple),
)
VALUES = st.one_of(
    st.binary(max_size=20),
    st.integers(),
    st.sampled_from([b"", b"\0", b"swp1", b"02:00:00:00:00:01", b"\x02\0\0\0\0\1", 4, 5, 7]),
)


@settings(max_examples=examples(150))
@given(st.lists(st.tuples(OIDS, VALUES), max_size=40), st.text(max_size=8))
@example([((*LLDP, 3, 2, 0), 10**5000), ((*IF_NAME, 10**5000), b"swp1")], "")
def test_it_reads_any_rows_in_any_order_and_never_raises(rows: list[WalkRow], where: str) -> None:
    device, errors = parse_walk(rows, source=where, address=where)
    unique = dict(rows)
    again, _ = parse_walk(list(reversed(unique.items())), source=where, address=where)
    assert device is not None or errors
    assert again == parse_walk(unique.items(), address=where)[0]
    if device is not None:
        read = build_report(device, name="switch-x").device
        assert read is not None
        assert {port.name for port in read.ports} == {port.name for port in device.ports}


@settings(max_examples=examples(150))
@given(damaged(cases("lldp_mib")) | st.binary(max_size=200))
def test_it_never_raises_on_any_text(raw: bytes) -> None:
    rows, errors = parse_walk_text(raw, source="walk")
    assert rows or errors
    device, _ = parse_snmpwalk_text(raw)
    assert device is None or isinstance(device, Device)


@pytest.mark.parametrize("shown", ["01 C0 00 02 0:", "1:c0:0:2:0 ", "01C0000200"])
def test_it_reads_octets_however_they_end(shown: str) -> None:
    rows, errors = parse_walk_text(f".1.3.6.1.2.1.1.9.1.0 = Hex-STRING: {shown}\n".encode())
    is_apart = " " in shown or ":" in shown
    assert [value for _, value in rows] == ([bytes((1, 0xC0, 0, 2, 0))] if is_apart else [])
    assert len(errors) == (not is_apart)


def test_it_counts_bad_lines_beyond_the_first_twenty() -> None:
    text = "".join(f".1.3.6.1.2.1.31.1.1.1.15.{at} = Gauge32: x\n" for at in range(25))
    _, errors = parse_walk_text(text.encode(), source="walk")
    assert len(errors) == 21
    assert str(errors[-1]) == "walk: 5 more bad lines"
