"""Which devices are switches, where no source says so, and which nodes the hosts are."""

from collections.abc import Sequence

import numpy as np
import pytest

from topology.identity.device_kinds import (
    BY_MAC,
    BY_NAME,
    UNKNOWN_STYLE,
    PeerColumns,
    resolve_kinds,
    resolve_nodes,
)
from topology.identity.device_names import display_names
from topology.identity.device_resolution import Entity
from topology.model.claims import Claim, Origin
from topology.model.facts import Device, DeviceKind
from topology.model.ids import Id, IdKind

STYLES = {"-": UNKNOWN_STYLE, "mac": BY_MAC, "ifname": BY_NAME}


def heard_of(rows: Sequence[tuple[int, int, int, int]]) -> PeerColumns:
    """Return rows of hearer, port, device heard and style as columns."""
    return PeerColumns._make(np.array(rows, np.intp).reshape(-1, 4).T)


def rows(text: str) -> PeerColumns:
    """Return rows of `HEARER HEARD STYLE`, one a line, each on a port of its own."""
    found = [line.split() for line in text.strip().splitlines()]
    return heard_of(
        [
            (int(hearer), port, int(peer), STYLES[style])
            for port, (hearer, peer, style) in enumerate(found)
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
        pytest.param((), "1 0 -\n2 0 -\n3 0 -", {0}, id="three others hear a switch"),
        pytest.param((), "1 0 -\n2 0 -", set(), id="two others hear a host"),
        pytest.param(
            (), FOUR_LEAVES_HEAR_A_HOST, set(), id="one that names its ports by MACs is a host"
        ),
        pytest.param(
            (),
            "1 0 mac\n2 0 mac\n3 0 mac",
            {0},
            id="MACs mean nothing where every device names its ports so",
        ),
        pytest.param((1,), "1 0 -", {0}, id="a device that a node hears alone is a switch"),
        pytest.param(
            (1,), "1 0 ifname\n2 1 mac\n2 3 ifname\n4 3 ifname", {0, 3},
            id="a spine over two leaves is a switch beside known nodes",
        ),
    ],
)  # fmt: skip
def test_it_tells_switches_by_who_hears_them(
    nodes: tuple[int, ...], heard: str, switches: set[int]
) -> None:
    entities = [Entity(node=f"node-{at}" if at in nodes else None) for at in range(5)]
    resolve_kinds(entities, rows(heard))
    found = {at for at, entity in enumerate(entities) if entity.kind is DeviceKind.SWITCH}
    assert found == switches


def test_it_leaves_a_known_kind_alone() -> None:
    entities = [Entity(kind=DeviceKind.SWITCH), Entity(node="node-1")]
    resolve_kinds(entities, heard_of([(1, 0, 0, BY_MAC)]))
    assert [entity.kind for entity in entities] == [DeviceKind.SWITCH, DeviceKind.HOST]


def test_it_takes_what_one_node_hears_beside_another_for_a_host() -> None:
    entities = [Entity(node="n1"), Entity(), Entity(), Entity(node="n3")]
    resolve_kinds(
        entities,
        heard_of([(0, 1, 1, UNKNOWN_STYLE), (0, 1, 2, UNKNOWN_STYLE), (3, 2, 1, UNKNOWN_STYLE)]),
    )
    assert [entity.kind for entity in entities[1:3]] == [DeviceKind.SWITCH, DeviceKind.HOST]


def entity(name: str = "", *, node: str | None = None, origin: Origin | None = None) -> Entity:
    ids = (Id(IdKind.HOSTNAME, name),) if name else ()
    found = Entity(node=node, names=[name] if name else [])
    if origin is not None:
        device = Device(DeviceKind.UNKNOWN, name, ids)
        found.absorb(Claim(device, origin), device)
    return found


def test_it_names_a_host_after_itself_where_nobody_listed_nodes() -> None:
    host = entity("Web-1.example")
    host.kind = DeviceKind.HOST
    assert resolve_nodes([host]) == []
    assert host.node == "web-1.example"


def test_it_names_no_host_that_the_inventory_lacks() -> None:
    host, listed = entity("web-1"), entity("n1", node="n1", origin=Origin.INVENTORY)
    host.kind = DeviceKind.HOST
    assert resolve_nodes([host, listed]) == []
    assert host.node is None


def test_it_says_that_a_host_carries_the_name_of_a_listed_node() -> None:
    double, listed = entity("n1"), entity("n1", node="n1", origin=Origin.INVENTORY)
    double.kind = listed.kind = DeviceKind.HOST
    (finding,) = resolve_nodes([double, listed])
    assert "its own name is 'n1'" in finding.message


def test_it_names_a_host_that_has_nothing_at_all() -> None:
    host = Entity(kind=DeviceKind.HOST)
    (finding,) = resolve_nodes([host])
    assert finding.device == "a host without ids"


def test_it_keeps_display_names_unique_against_hostile_ones() -> None:
    twin = Id(IdKind.MAC, "02:00:00:00:00:01")
    devices = [
        Entity(names=["x"], heard_ids={twin}),
        Entity(names=["x"]),
        Entity(names=[f"x.{twin[1]}"]),
    ]
    names = display_names([*devices, Entity(), Entity()])
    assert len(set(names)) == len(names)
