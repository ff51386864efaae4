"""What differs between two trees: nodes, switches and domains that came, went or moved. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import StrEnum
from typing import Any, Final, NamedTuple

from topology.model.errors import EXCERPT_CHARS, show
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
    former_name: str | None = None
    """The name that a renamed domain had; None: it has had this name before, or is no domain."""


class ChangeCounts(NamedTuple):
    """How many parts of one kind came, went, moved and were renamed; one may have done both."""

    added: int = 0
    removed: int = 0
    moved: int = 0
    renamed: int = 0


def compare_trees(before: TopologyTree, after: TopologyTree) -> tuple[PlaceChange, ...]:
    """Return the changes by part and name, domains first; none if the trees agree.

    A domain that kept its tier and all its nodes is the same domain under a new name, so what is
    in it has not moved. The margins of domains and the reasons of unplaced nodes do not count.
    Cost: O(nodes x tiers + domains).
    """
    return _compare(before, after, _find_new_names(before, after))


def compare_names(before: TopologyTree, after: TopologyTree) -> tuple[PlaceChange, ...]:
    """Return the changes as `compare_trees`, but a domain with a new name is a new domain.

    So are HyperNodes: their names are all that a scheduler knows of them.
    """
    return _compare(before, after, {})


def _find_new_names(before: TopologyTree, after: TopologyTree) -> dict[str, str]:
    """Return the name now of each domain that has a new one, by the name before."""
    gone = _index_nodes(before, {domain.name for domain in after.domains})
    new = _index_nodes(after, {domain.name for domain in before.domains})
    return {gone[nodes]: new[nodes] for nodes in gone.keys() & new.keys()}


def _index_nodes(
    tree: TopologyTree, other: AbstractSet[str]
) -> dict[tuple[int, frozenset[str]], str]:
    """Return the domains whose names another tree lacks, by tier and nodes."""
    return {
        (domain.tier, frozenset(tree.nodes_of(domain))): domain.name
        for domain in tree.domains
        if domain.name not in other and domain.start < domain.stop
    }


def _compare(
    before: TopologyTree, after: TopologyTree, new_names: Mapping[str, str]
) -> tuple[PlaceChange, ...]:
    former = {new: old for old, new in new_names.items()}
    rows = []
    for part in TreePart:
        located = _locate_parts(before, part)
        old = {name: new_names.get(place, place) for name, place in located.items()}
        new, renamed = _locate_parts(after, part), dict[str, str]()
        if part is TreePart.DOMAIN:
            old, renamed = {new_names.get(name, name): place for name, place in old.items()}, former
        changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
        rows += [
            PlaceChange(part, name, old.get(name), new.get(name), renamed.get(name))
            for name in sorted({*changed, *renamed}, key=natural_key)
        ]
    return tuple(rows)


def count_changes(changes: Sequence[PlaceChange], part: TreePart) -> ChangeCounts:
    """Return how many parts of one kind changed."""
    rows = [change for change in changes if change.part is part]
    changed = [change for change in rows if change.before != change.after]
    num_added = sum(change.before is None for change in changed)
    num_removed = sum(change.after is None for change in changed)
    num_moved = len(changed) - num_added - num_removed
    num_renamed = sum(change.former_name is not None for change in rows)
    return ChangeCounts(num_added, num_removed, num_moved, num_renamed)


def render_change(change: PlaceChange) -> dict[str, Any]:
    """Return a change as `toponaut diff --since` prints it."""
    return {
        "part": change.part.value,
        "name": change.name,
        "before": change.before,
        "after": change.after,
        "formerName": change.former_name,
    }


def show_before(change: PlaceChange, limit: int = EXCERPT_CHARS) -> str:
    """Return the place before a change for people; of a renamed domain, its name then."""
    if change.former_name is not None:
        return f"named {show(change.former_name, limit)}"
    return show_place(change.part, change.before, limit)


def show_place(part: TreePart, place: str | None, limit: int = EXCERPT_CHARS) -> str:
    """Return the place before or after a change for people, with at most `limit` characters."""
    if place is None:
        return "-"
    if place == OUTSIDE:
        return "unplaced" if part is TreePart.NODE else "top"
    return show(place, limit)


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
