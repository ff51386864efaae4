"""Which devices are switches if no source says so, and which nodes the hosts are."""

from collections.abc import Sequence

import numpy as np
import pytest

from topology.identity.claim_facts import ClaimTable, read_facts
from topology.identity.device_kinds import (
    BY_MAC,
    BY_NAME,
    FORWARDS,
    STATION,
    UNKNOWN_STYLE,
    PeerColumns,
    display_names,
    resolve_kinds,
    resolve_nodes,
)
from topology.identity.device_resolution import Entity
from topology.identity.node_names import NodeNames
from topology.model.claims import Claim, Origin
from topology.model.facts import Device, DeviceKind
from topology.model.ids import Id, IdKind

STYLES = {
    "-": UNKNOWN_STYLE,
    "mac": BY_MAC,
    "ifname": BY_NAME,
    "bridge": BY_NAME | FORWARDS,
    "mac-bridge": BY_MAC | FORWARDS,
    "station": BY_NAME | STATION,
    "mac-station": BY_MAC | STATION,
}


def heard_of(rows: Sequence[tuple[int, int, int, int]]) -> PeerColumns:
    """Return rows of device, port, peer and style as columns; each port has its own id."""
    device, port, peer, style = np.array(rows, np.int32).reshape(-1, 4).T
    return PeerColumns(device, port, peer, style.astype(np.uint8), port_key=port.astype(np.int64))


def rows(text: str) -> PeerColumns:
    """Return the columns of lines `DEVICE PEER STYLE`, each with a separate port."""
    fields = [line.split() for line in text.strip().splitlines()]
    return heard_of(
        [
            (int(hearer), port, int(peer), STYLES[style])
            for port, (hearer, peer, style) in enumerate(fields)
        ]
    )


FOUR_LEAVES_HEAR_A_HOST = """
    1 0 mac
    2 0 mac
    3 0 mac
    0 1 ifname
    0 2 ifname
    0 3 ifname
"""


@pytest.mark.parametrize(
    ("nodes", "heard", "switches"),
    [
        pytest.param((), "1 0 -\n2 0 -\n3 0 -", {0}, id="a device with three viewers is a switch"),
        pytest.param((), "1 0 -\n2 0 -", set(), id="a device with two viewers is a host"),
        pytest.param(
            (), FOUR_LEAVES_HEAR_A_HOST, set(), id="a device that sends MACs is a host"
        ),
        pytest.param(
            (),
            "1 0 mac\n2 0 mac\n3 0 mac",
            {0},
            id="MACs are ignored if every device sends MACs",
        ),
        pytest.param((1,), "1 0 -", {0}, id="a device that a node hears alone is a switch"),
        pytest.param(
            (1,), "1 0 ifname\n2 1 mac\n2 3 ifname\n4 3 ifname", {0, 3},
            id="a spine over two leaves is a switch beside known nodes",
        ),
        pytest.param(
            (), "1 0 ifname\n2 0 ifname\n1 3 mac\n2 4 mac", {0},
            id="a spine over two leaves is a switch beside hosts that have one leaf",
        ),
        pytest.param(
            (), "1 0 ifname\n2 0 ifname\n1 3 mac\n2 3 mac", set(),
            id="a device on two leaves may be a host where hosts are on two leaves",
        ),
        pytest.param(
            (), "0 1 mac\n0 2 mac\n0 3 mac\n0 4 ifname", {0},
            id="a device that hears three devices that send MACs is their leaf",
        ),
        pytest.param(
            (), "0 1 mac\n0 2 mac\n0 3 mac", set(),
            id="a device may be a host of leaves that send MACs if no device sends names",
        ),
        pytest.param(
            (), "1 0 station\n2 0 station\n1 3 mac\n2 4 mac", set(),
            id="a station on two leaves is a host",
        ),
        pytest.param(
            (), "1 0 bridge\n1 2 station", {0}, id="a bridge is a switch beside a station"
        ),
        pytest.param(
            (), "1 0 bridge\n1 2 bridge", set(), id="a bridge is a host if all may be bridges"
        ),
        pytest.param(
            (3,), "1 0 bridge", {0}, id="a bridge is a switch beside known nodes"
        ),
        pytest.param(
            (), "1 0 mac-bridge\n1 2 mac-station", set(), id="a bridge that sends MACs is a host"
        ),
        pytest.param(
            (), "1 0 bridge\n1 2 station\n2 0 station", set(), id="a denied bridge is a host"
        ),
        pytest.param(
            (), "1 0 station\n2 0 station", set(), id="a station that two hear is a host"
        ),
        pytest.param(
            (),
            "1 0 station\n2 0 station\n3 0 station",
            {0},
            id="a station that three hear is a switch without a kernel bridge"
        ),
        pytest.param(
            (), "1 0 station\n2 0 station\n3 0 bridge", {0}, id="two words against one bridge"
        ),
        pytest.param(
            (), "1 0 station\n2 0 ifname\n3 0 ifname", {0}, id="one word against three viewers"
        ),
        pytest.param(
            (1,), "1 0 station", {0}, id="a node that hears it is stronger than its own word"
        ),
        pytest.param(
            (0,), "1 0 bridge\n2 0 bridge\n3 0 bridge", set(), id="a node is a host at any word"
        ),
    ],
)  # fmt: skip
def test_it_finds_switches_by_their_viewers(
    nodes: tuple[int, ...], heard: str, switches: set[int]
) -> None:
    entities = [Entity(node=f"node-{number}" if number in nodes else None) for number in range(5)]
    resolve_kinds(entities, rows(heard))
    found_switches = {
        number for number, entity in enumerate(entities) if entity.kind is DeviceKind.SWITCH
    }
    assert found_switches == switches


def test_it_does_not_change_a_known_kind() -> None:
    entities = [Entity(kind=DeviceKind.SWITCH), Entity(node="node-1")]
    resolve_kinds(entities, heard_of([(1, 0, 0, BY_MAC)]))
    assert [entity.kind for entity in entities] == [DeviceKind.SWITCH, DeviceKind.HOST]


def test_it_treats_a_device_on_a_shared_port_with_one_viewer_as_a_host() -> None:
    entities = [Entity(node="n1"), Entity(), Entity(), Entity(node="n3")]
    resolve_kinds(
        entities,
        heard_of([(0, 1, 1, UNKNOWN_STYLE), (0, 1, 2, UNKNOWN_STYLE), (3, 2, 1, UNKNOWN_STYLE)]),
    )
    assert [entity.kind for entity in entities[1:3]] == [DeviceKind.SWITCH, DeviceKind.HOST]


def entity(name: str = "", *, node: str | None = None, origin: Origin | None = None) -> Entity:
    ids = (Id(IdKind.HOSTNAME, name),) if name else ()
    draft = Entity(node=node, names=(name,) if name else ())
    if origin is not None:
        device = Device(DeviceKind.UNKNOWN, name, ids)
        draft.table = ClaimTable([Claim(device, origin)], [read_facts(device)])
        draft.absorb(0)
    return draft


def test_it_uses_a_hosts_own_name_without_an_inventory() -> None:
    host = entity("Web-1.example")
    host.kind = DeviceKind.HOST
    assert resolve_nodes([host], NodeNames()) == []
    assert host.node == "web-1.example"


def test_it_does_not_name_unlisted_hosts() -> None:
    host, listed = entity("web-1"), entity("n1", node="n1", origin=Origin.INVENTORY)
    host.kind = DeviceKind.HOST
    assert resolve_nodes([host, listed], NodeNames()) == []
    assert host.node is None


def test_it_reports_a_host_with_the_name_of_a_listed_node() -> None:
    double, listed = entity("n1"), entity("n1", node="n1", origin=Origin.INVENTORY)
    double.kind = listed.kind = DeviceKind.HOST
    (finding,) = resolve_nodes([double, listed], NodeNames())
    assert "its own name is 'n1'" in finding.message


def test_it_names_a_host_without_name_and_ids() -> None:
    host = Entity(kind=DeviceKind.HOST)
    (finding,) = resolve_nodes([host], NodeNames())
    assert finding.device == "a host without ids"


def test_it_keeps_display_names_unique_despite_hostile_names() -> None:
    twin = Id(IdKind.MAC, "02:00:00:00:00:01")
    devices = [
        Entity(names=("x",), heard_ids=frozenset({twin})),
        Entity(names=("x",)),
        Entity(names=(f"x.{twin[1]}",)),
    ]
    names = display_names([*devices, Entity(), Entity()])
    assert len(set(names)) == len(names)
