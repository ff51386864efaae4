"""How a unit of a tier is called in answers."""

from __future__ import annotations

from generator.placement.problem.problem import Problem
from topology.model.errors import show


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
