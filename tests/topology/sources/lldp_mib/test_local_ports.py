"""The interface of a local LLDP port without a row in a port table, and MACs that switches share.

RFC 4188 (dot1dBasePortIfIndex) and the LLDP-MIB's LldpPortNumber give the two ways of numbering.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pytest

from topology.model.facts import Device
from topology.model.ids import Id, IdKind
from topology.sources.lldp_mib.tables import (
    BRIDGE_PORT_IF_INDEX,
    IF_NAME,
    IF_OPER_STATUS,
    IF_PHYS_ADDRESS,
    IF_TYPE,
    LLDP,
    SYS_NAME,
    Value,
    WalkRow,
)
from topology.sources.lldp_mib.walk import parse_walk

OTHER, ETHERNET, LOOPBACK, VIRTUAL, L2_VLAN, L3_VLAN, LAG = 1, 6, 24, 53, 135, 136, 161
UP, DOWN = 1, 2
Interfaces = Mapping[int, tuple[str, int, int]]
"""By ifIndex: ifName, ifType and ifOperStatus."""


def interface_rows(interfaces: Interfaces) -> Iterator[WalkRow]:
    for if_index, (name, kind, status) in interfaces.items():
        yield (*IF_NAME, if_index), name.encode()
        yield (*IF_TYPE, if_index), kind
        yield (*IF_OPER_STATUS, if_index), status
        yield (*IF_PHYS_ADDRESS, if_index), bytes((0x1C, 0x34, 0xDA, 0, 0, if_index % 256))


def neighbor_rows(numbers: Iterable[int]) -> Iterator[WalkRow]:
    for number in numbers:
        cells: list[Value] = [7, f"host-{number}".encode(), 5, b"eth0", b"", b"host"]
        for column, cell in enumerate(cells, 4):
            yield (*LLDP, 4, 1, 1, column, 0, number, 1), cell


def local_rows(names: Mapping[int, str]) -> Iterator[WalkRow]:
    for number, name in names.items():
        yield (*LLDP, 3, 7, 1, 2, number), 5
        yield (*LLDP, 3, 7, 1, 3, number), name.encode()
        yield (*LLDP, 3, 7, 1, 4, number), b""


def parse(*tables: Iterable[WalkRow]) -> tuple[Device, list[str]]:
    rows = [((*SYS_NAME, 0), b"leaf"), *(row for table in tables for row in table)]
    device, errors = parse_walk(rows)
    assert device is not None
    return device, [error.problem for error in errors]


VLANS_FIRST: Interfaces = {
    1: ("Vlan1", VIRTUAL, UP),
    2: ("Null0", OTHER, UP),
    101: ("Te0/1", ETHERNET, UP),
    102: ("Te0/2", ETHERNET, UP),
}
MANAGEMENT_FIRST: Interfaces = {
    1: ("mgmt0", ETHERNET, UP),
    2: ("swp1", ETHERNET, UP),
    3: ("swp2", ETHERNET, DOWN),
}


@pytest.mark.parametrize(
    ("interfaces", "bridge", "numbers", "found"),
    [
        pytest.param(VLANS_FIRST, {1: 101, 2: 102}, (1, 2), {1: "Te0/1", 2: "Te0/2"}, id="bridge"),
        pytest.param(VLANS_FIRST, {}, (1, 2), {}, id="numbers of a VLAN and of Null0"),
        pytest.param(VLANS_FIRST, {}, (101, 102), {101: "Te0/1", 102: "Te0/2"}, id="ifIndexes"),
        pytest.param(VLANS_FIRST, {}, (2, 101), {}, id="one number of Null0 beside an ifIndex"),
        pytest.param(VLANS_FIRST, {1: 101}, (1, 2), {}, id="bridge ports that lack one"),
        pytest.param(
            VLANS_FIRST,
            {1: 101, 2: 102},
            (101,),
            {101: "Te0/1"},
            id="ifIndexes beside bridge ports",
        ),
        pytest.param(VLANS_FIRST, {1: 1, 2: 2}, (1, 2), {}, id="bridge ports that are VLANs"),
        pytest.param(
            MANAGEMENT_FIRST, {1: 2, 2: 3}, (2,), {2: "swp1"}, id="two ways, of which one is down"
        ),
        pytest.param(MANAGEMENT_FIRST, {1: 2, 2: 1}, (1, 2), {}, id="two ways that are both up"),
        pytest.param(
            MANAGEMENT_FIRST, {1: 1, 2: 2}, (1, 2), {1: "mgmt0", 2: "swp1"}, id="two equal ways"
        ),
        pytest.param(MANAGEMENT_FIRST, {}, (3,), {}, id="an ifIndex that is down"),
        pytest.param(
            {1: ("lo", LOOPBACK, UP), 2: ("eth0", ETHERNET, UP)}, {}, (1,), {}, id="a loopback"
        ),
        pytest.param(
            {1: ("vlan10", L2_VLAN, UP), 2: ("irb.10", L3_VLAN, UP)}, {}, (1, 2), {}, id="VLANs"
        ),
        pytest.param(
            {1: ("Po1", LAG, UP), 2: ("Eth1", ETHERNET, UP)},
            {},
            (1, 2),
            {2: "Eth1"},
            id="a LAG, whose members hear neighbors",
        ),
        pytest.param({}, {1: 101}, (1,), {}, id="no interface at all"),
    ],
)
def test_it_names_the_port_of_a_bare_number_by_its_interface(
    interfaces: Interfaces, bridge: dict[int, int], numbers: tuple[int, ...], found: dict[int, str]
) -> None:
    mapped = [((*BRIDGE_PORT_IF_INDEX, number), index) for number, index in bridge.items()]
    device, problems = parse(interface_rows(interfaces), mapped, neighbor_rows(numbers))
    heard = {
        neighbor.device_ids[0].value: port.name
        for port in device.ports
        for neighbor in port.neighbors
    }
    assert heard == {f"host-{number}": found.get(number, str(number)) for number in numbers}
    unknown = [number for number in numbers if number not in found]
    assert [
        problem.partition(" local ports with neighbors are in no port table")[0]
        for problem in problems
    ] == ([str(len(unknown))] if unknown else [])


@pytest.mark.parametrize(
    ("bridge", "found"),
    [({1: 101, 2: 102}, ["Te0/1", "Te0/2"]), ({}, ["1", "2"])],
    ids=["bridge ports", "none"],
)
def test_it_reads_a_port_table_of_bare_numbers_as_no_names(
    bridge: dict[int, int], found: list[str]
) -> None:
    mapped = [((*BRIDGE_PORT_IF_INDEX, number), index) for number, index in bridge.items()]
    device, _ = parse(
        interface_rows(VLANS_FIRST), mapped, local_rows({1: "1", 2: "2"}), neighbor_rows((1, 2))
    )
    assert [port.name for port in device.ports if port.neighbors] == found


def test_it_prefers_the_port_table_to_bridge_ports() -> None:
    mapped = [((*BRIDGE_PORT_IF_INDEX, 1), 102)]
    device, problems = parse(
        interface_rows(VLANS_FIRST), mapped, local_rows({1: "Te0/1"}), neighbor_rows([1])
    )
    assert [port.name for port in device.ports if port.neighbors] == ["Te0/1"]
    assert not problems


SVI = {40: ("vlan10", ETHERNET, UP)}
PORTS: Interfaces = {3: ("swp1", ETHERNET, UP), 4: ("swp2", ETHERNET, UP)}


@pytest.mark.parametrize(
    ("interfaces", "listed", "heard", "known"),
    [
        pytest.param(
            {**PORTS, **SVI}, {3: "swp1", 4: "swp2"}, (3,), {3, 4}, id="ports of the table"
        ),
        pytest.param({**PORTS, **SVI}, {3: "swp1"}, (3, 4), {3, 4}, id="a port that hears another"),
        pytest.param({**PORTS, **SVI}, {}, (3,), {3, 4, 40}, id="all, without a table"),
        pytest.param({3: ("bridge", L2_VLAN, UP)}, {9: "x"}, (), set(), id="none of a VLAN"),
    ],
)
def test_it_knows_a_device_by_the_macs_of(
    interfaces: Interfaces, listed: dict[int, str], heard: tuple[int, ...], known: set[int]
) -> None:
    device, _ = parse(interface_rows(interfaces), local_rows(listed), neighbor_rows(heard))
    own = {Id(IdKind.MAC, f"1c:34:da:00:00:{number:02x}") for number in known}
    assert {id_ for id_ in device.ids if id_.kind is IdKind.MAC} == own
    of_ports = {id_ for port in device.ports for id_ in port.ids if id_.kind is IdKind.MAC}
    assert of_ports <= own
