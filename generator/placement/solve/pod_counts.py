"""The numbers of pods per group to try: all that minimums, capacity and slices allow.

A member is a group, or a set of members. A member takes part, with a number of pods that it allows,
or is left out, if its set needs only some of its members. Totals of pods are bits of an integer, so
a total that no choice reaches costs nothing, and choices are made one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import lcm
from operator import or_
from typing import NamedTuple

import numpy as np

from generator.placement.problem.problem import Problem
from generator.placement.request import GangGroup
from generator.placement.solve.budget import Budget

EXACT_FLOATS = 1 << 53
"""Below it, a sum of integers in 64-bit floats is exact."""


def pod_count_choices(problem: Problem, budget: Budget) -> Iterator[tuple[int, ...]]:
    """Yield pods per group, most pods in total first; of members that are alike the first get most.

    Cost: one step for each member that is tried with a number of pods.

    Raises:
        BudgetExhausted: the budget ended.
    """
    if problem.stray_tier is not None:
        return
    gang = build_gang_members(problem)
    totals = gang.totals & ((1 << max_total_pods(problem, gang) + 1) - 1)
    min_pods = max(min_total_pods(problem), 1)
    while totals.bit_length() > min_pods:
        total = totals.bit_length() - 1
        totals ^= 1 << total
        for pods in _choices_of(gang, total, budget):
            yield tuple(pods.get(group, 0) for group in range(len(problem.request.groups)))


def min_total_pods(problem: Problem) -> int:
    """Return the minimum number of pods of the whole gang."""
    needed = sum(group.least for group in problem.request.groups if not group.is_optional)
    return max(problem.request.least, needed)


def highest_job_tier(problem: Problem) -> int:
    """Return the highest tier at which the job may lie."""
    return min(problem.job_cap, max(job for job, _ in problem.strategies))


class GangMember(NamedTuple):
    """A group, or a set of members of which some may be left out."""

    group: int
    """Index of the group; -1 for a set."""
    counts: range
    """Numbers of pods of a group that takes part, in order; empty for a set."""
    members: tuple[GangMember, ...]
    """The members of a set, in the order of their first groups."""
    least: int
    """The members of a set that must take part."""
    kind: tuple[object, ...]
    """Members of one kind may be exchanged for each other."""
    totals: int
    """Bit n is set if the member can take part with n pods."""
    later_totals: tuple[tuple[int, ...], ...]
    """Of a set, per member and number of members that must still take part: the totals of it and
    all later members."""

    @property
    def fewest_pods(self) -> int:
        """The fewest pods with which the member takes part; 0 if it cannot."""
        return max((self.totals & -self.totals).bit_length() - 1, 0)


def build_gang_members(problem: Problem) -> GangMember:
    """Return all members of the gang as one set of which none may be left out."""
    request = problem.request
    groups = [_group_member(problem, index) for index in range(len(request.groups))]
    sets: list[GangMember] = []
    for group_set in request.sets:
        members = [groups[group] for group in group_set.groups]
        members += [sets[inner] for inner in group_set.sets]
        # A bound or running pods make a set different from one with the same members.
        bound = (group_set.required, group_set.preferred)
        has_running = bool(problem.running_in_set(len(sets)))
        sets.append(
            _set_of(
                members,
                least=group_set.least,
                kind=(*bound, group_set.name if has_running else ""),
            )
        )
    inner_groups = {group for group_set in request.sets for group in group_set.groups}
    inner_sets = {inner for group_set in request.sets for inner in group_set.sets}
    top = [member for index, member in enumerate(groups) if index not in inner_groups]
    top += [member for index, member in enumerate(sets) if index not in inner_sets]
    return _set_of(top, least=len(top), kind=())


def allows_counts(problem: Problem, counts: Sequence[int]) -> bool:
    """Return whether minimums, slices and members allow these pods per group; O(groups)."""
    is_enough = sum(counts) >= max(min_total_pods(problem), 1)
    return is_enough and _takes_part(build_gang_members(problem), counts)


def _takes_part(member: GangMember, counts: Sequence[int]) -> bool:
    if member.group >= 0:
        return counts[member.group] in member.counts
    are_in = [_takes_part(inner, counts) for inner in member.members]
    are_out = [not any(_pods_of(inner, counts)) for inner in member.members]
    return sum(are_in) >= member.least and all(map(or_, are_in, are_out))


def _pods_of(member: GangMember, counts: Sequence[int]) -> Iterator[int]:
    if member.group >= 0:
        yield counts[member.group]
    for inner in member.members:
        yield from _pods_of(inner, counts)


def max_gang_pods(problem: Problem) -> int:
    """Return a bound of the pods of the gang that can be placed; 0 if none can."""
    gang = build_gang_members(problem)
    allowed = gang.totals & ((1 << max_total_pods(problem, gang) + 1) - 1)
    return max(allowed.bit_length() - 1, 0)


def max_total_pods(problem: Problem, gang: GangMember) -> int:
    """Return a bound of the pods that one domain of the highest allowed tier holds.

    A domain holds no more pods than it has slots for a pod that takes the least of every resource
    that any group takes, and no more than the sum of each resource allows if the groups that take
    least are filled first.
    """
    bounds = [gang.totals.bit_length() - 1]
    if len(problem.request.groups) == 1 or gang.totals & (gang.totals - 1) == 0:
        return bounds[0]
    levels, tier = problem.snapshot.levels, highest_job_tier(problem)
    shapes, free = problem.shapes, problem.snapshot.free
    usable = np.logical_or.reduce([shape.allowed for shape in shapes])
    names = [
        name for name in problem.snapshot.resources if any(s.request.get(name) for s in shapes)
    ]
    smallest = {name: min(shape.request.get(name, 0) for shape in shapes) for name in names}
    if any(smallest.values()):
        slots = problem.snapshot.count_slots(smallest, unbounded=bounds[0])
        slots = np.where(usable, slots, 0)
        bounds.append(int(np.bincount(levels.unit_of_node[tier], weights=slots).max(initial=0)))
    for name in names:
        row = problem.snapshot.resources.index(name)
        per_unit = np.bincount(
            levels.unit_of_node[tier], weights=np.where(usable, np.maximum(free[row], 0), 0)
        )
        quantity = float(per_unit.max(initial=0))
        # A larger sum may be rounded down: raise it a little, so that it stays an upper bound.
        quantity *= 1 if quantity < EXACT_FLOATS else 1 + 1e-9
        bounds.append(_pods_within(problem, name, int(quantity)))
    return min(bounds)


def _pods_within(problem: Problem, resource: str, quantity: int) -> int:
    """Return the most pods that a quantity of a resource allows."""
    num_pods = 0
    rows = [
        (problem.shapes[shape].request.get(resource, 0), group)
        for group, shape in zip(problem.request.groups, problem.shape_of, strict=True)
    ]
    for need, group in rows:
        if not group.is_optional:
            num_pods, quantity = num_pods + group.least, quantity - need * group.least
    for need, group in sorted(rows, key=lambda row: row[0]):
        num_more = group.count - (0 if group.is_optional else group.least)
        num_fitting = num_more if not need else min(num_more, max(quantity, 0) // need)
        num_pods, quantity = num_pods + num_fitting, quantity - need * num_fitting
    return num_pods if quantity >= 0 else 0


def fewest_pods_choice(gang: GangMember, num_groups: int) -> tuple[int, ...]:
    """Return the pods per group if every group and set has the fewest; smallest members first."""
    pods = [0] * num_groups
    add_fewest(gang, pods)
    return tuple(pods)


def add_fewest(member: GangMember, pods: list[int]) -> None:
    """Set the pods of the groups of a member that takes part with the fewest pods."""
    if member.group >= 0:
        pods[member.group] = member.counts[0]
        return
    order = sorted(member.members, key=lambda inner: (not inner.totals, inner.fewest_pods))
    for inner in order[: member.least]:
        add_fewest(inner, pods)


def all_members(member: GangMember) -> Iterator[GangMember]:
    """Yield a member and all members in it, outer members first."""
    yield member
    for inner in member.members:
        yield from all_members(inner)


def _group_member(problem: Problem, index: int) -> GangMember:
    group = problem.request.groups[index]
    counts = _count_range(problem, index)
    is_alike = not (
        problem.running_positions_of[index]
        or problem.request.traffic
        or any(problem.request.roles)
        or problem.request.options.node_weights
    )
    kind = (problem.shape_of[index], replace(group, name="") if is_alike else index)
    return GangMember(index, counts, (), 0, kind, _totals_of(counts), ())


def _set_of(members: Sequence[GangMember], *, least: int, kind: tuple[object, ...]) -> GangMember:
    """Return a set; O(members² × totals / word)."""
    ordered = sorted(members, key=_first_group)
    later = [tuple(int(needed == 0) for needed in range(len(ordered) + 1))]
    for member in reversed(ordered):
        rest = later[-1]
        later.append(
            tuple(
                (rest[needed] if least < len(ordered) else 0)
                | _sums(rest[max(needed - 1, 0)], member)
                for needed in range(least + 1)
            )
        )
    return GangMember(
        group=-1,
        counts=range(0),
        members=tuple(ordered),
        least=least,
        kind=(*kind, least, tuple(member.kind for member in ordered)),
        totals=later[-1][least],
        later_totals=tuple(reversed(later)),
    )


def _first_group(member: GangMember) -> int:
    return member.group if member.group >= 0 else min(map(_first_group, member.members))


def _totals_of(counts: range) -> int:
    """Return the bits of a range, which has no gaps but its step."""
    return _shifted_sums(1, counts) if counts else 0


def _sums(totals: int, member: GangMember) -> int:
    """Return the sums of totals and those of a member."""
    if member.group >= 0:
        return _shifted_sums(totals, member.counts) if member.counts else 0
    found, left = 0, member.totals
    while left:
        lowest = (left & -left).bit_length() - 1
        found |= totals << lowest
        left &= left - 1
    return found


def _shifted_sums(totals: int, counts: range) -> int:
    """Return the sums of totals and a range; O(log counts) shifts."""
    num_covered = 1
    while num_covered < len(counts):
        num_more = min(num_covered, len(counts) - num_covered)
        totals |= totals << (counts.step * num_more)
        num_covered += num_more
    return totals << counts[0]


def _choices_of(member: GangMember, total: int, budget: Budget) -> Iterator[dict[int, int]]:
    """Yield the pods per group with which a member that takes part has this total."""
    if member.group >= 0:
        yield {member.group: total}
        return
    yield from _choices_from(member, 0, (member.least, total), {}, budget)


def _choices_from(
    parent: GangMember,
    index: int,
    needed_and_total: tuple[int, int],
    highest: dict[tuple[object, ...], int],
    budget: Budget,
) -> Iterator[dict[int, int]]:
    """Yield the pods per group of the members of a set from one on.

    Args:
        parent: the set.
        index: of the first member that is not chosen yet.
        needed_and_total: members that must still take part, and pods that are left for them.
        highest: per kind of member, the pods of the last one; no later one gets more.
        budget: pays for each number of pods of a member.
    """
    needed, total = needed_and_total
    if index == len(parent.members):
        yield {}
        return
    member, rest = parent.members[index], parent.later_totals[index + 1]
    still_needed = max(needed - 1, 0)
    limit = min(highest.get(member.kind, total), total)
    left = member.totals & ((1 << limit + 1) - 1) if limit >= 0 else 0
    while left:
        num_pods = left.bit_length() - 1
        left ^= 1 << num_pods
        if not rest[still_needed] >> (total - num_pods) & 1:
            continue
        budget.spend(1)
        others = {**highest, member.kind: num_pods}
        for inner in _choices_of(member, num_pods, budget):
            for pods in _choices_from(
                parent, index + 1, (still_needed, total - num_pods), others, budget
            ):
                yield inner | pods
    if parent.least < len(parent.members) and needed < len(rest) and rest[needed] >> total & 1:
        # The next members of this kind are left out as well.
        others = {**highest, member.kind: -1}
        yield from _choices_from(parent, index + 1, (needed, total), others, budget)


def _count_range(problem: Problem, group_index: int) -> range:
    """Return the allowed numbers of pods of a group: whole slices, unless the gang only grows."""
    group = problem.request.groups[group_index]
    max_pods, step = (
        min(group.count, _max_domain_slots(problem, group_index)),
        pod_count_step(problem, group_index),
    )
    min_pods = max(
        group.least, _min_pods_in_slices(group) - len(problem.running_positions_of[group_index])
    )
    return range(-(-min_pods // step) * step, max_pods + 1, step)


def pod_count_step(problem: Problem, group_index: int) -> int:
    """Return the pods of a group that are placed or left out together: those of its slices."""
    sizes = [
        layer.size for layer in problem.request.groups[group_index].slices if not layer.has_short
    ]
    return 1 if problem.is_growth else lcm(*sizes)


def _min_pods_in_slices(group: GangGroup) -> int:
    return max((layer.least * layer.size for layer in group.slices), default=0)


def _max_domain_slots(problem: Problem, group_index: int) -> int:
    """Return the most pods of a group that one domain of its widest allowed tier holds."""
    tier = min(highest_job_tier(problem), problem.group_cap(group_index))
    return problem.shapes[problem.shape_of[group_index]].max_slots[tier]
