"""What became of each domain: chosen, worse than the chosen one, or short of room, and by how much.

Two tiers are shown: that of the chosen domain, and the one below it, which says why the job is
not any closer. At most `SHOWN` domains of each, the nearest misses first; one line counts the rest.
"""

from __future__ import annotations

import numpy as np

from generator.placement.answer import DomainVerdict, Verdict
from generator.placement.cluster.levels import Ints
from generator.placement.presets import Key
from generator.placement.problem.problem import Problem
from generator.placement.solve.candidate import Solution
from topology.model.errors import show

SHOWN = 16


def verdicts(problem: Problem, tier: int, found: Solution | None) -> tuple[DomainVerdict, ...]:
    """Return the verdicts of the domains of a tier, and of the tier below it.

    Args:
        problem: what was asked for.
        tier: that of the chosen domain; the highest allowed one where there is none.
        found: the placement, None where there is none.
    """
    chosen = -1
    num_pods = sum(group.least for group in problem.request.groups)
    if found is not None:
        start = found.objective.values[Key.NAMES][0]
        chosen = int(problem.snapshot.levels.unit[tier][start])
        num_pods = found.objective.values[Key.PLACED][0]
    rows = _of_tier(problem, tier, chosen, num_pods)
    return tuple(rows + (_of_tier(problem, tier - 1, -1, num_pods) if tier > 1 else []))


def _of_tier(problem: Problem, tier: int, chosen: int, num_pods: int) -> list[DomainVerdict]:
    room = problem.shapes[problem.largest].rooms[tier]
    rank = np.arange(len(room)) - np.minimum(room, num_pods) * len(room)
    nearest = np.argpartition(rank, min(SHOWN, len(rank) - 1))[: SHOWN + 1]
    best = nearest[np.argsort(rank[nearest])]
    order = [chosen, *(int(unit) for unit in best if unit != chosen)]
    shown = [unit for unit in order if unit >= 0][:SHOWN]
    rows = [_one(problem, tier, unit, room, (chosen, num_pods)) for unit in shown]
    if len(room) > len(shown):
        rest = np.delete(room, shown)
        rows.append(
            DomainVerdict(
                f"{len(rest)} more",
                Verdict.INFEASIBLE if chosen < 0 else Verdict.REJECTED,
                f"{int(rest.min())} to {int(rest.max())} slots for {num_pods} pods",
            )
        )
    return rows


def _one(
    problem: Problem, tier: int, unit: int, room: Ints, goal: tuple[int, int]
) -> DomainVerdict:
    chosen, num_pods = goal
    name, have = unit_name(problem, tier, unit), int(room[unit])
    if unit == chosen:
        return DomainVerdict(name, Verdict.CHOSEN, f"{num_pods} of {have} slots")
    if have < num_pods:
        short = num_pods - have
        needs = f"{name}: {have} of {num_pods} slots; needs {short} more"
        return DomainVerdict(name, Verdict.INFEASIBLE, needs)
    if chosen < 0:
        needs = f"{name}: {have} slots for {num_pods} pods; the other bounds do not hold in it"
        return DomainVerdict(name, Verdict.INFEASIBLE, needs)
    needs = f"{name}: {have} slots for {num_pods} pods; comes after the chosen one"
    return DomainVerdict(name, Verdict.REJECTED, needs)


def unit_name(problem: Problem, tier: int, unit: int) -> str:
    """Return the name of a unit: its domain, its node, or `cluster`."""
    levels, snapshot = problem.snapshot.levels, problem.snapshot
    if tier == levels.root:
        return levels.tiers[tier]
    start, stop = int(levels.starts[tier][unit]), int(levels.stops[tier][unit])
    for at in range(tier, 0, -1):
        below = int(levels.unit[at][start])
        if levels.domain[at][below] >= 0 and int(levels.stops[at][below]) == stop:
            return show(snapshot.tree.domains[int(levels.domain[at][below])].name)
    return show(snapshot.specs[start].name)
