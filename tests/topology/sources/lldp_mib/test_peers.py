"""Walks of both ends of a cable: each end's id of the far port is in the tables of the far end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from topology.join.fabric_join import build_fabric
from topology.model.claims import Claim, Origin
from topology.model.facts import Device, PortName
from topology.sources.lldp_mib.tables import IF_NAME, IF_PHYS_ADDRESS, LLDP, Value, WalkRow
from topology.sources.lldp_mib.walk import parse_walk


def mac(switch: int, port: int = 0) -> bytes:
    return bytes((0x44, 0x38, 0x39, 0, switch, port))


def switch(number: int, names: dict[int, str], heard: dict[int, tuple[int, int, bytes]]) -> Device:
    """Return a walked switch.

    Args:
        number: makes its MAC and its name.
        names: ifName by ifIndex.
        heard: by local port (peer's number, subtype of its port id, port id).
    """
    device, errors = parse_walk(rows(number, names, heard))
    assert device is not None
    assert not errors
    return device


def rows(
    number: int, names: dict[int, str], heard: dict[int, tuple[int, int, bytes]]
) -> Iterator[WalkRow]:
    yield (*LLDP, 3, 1, 0), 4
    yield (*LLDP, 3, 2, 0), mac(number)
    yield (*LLDP, 3, 3, 0), f"sw{number}".encode()
    for index, name in names.items():
        yield (*IF_NAME, index), name.encode()
        yield (*IF_PHYS_ADDRESS, index), mac(number, index % 200 + 1)
        yield (*LLDP, 3, 7, 1, 2, index), 7
        yield (*LLDP, 3, 7, 1, 3, index), str(index).encode()
        yield (*LLDP, 3, 7, 1, 4, index), name.encode()
    for index, (peer, subtype, port_id) in heard.items():
        cells: list[Value] = [4, mac(peer), subtype, port_id, b"", f"sw{peer}".encode()]
        for column, cell in enumerate(cells, 4):
            yield (*LLDP, 4, 1, 1, column, 9, index, 1), cell


@pytest.mark.parametrize(
    ("subtype", "port_id"),
    [(7, b"520"), (5, b"ge-0/0/8"), (3, mac(2, 121)), (7, mac(2, 121).hex(":").encode())],
    ids=["its ifIndex as text", "its name", "its MAC", "its MAC as text, called local"],
)
def test_it_joins_the_ends_of_a_cable_by(subtype: int, port_id: bytes) -> None:
    one = switch(1, {512: "ge-0/0/0", 520: "ge-0/0/8"}, {512: (2, subtype, port_id)})
    other = switch(2, {512: "ge-0/0/0", 520: "ge-0/0/8"}, {520: (1, 7, b"512")})
    fabric = build_fabric([Claim(device, Origin.REPORT) for device in (one, other)])
    (link,) = fabric.links
    ends = {fabric.port_name(port) for port in (link.a, link.b)}
    assert ends == {PortName("sw1", "ge-0/0/0"), PortName("sw2", "ge-0/0/8")}
    assert not link.is_one_sided


def test_it_does_not_make_a_neighbor_of_a_stack_that_hears_itself() -> None:
    names = {512: "vcp-0", 513: "vcp-1"}
    stack = switch(1, names, {512: (1, 7, b"513"), 513: (1, 7, b"512")})
    fabric = build_fabric([Claim(stack, Origin.REPORT)])
    assert len(fabric.devices) == 1
