"""The changes of a fabric for the page: the plan that is held, and the past. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from generator.history.finding_changes import build_fault_key
from generator.history.history_file import FindingLife, Generation
from generator.history.tree_changes import OUTSIDE, PlaceChange, TreePart, compare_trees
from generator.objects.fabric import HeldPlan
from generator.web.page_document import render_finding_row
from generator.web.plan_diagram import build_plan_diagram
from topology.model.errors import show
from topology.model.tree import TopologyTree

MAX_CHANGES: Final = 1000
"""Changes of one step that the page lists."""
MAX_STEPS: Final = 30
_MAX_NAME: Final = 200


class HeldChange(NamedTuple):
    """A plan that is held: the tree that was decided last, and the one that it would write."""

    plan: HeldPlan
    before: TopologyTree
    after: TopologyTree
    command: str
    """Approves the plan."""


class Past(NamedTuple):
    """What the history knows."""

    trees: Sequence[Generation]
    """Newest first."""
    lives: Sequence[FindingLife]
    begin_s: int
    """When the history begins."""


def build_change_view(held: HeldChange | None, past: Past | None) -> dict[str, Any]:
    """Return the changes, ready for JSON."""
    return {
        "held": None if held is None else _render_held(held),
        "isKnown": past is not None,
        "beginS": past.begin_s if past else 0,
        "steps": _render_steps(past.trees) if past else [],
        "began": _list_begins(past) if past else {},
        "gone": [_render_gone(life) for life in past.lives if life.ended_s] if past else [],
    }


def _render_held(held: HeldChange) -> dict[str, Any]:
    """Return a held plan; HyperNodes have neither switches nor nodes outside of every domain."""
    changes = [
        change
        for change in compare_trees(held.before, held.after)
        if change.part is not TreePart.SWITCH and (change.before or change.after)
    ]
    return {
        "plan": held.plan.hash,
        "since": str(held.plan.since),
        "movedNodes": held.plan.moved_nodes,
        "creates": held.plan.creates,
        "updates": held.plan.updates,
        "deletes": held.plan.deletes,
        "command": held.command,
        "drawing": build_plan_diagram(held.before, held.after, changes),
        **_render_changes(changes),
    }


def _render_steps(trees: Sequence[Generation]) -> list[dict[str, Any]]:
    """Return each step from a generation to the next, newest first; the oldest has no changes."""
    rows = []
    for after, before in zip(trees, [*trees[1:], None], strict=False):
        changes = compare_trees(before.tree, after.tree) if before else ()
        rows.append(
            {
                "generation": after.number,
                "atS": after.at_s,
                "nodes": len(after.tree.nodes) + len(after.tree.unplaced),
                "isFirst": before is None,
                **_render_changes(changes),
            }
        )
    return rows[:MAX_STEPS]


def _render_changes(changes: Sequence[PlaceChange]) -> dict[str, Any]:
    return {
        "numChanges": len(changes),
        "changes": [
            [
                change.part.value,
                show(change.name, _MAX_NAME),
                _show_place(change.part, change.before),
                _show_place(change.part, change.after),
            ]
            for change in changes[:MAX_CHANGES]
        ],
    }


def _show_place(part: TreePart, place: str | None) -> str:
    if place is None:
        return "-"
    if place == OUTSIDE:
        return "unplaced" if part is TreePart.NODE else "top"
    return show(place, _MAX_NAME)


def _list_begins(past: Past) -> dict[str, int]:
    """Return when each present finding began, by its fault."""
    return {
        build_fault_key(life.finding): life.began_s for life in past.lives if life.ended_s is None
    }


def _render_gone(life: FindingLife) -> dict[str, Any]:
    row = render_finding_row(life.finding, {})
    return {**row, "beganS": life.began_s, "endedS": life.ended_s}
