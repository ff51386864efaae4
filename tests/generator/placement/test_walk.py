"""A plain gang is placed in few steps: a reader can follow its request through the modules.

A *return* is a stay in a module that was left before.
"""

from __future__ import annotations

from generator.placement.cluster.snapshot import Snapshot, build_snapshot
from generator.placement.engine import place
from generator.placement.request import PlacementRequest
from tests.generator.placement.documents import racks, request, workers
from tests.repository import ROOT
from tests.walks import walk_of

PACKAGE = "generator.placement."
MAX_STAYS = 20
MAX_RETURNS = 5


def walk_of_gang(snapshot: Snapshot, asked: PlacementRequest) -> list[str]:
    """Return the modules in which a request stays until it is answered, in order."""

    def run() -> None:
        assert place(snapshot, asked, explains=False).is_feasible

    return [module.removeprefix(PACKAGE) for module in walk_of((PACKAGE,), run)]


def plain_walk() -> list[str]:
    """Return the walk of a gang of three pods, beyond one node, in racks of several sizes."""
    return walk_of_gang(build_snapshot(racks(6, 8, 4, 6), {}), request(groups=workers(3)))


def test_a_plain_gang_is_placed_in_few_stays() -> None:
    walk = plain_walk()
    assert len(walk) <= MAX_STAYS
    assert len(walk) - len(set(walk)) <= MAX_RETURNS


def test_the_architecture_page_lists_the_walk() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    listed = text.partition("stays in these modules, in this order:\n```\n")[2].partition("```")[0]
    assert listed.replace("->", " ").split() == plain_walk()
