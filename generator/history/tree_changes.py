"""What differs between two trees: nodes, switches and domains that came, went or moved. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from topology.model.ids import natural_key
from topology.model.tree import TopologyTree

OUTSIDE: Final = ""
"""The place of a node that is known but in no domain, and of a domain without a parent."""


class TreePart(StrEnum):
    """What a change is about."""

    DOMAIN = "domain"
    SWITCH = "switch"
    NODE = "node"


class PlaceChange(NamedTuple):
    """One part of the tree that has another place than before."""

    part: TreePart
    name: str
    before: str | None
    """The domain around it, or `OUTSIDE`; None: it did not exist."""
    after: str | None
    """As `before`; None: it does not exist any more."""


class ChangeCounts(NamedTuple):
    """How many parts of one kind came, went and moved."""

    added: int = 0
    removed: int = 0
    moved: int = 0


def compare_trees(before: TopologyTree, after: TopologyTree) -> tuple[PlaceChange, ...]:
    """Return the changes by part and name, domains first; none if the trees agree.

    The margins of domains and the reasons of unplaced nodes do not count. Cost: O(nodes + domains).
    """
    rows = []
    for part in TreePart:
        old, new = _locate_parts(before, part), _locate_parts(after, part)
        changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
        rows += [
            PlaceChange(part, name, old.get(name), new.get(name))
            for name in sorted(changed, key=natural_key)
        ]
    return tuple(rows)


def count_changes(changes: Sequence[PlaceChange], part: TreePart) -> ChangeCounts:
    """Return how many parts of one kind changed."""
    kinds = Counter(
        "added" if change.before is None else "removed" if change.after is None else "moved"
        for change in changes
        if change.part is part
    )
    return ChangeCounts(kinds["added"], kinds["removed"], kinds["moved"])


def render_change(change: PlaceChange) -> dict[str, Any]:
    """Return a change as `toponaut diff --since` prints it."""
    return {
        "part": change.part.value,
        "name": change.name,
        "before": change.before,
        "after": change.after,
    }


def _locate_parts(tree: TopologyTree, part: TreePart) -> Mapping[str, str]:
    """Return the name of the domain around each part of one kind."""
    match part:
        case TreePart.NODE:
            return _locate_nodes(tree)
        case TreePart.SWITCH:
            return {switch: domain.name for domain in tree.domains for switch in domain.switches}
        case TreePart.DOMAIN:
            return {
                domain.name: OUTSIDE if domain.parent is None else tree.domains[domain.parent].name
                for domain in tree.domains
            }


def _locate_nodes(tree: TopologyTree) -> dict[str, str]:
    """Return the innermost domain of each node; a domain above tier 1 may have nodes of its own."""
    places = {entry.node: OUTSIDE for entry in tree.unplaced}
    for domain in tree.domains:
        places |= dict.fromkeys(domain.nodes, domain.name)
    return places
