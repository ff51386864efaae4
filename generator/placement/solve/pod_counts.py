"""The numbers of pods per group to try: all that minimums, capacity and slices allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import gcd, lcm

from generator.placement.problem.problem import Problem
from generator.placement.request import GangGroup
from generator.placement.solve.budget import Budget


def pod_count_choices(problem: Problem, effort: Budget) -> Iterator[tuple[int, ...]]:
    """Yield pods per group, most pods in total first; optional groups take part or are left out.

    Cost: one step for each total that whole slices cannot make up, and for each set of groups left
    out. Raises BudgetExhausted when the budget ends.
    """
    if problem.stray_tier is not None:
        return
    rows = [_count_range(problem, at) for at in range(len(problem.request.groups))]
    optional = [at for at, group in enumerate(problem.request.groups) if group.is_optional]
    if not all(rows[at] for at in range(len(rows)) if at not in optional):
        return
    least = max(min_total_pods(problem), 1)
    if len(rows) == 1 and not optional:
        yield from ((count,) for count in reversed(rows[0]) if count >= least)
        return
    total = sum(row[-1] for row in rows if row)
    kept = list(_ranges_per_subset(problem, rows, optional, effort))
    step = gcd(*(row.step for row in rows))
    for num_pods in range(total, least - 1, -step if not optional else -1):
        for allowed in kept:
            yield from _split_total(num_pods, allowed, effort)


def min_total_pods(problem: Problem) -> int:
    """Return the minimum number of pods of the whole gang."""
    needed = sum(group.least for group in problem.request.groups if not group.is_optional)
    return max(problem.request.least, needed)


def highest_job_tier(problem: Problem) -> int:
    """Return the highest tier at which the job may lie."""
    return min(problem.job_cap, max(job for job, _ in problem.strategies))


def _ranges_per_subset(
    problem: Problem, rows: Sequence[range], optional: Sequence[int], effort: Budget
) -> Iterator[list[range]]:
    """Yield the ranges per group for each subset of optional groups, largest subset first."""
    for num_away in range(len(optional) + 1):
        for away in combinations(reversed(optional), num_away):
            if optional:
                effort.spend(1)
            if _is_complete(problem, frozenset(away)) and all(
                rows[at] for at in range(len(rows)) if at not in away
            ):
                yield [range(1) if at in away else row for at, row in enumerate(rows)]


def _is_complete(problem: Problem, away: frozenset[int]) -> bool:
    """Return whether every required set is complete without these groups."""
    request = problem.request
    complete: list[bool] = []
    for row in request.sets:
        members = [at not in away for at in row.groups] + [complete[at] for at in row.sets]
        complete.append(sum(members) >= row.least)
    inner = {at for row in request.sets for at in row.sets}
    return all(whole for at, whole in enumerate(complete) if at not in inner)


def _count_range(problem: Problem, at: int) -> range:
    """Return the allowed numbers of pods of a group: whole slices, unless the gang only grows."""
    group = problem.request.groups[at]
    most, step = (
        min(group.count, _max_domain_slots(problem, problem.shape_of[at])),
        pod_count_step(problem, at),
    )
    least = max(group.least, _min_pods_in_slices(group) - len(problem.running_positions_of[at]))
    return range(-(-least // step) * step, most + 1, step)


def pod_count_step(problem: Problem, at: int) -> int:
    """Return the pods of a group that are placed or left out together: those of its slices."""
    sizes = [layer.size for layer in problem.request.groups[at].slices if not layer.has_short]
    return 1 if problem.is_growth else lcm(*sizes)


def _min_pods_in_slices(group: GangGroup) -> int:
    return max((layer.least * layer.size for layer in group.slices), default=0)


def _split_total(total: int, allowed: Sequence[range], effort: Budget) -> Iterator[tuple[int, ...]]:
    """Yield all ways to split a total among groups, first groups with most pods first.

    Cost: one step for each group at which a total that whole slices cannot make up ends.
    """
    first, *others = allowed
    if not others:
        if total in first:
            yield (total,)
        else:
            effort.spend(1)
        return
    highest = min(first[-1], total - sum(counts[0] for counts in others))
    lowest = max(first[0], total - sum(counts[-1] for counts in others))
    for count in range(highest - (highest - first[0]) % first.step, lowest - 1, -first.step):
        for rest in _split_total(total - count, others, effort):
            yield (count, *rest)


def _max_domain_slots(problem: Problem, shape: int) -> int:
    """Return the most pods of a shape that one domain of the widest allowed tier holds."""
    return problem.shapes[shape].max_slots[highest_job_tier(problem)]
