"""The numbers of pods per group to try: all that minimums, capacity and slices allow.

Choices are made one by one from the totals that the members of the gang reach.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from generator.placement.budget import Budget
from generator.placement.problem.gang_members import GangMember
from generator.placement.problem.problem import Problem

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
    totals = _reachable_totals(problem)
    while totals.bit_length() > problem.min_pods:
        total = totals.bit_length() - 1
        totals ^= 1 << total
        for pods in _choices_of(problem.gang, total, budget):
            yield tuple(pods.get(group, 0) for group in range(len(problem.request.groups)))


def max_gang_pods(problem: Problem) -> int:
    """Return a bound of the pods of the gang that can be placed; 0 if none can."""
    return max(_reachable_totals(problem).bit_length() - 1, 0)


def _reachable_totals(problem: Problem) -> int:
    """Return the totals, as bits, that members allow and one domain may hold."""
    return problem.gang.totals & ((1 << _max_total_pods(problem) + 1) - 1)


def _max_total_pods(problem: Problem) -> int:
    """Return a bound of the pods that one domain of the highest allowed tier holds.

    A domain holds no more pods than it has slots for a pod that takes the least of every resource
    that any group takes, and no more than the sum of each resource allows if the groups that take
    least are filled first.
    """
    gang = problem.gang
    bounds = [gang.totals.bit_length() - 1]
    if len(problem.request.groups) == 1 or gang.totals & (gang.totals - 1) == 0:
        return bounds[0]
    levels, tier = problem.snapshot.levels, problem.highest_job_tier
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
