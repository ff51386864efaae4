"""Which of equally good leaves a job gets under Slurm's tree plugin.

Inside the chosen switch the fullest leaf comes first, and the last leaf is the smallest that holds
the rest; equal leaves are taken in tree order, and nodes of a leaf from its first. Leaves that
already hold lighter nodes of the job come before all others. The objective does not tell such
placements apart: this module only replaces a placement by one with an equal vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from generator.placement.cluster.levels import LEAF_TIER, IntArray, UnitRef, units_inside
from generator.placement.presets import ObjectiveKey
from generator.placement.problem.constraints import satisfies_rules
from generator.placement.problem.objective import Objective, PlacementCandidate
from generator.placement.problem.problem import Problem


def refill_leaves(problem: Problem, candidate: PlacementCandidate) -> PlacementCandidate:
    """Return the placement refilled in the order of leaves; unchanged if that would be worse."""
    if not _is_plain(problem) or not candidate.positions[0]:
        return candidate
    strategy = candidate.objective[ObjectiveKey.STRATEGY][0]
    vector = candidate.objective.vector(problem.objective_order)
    for nodes in _node_ranges(problem, candidate.positions[0]):
        positions = _fill_nodes(problem, nodes, candidate.positions[0])
        if positions is None or not satisfies_rules(problem, [positions]):
            continue
        objective = Objective(problem, (positions,), strategy)
        if objective.vector(problem.objective_order) == vector:
            return PlacementCandidate((positions,), objective, candidate.is_proved)
    return candidate


def _is_plain(problem: Problem) -> bool:
    """Return whether all pods are of one group without slices."""
    request = problem.request
    is_one = len(request.groups) == 1 and problem.evictable is None
    return is_one and not (
        request.groups[0].slices or request.groups[0].multiples or problem.own_pods.positions
    )


def _node_ranges(problem: Problem, positions: Sequence[int]) -> Iterator[IntArray]:
    """Yield the nodes of the job's switch, then those below the switches that it uses there."""
    levels = problem.snapshot.levels
    tier = levels.common_tier(min(positions), max(positions))
    for inner in range(max(tier, LEAF_TIER), LEAF_TIER, -1):
        units = sorted({int(levels.unit_of_node[inner][node]) for node in positions})
        yield np.concatenate([units_inside(levels, UnitRef(inner, unit), 0) for unit in units])


def _fill_nodes(
    problem: Problem, nodes: IntArray, positions: Sequence[int]
) -> tuple[int, ...] | None:
    """Return nodes per pod: the lighter nodes stay, the heaviest of the placement are refilled."""
    weights = problem.node_weights
    ranks = np.zeros(problem.snapshot.num_nodes, dtype=np.int64)
    if weights is not None:
        ranks = weights.weight_index
    # The heaviest weight has index 0.
    heaviest = min(int(ranks[node]) for node in positions)
    kept = [node for node in positions if ranks[node] != heaviest]
    leaf_of = problem.snapshot.levels.unit_of_node[LEAF_TIER]
    slots = problem.shapes[problem.shape_of[0]].slots
    leaves: dict[int, list[int]] = {}
    for node in nodes[(ranks[nodes] == heaviest) & (slots[nodes] > 0)].tolist():
        leaves.setdefault(int(leaf_of[node]), []).append(node)
    used = {int(leaf_of[node]) for node in kept}
    free = {leaf: int(slots[inner].sum()) for leaf, inner in leaves.items()}
    missing, filled = len(positions) - len(kept), list(kept)
    while missing and leaves:
        near = [leaf for leaf in leaves if leaf in used] or list(leaves)
        leaf = _next_leaf(near, free, missing)
        for node in leaves.pop(leaf):
            share = min(int(slots[node]), missing)
            filled += [node] * share
            missing -= share
    return None if missing else tuple(sorted(filled))


def _next_leaf(leaves: Sequence[int], free: dict[int, int], missing: int) -> int:
    """Return the smallest leaf that holds the rest, or else the fullest; the first of equals."""
    fitting = [leaf for leaf in leaves if free[leaf] >= missing]
    if fitting:
        return min(fitting, key=lambda leaf: (free[leaf], leaf))
    return min(leaves, key=lambda leaf: (-free[leaf], leaf))
