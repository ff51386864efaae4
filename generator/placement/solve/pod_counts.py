"""The numbers of pods per group to try: all that minimums, capacity and slices allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import gcd, lcm

from generator.placement.problem.problem import Problem
from generator.placement.request import GangGroup
from generator.placement.solve.budget import Budget


def pod_count_choices(problem: Problem, budget: Budget) -> Iterator[tuple[int, ...]]:
    """Yield pods per group, most pods in total first; optional groups take part or are left out.

    Cost: one step for each total that whole slices cannot make up, and for each set of groups left
    out. Raises BudgetExhausted when the budget ends.
    """
    if problem.stray_tier is not None:
        return
    ranges = [
        _count_range(problem, group_index) for group_index in range(len(problem.request.groups))
    ]
    optional = [
        group_index for group_index, group in enumerate(problem.request.groups) if group.is_optional
    ]
    if not all(
        ranges[group_index] for group_index in range(len(ranges)) if group_index not in optional
    ):
        return
    min_pods = max(min_total_pods(problem), 1)
    if len(ranges) == 1 and not optional:
        yield from ((count,) for count in reversed(ranges[0]) if count >= min_pods)
        return
    total = sum(count_range[-1] for count_range in ranges if count_range)
    allowed_ranges = list(_ranges_per_subset(problem, ranges, optional, budget))
    step = gcd(*(count_range.step for count_range in ranges))
    for num_pods in range(total, min_pods - 1, -step if not optional else -1):
        for allowed in allowed_ranges:
            yield from _split_total(num_pods, allowed, budget)


def min_total_pods(problem: Problem) -> int:
    """Return the minimum number of pods of the whole gang."""
    needed = sum(group.least for group in problem.request.groups if not group.is_optional)
    return max(problem.request.least, needed)


def highest_job_tier(problem: Problem) -> int:
    """Return the highest tier at which the job may lie."""
    return min(problem.job_cap, max(job for job, _ in problem.strategies))


def _ranges_per_subset(
    problem: Problem, ranges: Sequence[range], optional: Sequence[int], budget: Budget
) -> Iterator[list[range]]:
    """Yield the ranges per group for each subset of optional groups, largest subset first."""
    for num_away in range(len(optional) + 1):
        for absent in combinations(reversed(optional), num_away):
            if optional:
                budget.spend(1)
            if _is_complete(problem, frozenset(absent)) and all(
                ranges[group_index]
                for group_index in range(len(ranges))
                if group_index not in absent
            ):
                yield [
                    range(1) if group_index in absent else count_range
                    for group_index, count_range in enumerate(ranges)
                ]


def _is_complete(problem: Problem, absent: frozenset[int]) -> bool:
    """Return whether every required set is complete without the absent groups."""
    request = problem.request
    complete: list[bool] = []
    for group_set in request.sets:
        members = [group not in absent for group in group_set.groups]
        members += [complete[inner] for inner in group_set.sets]
        complete.append(sum(members) >= group_set.least)
    inner_sets = {inner for group_set in request.sets for inner in group_set.sets}
    return all(is_done for index, is_done in enumerate(complete) if index not in inner_sets)


def _count_range(problem: Problem, group_index: int) -> range:
    """Return the allowed numbers of pods of a group: whole slices, unless the gang only grows."""
    group = problem.request.groups[group_index]
    max_pods, step = (
        min(group.count, _max_domain_slots(problem, problem.shape_of[group_index])),
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


def _split_total(total: int, allowed: Sequence[range], budget: Budget) -> Iterator[tuple[int, ...]]:
    """Yield all ways to split a total among groups, first groups with most pods first.

    Cost: one step for each group at which a total that whole slices cannot make up ends.
    """
    first, *others = allowed
    if not others:
        if total in first:
            yield (total,)
        else:
            budget.spend(1)
        return
    highest = min(first[-1], total - sum(counts[0] for counts in others))
    lowest = max(first[0], total - sum(counts[-1] for counts in others))
    for count in range(highest - (highest - first[0]) % first.step, lowest - 1, -first.step):
        for other_counts in _split_total(total - count, others, budget):
            yield (count, *other_counts)


def _max_domain_slots(problem: Problem, shape: int) -> int:
    """Return the most pods of a shape that one domain of the widest allowed tier holds."""
    return problem.shapes[shape].max_slots[highest_job_tier(problem)]
