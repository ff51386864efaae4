"""Where foreign HyperNodes stand in the way of ours.

The scheduler merges HyperNodes of every origin into one forest, so a name or a child that a
foreign object has taken cannot be ours too. Adopting it is a person's decision.
A node may be in a HyperNode of each, but then the scheduler takes either for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

from generator.outputs.hypernode import HyperNode, MemberType
from topology.model.ids import natural_key


class ConflictKind(StrEnum):
    """What a foreign HyperNode has taken."""

    NAME = "name"
    """It has the name of a desired one, which is not written."""
    CHILD = "child"
    """It lists a HyperNode of ours, which gets no second parent and is not deleted."""


class Conflict(NamedTuple):
    """One HyperNode of ours that a foreign one stands in the way of."""

    name: str
    kind: ConflictKind
    foreign: str
    """The name of the foreign HyperNode."""


def find_conflicts(
    desired: Iterable[HyperNode], observed: Iterable[HyperNode]
) -> tuple[Conflict, ...]:
    """Return the conflicts, in natural order of their names."""
    seen = tuple(observed)
    ours = {found.name for found in desired} | {found.name for found in seen if found.is_ours}
    found = [
        conflict
        for other in seen
        if not other.is_ours
        for conflict in (
            Conflict(other.name, ConflictKind.NAME, other.name),
            *(Conflict(child, ConflictKind.CHILD, other.name) for child in other.children),
        )
        if conflict.name in ours
    ]
    return tuple(sorted(set(found), key=lambda row: (natural_key(row.name), row)))


class Overlap(NamedTuple):
    """A foreign HyperNode that has, or may have, nodes of ours beside our own."""

    foreign: str
    nodes: tuple[str, ...]
    """In natural order; empty where it selects by patterns or labels, which are not looked at."""


def find_overlaps(
    desired: Iterable[HyperNode], observed: Iterable[HyperNode]
) -> tuple[Overlap, ...]:
    """Return the overlaps, in natural order of their names.

    Nothing of ours is left out for them: the scheduler takes either HyperNode for such a node, and
    which of the two should go is for people to say.
    """
    ours = {node for found in desired for node in found.nodes}
    overlaps = [
        Overlap(found.name, tuple(sorted(ours.intersection(found.nodes), key=natural_key)))
        for found in observed
        if not found.is_ours
        and ours
        and (found.num_inexact_members or ours.intersection(found.nodes))
    ]
    return tuple(sorted(overlaps, key=lambda row: natural_key(row.foreign)))


def without_conflicts(
    desired: Sequence[HyperNode], observed: Iterable[HyperNode]
) -> dict[str, HyperNode]:
    """Return by name what of the desired set can be written beside the foreign HyperNodes.

    A name in conflict is left out, a child in conflict is listed by no parent of ours, and a
    HyperNode that is left without members goes too. Cost: O(members).
    """
    conflicts = find_conflicts(desired, observed)
    unlisted = {conflict.name for conflict in conflicts}
    gone = {found.name for found in conflicts if found.kind is ConflictKind.NAME}
    wanted: dict[str, HyperNode] = {}
    for found in sorted(desired, key=lambda found: found.tier):
        members = tuple(
            member
            for member in found.members
            if member.type is MemberType.NODE or member.name not in unlisted
        )
        if found.name in gone or not members:
            unlisted.add(found.name)
        elif len(members) < len(found.members):
            wanted[found.name] = replace(found, members=members)
        else:
            wanted[found.name] = found
    return wanted
