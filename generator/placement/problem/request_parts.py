"""Part types and parts: the units that the search counts.

A *part* is what the objective assigns a tier to: a group, or one slice of its last layer. A set of
groups that shares a bound is a part that contains parts. Parts of one type are interchangeable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class PartType(NamedTuple):
    """A class of interchangeable parts."""

    shape: int
    """Index of the pod shape; -1 for a set."""
    size: int
    """Pods, including those of inner parts."""
    max_tier: int
    """Highest tier at which such a part may lie."""
    running_span: tuple[int, int] | None
    """First and last position of the running pods that belong to it."""
    preferred: tuple[int, ...]
    """Preferred tiers."""
    histogram_floor: int
    """Lowest tier that the part counts as in the histogram."""
    owner: int
    """Index of the owning group or set if its running pods make the part distinct, else -1."""
    members: tuple[tuple[PartType, int], ...] = ()
    """For a set: the types of its parts, and the number of each."""


class RequestPart(NamedTuple):
    """One part of the request."""

    part_type: PartType
    group: int
    """Index of its group; -1 for a set."""
    members: tuple[RequestPart, ...] = ()


@dataclass(frozen=True, slots=True)
class PlacedPart:
    """One part of a placement."""

    part_type: PartType
    nodes: list[int]
    """Positions of its pods, sorted; empty for a set."""
    members: tuple[PlacedPart, ...] = ()

    def positions(self) -> list[int]:
        """Return the positions of all its pods, sorted."""
        inner = (node for member in self.members for node in member.positions())
        return sorted([*self.nodes, *inner])


def build_set_type(
    members: Sequence[RequestPart],
    *,
    max_tier: int,
    running_span: tuple[int, int] | None,
    preferred: tuple[int, ...],
    owner: int,
) -> PartType:
    """Return the type of a set of parts; equal sets have equal types in any order."""
    counted = Counter(member.part_type for member in members)
    return PartType(
        shape=-1,
        size=sum(part_type.size * count for part_type, count in counted.items()),
        max_tier=max_tier,
        running_span=running_span,
        preferred=preferred,
        histogram_floor=0,
        owner=owner,
        members=tuple(sorted(counted.items(), key=lambda entry: type_sort_key(entry[0]))),
    )


def type_sort_key(part_type: PartType) -> tuple[object, ...]:
    """Return the sort key of a type; inner types of equal sets have equal keys."""
    return (
        part_type.shape,
        part_type.size,
        part_type.max_tier,
        part_type.owner,
        part_type.running_span or (),
        part_type.preferred,
        part_type.histogram_floor,
        tuple((type_sort_key(inner), count) for inner, count in part_type.members),
    )


def all_types(kinds: Iterable[PartType]) -> list[PartType]:
    """Return the types and their inner types, once each, inner types first."""
    types: dict[PartType, None] = {}
    for part_type in kinds:
        for inner in all_types(member for member, _ in part_type.members):
            types.setdefault(inner)
        types.setdefault(part_type)
    return list(types)


def assign_parts(
    num_groups: int, parts: Sequence[RequestPart], placed: Iterable[PlacedPart]
) -> tuple[tuple[int, ...], ...]:
    """Assign placed parts to groups: in tree order, whole slices before a short one."""
    pods: list[list[int]] = [[] for _ in range(num_groups)]
    _assign(pods, parts, placed)
    return tuple(tuple(row) for row in pods)


def _assign(
    pods: list[list[int]], parts: Iterable[RequestPart], placed_parts: Iterable[PlacedPart]
) -> None:
    available: dict[PartType, list[PlacedPart]] = {}
    for placed in sorted(placed_parts, key=PlacedPart.positions, reverse=True):
        available.setdefault(placed.part_type, []).append(placed)
    for part in parts:
        placed = available[part.part_type].pop()
        if part.group >= 0:
            pods[part.group] += placed.nodes
        _assign(pods, part.members, placed.members)
