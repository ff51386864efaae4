"""A held plan as a diagram: domains before and after it, and the nodes that go from one to another.

Only domains that the plan touches are drawn, and nodes that go the same way are one flow, so the
diagram of a plan of 100,000 moves is as small as that of one. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from generator.history.tree_changes import OUTSIDE, PlaceChange, TreePart
from topology.model.errors import show
from topology.model.tree import TopologyTree

MAX_BOXES: Final = 24
"""Domains that are drawn before the plan, and after it; those with the most nodes that move."""
NOWHERE: Final = -1
"""The number of no domain: the node is in none, or in one that is not drawn."""
_MAX_NAME: Final = 200

_Flows = Counter[tuple[str, str]]
"""The number of nodes by the domain before and the domain after; `OUTSIDE` is no domain."""


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
