"""Part types and parts: the units that the search counts.

A *part* is what the objective assigns a tier to: a group, or one slice of its last layer. A set of
groups that shares a bound is a part that contains parts. Parts of one type are interchangeable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from generator.placement.groups import GangGroup
from generator.placement.problem.problem import Problem
from generator.placement.problem.rules import SlicePods


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


@dataclass(frozen=True, slots=True)
class PartPlacement:
    """The best placement of a job in one of several units."""

    parts: list[PlacedPart]
    """Parts of the job; inner parts are inside their set."""
    is_proved: bool
    """Whether no better placement exists in these units."""


def build_parts(problem: Problem, counts: tuple[int, ...], max_part_tier: int) -> list[RequestPart]:
    """Return all parts for these pods per group; sets contain their parts."""
    return problem.request.nest(
        [_parts_of(problem, group, counts, max_part_tier) for group in range(len(counts))],
        partial(_wrap_set, problem),
    )


def _parts_of(
    problem: Problem, group: int, counts: tuple[int, ...], part_cap: int
) -> list[RequestPart]:
    count, gang_group = counts[group], problem.request.groups[group]
    slices = problem.indexed_slices(group, count)
    parts = _parts_of_slices(problem, group, slices, part_cap) or [
        RequestPart(_part_type(problem, group, size, part_cap), group)
        for size, _ in problem.split_group(group, count)
    ]
    if gang_group.required is None or not gang_group.slices or len(counts) == 1:
        return parts
    return _wrap_in_tier(
        problem, parts, problem.group_cap(group), problem.own_pods.positions_of[group], group
    )


def _parts_of_slices(
    problem: Problem, group: int, slices: tuple[SlicePods, ...], part_cap: int
) -> list[RequestPart]:
    """Return a part per indexed slice.

    A slice with finer slices becomes a set of their parts, if a tier bounds it.
    """
    parts: list[RequestPart] = []
    for piece in slices:
        cap = problem.root if piece.tier is None else problem.snapshot.levels.height_of(piece.tier)
        if piece.inner_slices:
            inner_parts = _parts_of_slices(problem, group, piece.inner_slices, part_cap)
            parts += _wrap_in_tier(problem, inner_parts, cap, piece.running_positions, group)
            continue
        part_type = _part_type(problem, group, piece.size, min(part_cap, cap))
        owner = group if piece.running_positions else -1
        parts.append(
            RequestPart(part_type._replace(running_span=piece.running_span, owner=owner), group)
        )
    return parts


def _wrap_in_tier(
    problem: Problem, parts: list[RequestPart], cap: int, running: tuple[int, ...], group: int
) -> list[RequestPart]:
    """Return parts of a group, with its running pods, as one part within a tier."""
    if not parts or cap == problem.root:
        return parts
    running_span = (running[0], running[-1]) if running else None
    owner = group if running else -1
    part_type = build_set_type(
        parts, max_tier=cap, running_span=running_span, preferred=(), owner=owner
    )
    return [RequestPart(part_type, -1, tuple(parts))]


def _wrap_set(problem: Problem, set_index: int, members: list[RequestPart]) -> list[RequestPart]:
    """Return the parts as one part if the set has a bound, else unchanged."""
    group_set = problem.request.sets[set_index]
    if not members or not (group_set.required or group_set.preferred):
        return members
    running = problem.running_in_set(set_index)
    part_type = build_set_type(
        members,
        max_tier=problem.snapshot.levels.height_of(group_set.required)
        if group_set.required
        else problem.root,
        running_span=(min(running), max(running)) if running else None,
        preferred=tuple(problem.snapshot.levels.height_of(tier) for tier in group_set.preferred),
        owner=set_index if running else -1,
    )
    return [RequestPart(part_type, -1, tuple(members))]


def _part_type(problem: Problem, index: int, size: int, part_cap: int) -> PartType:
    group = problem.request.groups[index]
    running = () if group.slices else problem.own_pods.positions_of[index]
    return PartType(
        shape=problem.shape_of[index],
        size=size,
        max_tier=min(part_cap, _slice_cap(problem, group, size), problem.group_cap(index)),
        running_span=(min(running), max(running)) if running else None,
        preferred=problem.preferred_tiers_of(index),
        histogram_floor=problem.slice_tier_of(index),
        owner=index if running else -1,
    )


def _slice_cap(problem: Problem, group: GangGroup, size: int) -> int:
    """Return the tier that a slice must stay within.

    There is no such tier if pods already run, because a new slice may complete a running one, nor
    for the pods of a short slice, unless slices are indexed. The rule for units bounds them.
    """
    if not group.slices or group.slices[-1].tier is None or problem.own_pods.positions:
        return problem.root
    layer = group.slices[-1]
    is_unbound = size < layer.size and not layer.is_indexed
    return problem.root if is_unbound else problem.snapshot.levels.height_of(layer.tier)


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
