"""The changes of a fabric for the page: the plan that is held, with a diagram, and the past. Pure.

The diagram has the domains before and after the plan, and the nodes that go from one to another.
Only domains that the plan touches are drawn, and nodes that go the same way are one flow, so the
diagram of a plan of 100,000 moves is as small as that of one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from generator.history.findings import build_fault_key
from generator.history.history_file import FindingLife, Generation
from generator.history.tree_changes import (
    OUTSIDE,
    PlaceChange,
    TreePart,
    compare_names,
    compare_trees,
    show_before,
    show_place,
)
from generator.objects.fabric import HeldPlan
from generator.web.page_document import render_finding_row
from topology.model.errors import show
from topology.model.tree import TopologyTree

MAX_CHANGES: Final = 1000
"""Changes of one step that the page lists."""
MAX_STEPS: Final = 30
_MAX_NAME: Final = 200
MAX_BOXES: Final = 24
"""Domains that are drawn before the plan, and after it; those with the most nodes that move."""
NOWHERE: Final = -1
"""The number of no domain: the node is in none, or in one that is not drawn."""

_Flows = Counter[tuple[str, str]]
"""The number of nodes by the domain before and the domain after; `OUTSIDE` is no domain."""


class HeldChange(NamedTuple):
    """A plan that is held: the tree that was decided last, and the one that it would write."""

    plan: HeldPlan
    before: TopologyTree
    after: TopologyTree
    command: str
    """Approves the plan."""


class TreeHistory(NamedTuple):
    """The trees and findings that the history holds."""

    trees: Sequence[Generation]
    """Newest first."""
    lives: Sequence[FindingLife]
    begin_s: int
    """When the history begins."""


def build_change_view(held: HeldChange | None, past: TreeHistory | None) -> dict[str, Any]:
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
        for change in compare_names(held.before, held.after)
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
                show_before(change, _MAX_NAME),
                show_place(change.part, change.after, _MAX_NAME),
            ]
            for change in changes[:MAX_CHANGES]
        ],
    }


def _list_begins(past: TreeHistory) -> dict[str, int]:
    """Return when each present finding began, by its fault."""
    return {
        build_fault_key(life.finding): life.began_s for life in past.lives if life.ended_s is None
    }


def _render_gone(life: FindingLife) -> dict[str, Any]:
    row = render_finding_row(life.finding, {})
    return {**row, "beganS": life.began_s, "endedS": life.ended_s}


def build_plan_diagram(
    before: TopologyTree, after: TopologyTree, changes: Sequence[PlaceChange]
) -> dict[str, Any]:
    """Return the boxes of both sides, the flows between them, and how many boxes are left out.

    A flow is `[box before, box after, number of nodes]`; a box is `{name, parent, nodes}`.
    """
    flows: _Flows = Counter(
        (change.before or OUTSIDE, change.after or OUTSIDE)
        for change in changes
        if change.part is TreePart.NODE
    )
    moved = [change for change in changes if change.part is TreePart.DOMAIN]
    weights: list[Counter[str]] = [Counter(), Counter()]
    for ends, count in flows.items():
        for weight in weights:
            weight.update({end: count for end in ends if end != OUTSIDE})
    for change in moved:
        weights[0][change.name] += 1
        weights[1][change.name] += 1
    boxes = [
        _list_boxes(tree, weight) for tree, weight in zip((before, after), weights, strict=True)
    ]
    numbers = [{box["name"]: number for number, box in enumerate(side)} for side in boxes]
    return {
        "before": _show_boxes(boxes[0]),
        "after": _show_boxes(boxes[1]),
        "flows": _number_flows(flows, numbers),
        "numOthers": sum(
            max(0, _count_touched(tree, weight) - MAX_BOXES)
            for tree, weight in zip((before, after), weights, strict=True)
        ),
    }


def _list_boxes(tree: TopologyTree, weight: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return the touched domains of a tree that are drawn, in the order of the tree."""
    touched = [domain for domain in tree.domains if weight.get(domain.name)]
    heaviest = sorted(touched, key=lambda domain: -weight[domain.name])[:MAX_BOXES]
    drawn = {domain.name for domain in heaviest}
    return [
        {
            "name": domain.name,
            "parent": "" if domain.parent is None else tree.domains[domain.parent].name,
            "nodes": domain.stop - domain.start,
        }
        for domain in touched
        if domain.name in drawn
    ]


def _count_touched(tree: TopologyTree, weight: Mapping[str, int]) -> int:
    return sum(1 for domain in tree.domains if weight.get(domain.name))


def _show_boxes(boxes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {**box, "name": show(box["name"], _MAX_NAME), "parent": show(box["parent"], _MAX_NAME)}
        for box in boxes
    ]


def _number_flows(flows: _Flows, numbers: Sequence[Mapping[str, int]]) -> list[list[int]]:
    """Return the flows between numbered boxes, largest first; flows of domains not drawn merge."""
    numbered: Counter[tuple[int, int]] = Counter()
    for (source, target), count in flows.items():
        ends = (numbers[0].get(source, NOWHERE), numbers[1].get(target, NOWHERE))
        if ends != (NOWHERE, NOWHERE):
            numbered[ends] += count
    return [[*ends, count] for ends, count in sorted(numbered.items(), key=lambda row: -row[1])]
