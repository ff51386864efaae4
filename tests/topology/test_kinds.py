"""Which devices are switches, where no source says so."""

import pytest

from topology.facts import DeviceKind
from topology.identity import Entity
from topology.kinds import Heard, settle_kinds


def rows(text: str) -> list[Heard]:
    """Return rows of `HEARER HEARD STYLE`, one a line, each on a port of its own."""
    found = [line.split() for line in text.strip().splitlines()]
    return [
        Heard(int(hearer), port, int(peer), style if style != "-" else "")
        for port, (hearer, peer, style) in enumerate(found)
    ]


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
    settle_kinds(entities, rows(heard))
    found = {at for at, entity in enumerate(entities) if entity.kind is DeviceKind.SWITCH}
    assert found == switches


def test_it_leaves_a_known_kind_alone() -> None:
    entities = [Entity(kind=DeviceKind.SWITCH), Entity(node="node-1")]
    settle_kinds(entities, [Heard(1, 0, 0, "mac")])
    assert [entity.kind for entity in entities] == [DeviceKind.SWITCH, DeviceKind.HOST]
