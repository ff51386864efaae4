"""Check whether a placement satisfies every rule of its request; capacity is not checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from generator.placement.cluster.tiers import tier_index
from generator.placement.problem.problem import Problem
from generator.placement.problem.slices import slices_with_positions


def satisfies_rules(problem: Problem, pods: Sequence[Sequence[int]]) -> bool:
    """Return whether limits, rules per unit, slices and required tiers hold; O(pods × rules)."""
    levels = problem.snapshot.levels
    placed = [at for row in pods for at in row]
    if problem.stray_tier is not None:
        return False
    if any(
        len(set(levels.unit_of_node[at][placed].tolist())) > most
        for at, most in problem.domain_limits
    ):
        return False
    for rule in problem.unit_rules:
        held = [*pods[rule.group], *problem.running_positions_of[rule.group]]
        counts = Counter(levels.unit_of_node[rule.tier][held].tolist())
        if any(n % rule.multiple or n > (rule.max_pods or n) for n in counts.values()):
            return False
    for row in problem.short_slice_rules:
        held = [*pods[row.group], *problem.running_positions_of[row.group]]
        counts = Counter(levels.unit_of_node[row.tier][held].tolist())
        if sum(n % row.size for n in counts.values()) > len(held) % row.size:
            return False
    return _satisfies_tiers(problem, pods) and all(
        _satisfies_slices(problem, group, list(row)) for group, row in enumerate(pods)
    )


def _satisfies_slices(problem: Problem, group: int, row: list[int]) -> bool:
    """Return whether no slice of the last layer is split; unit rules cover the other layers."""
    layers, levels = problem.request.groups[group].slices, problem.snapshot.levels
    pieces = problem.indexed_slices(group, len(row))
    if any(
        piece.tier is not None
        and levels.common_tier(min(held), max(held)) > tier_index(problem.snapshot, piece.tier)
        for piece, held in slices_with_positions(pieces, row)
    ):
        return False
    if pieces or not layers or layers[-1].tier is None or problem.running_positions:
        return True
    size, unit_of = layers[-1].size, levels.unit_of_node[problem.slice_tier_of(group)]
    if layers[-1].is_indexed:
        parts = [row[at : at + size] for at in range(0, len(row), size)]
        return all(len(set(unit_of[part].tolist())) == 1 for part in parts)
    over = sum(count % size for count in Counter(unit_of[row].tolist()).values())
    return over <= (len(row) % size if layers[-1].has_short else 0)


def _satisfies_tiers(problem: Problem, pods: Sequence[Sequence[int]]) -> bool:
    placed = [at for row in pods for at in row]
    bounds = [([*placed, *problem.running_positions], problem.job_cap)]
    for at, group in enumerate(problem.request.groups):
        if group.required is not None:
            tier = tier_index(problem.snapshot, group.required)
            bounds.append(([*pods[at], *problem.running_positions_of[at]], tier))
    for at, row in enumerate(problem.request.sets):
        if row.required is not None:
            held = [node for group in problem.groups_in_set(at) for node in pods[group]]
            tier = tier_index(problem.snapshot, row.required)
            bounds.append(([*held, *problem.running_in_set(at)], tier))
    common = problem.snapshot.levels.common_tier
    return all(common(min(held), max(held)) <= tier for held, tier in bounds if held)
