"""Check every rule of a request on a placement: counts, limits, slices, tiers, and free capacity.

No answer leaves the engine unchecked, whichever way found it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from generator.placement.problem.problem import Problem
from generator.placement.problem.rules import slices_with_positions
from topology.model.errors import InvariantError


def require_allowed(problem: Problem, pods: Sequence[Sequence[int]]) -> None:
    """Check an answer before it leaves; O(pods × rules).

    Raises:
        InvariantError: the placement breaks a rule.
    """
    if not is_allowed(problem, pods):
        raise InvariantError(f"the placement of gang {problem.request.gang!r} breaks a rule")


def is_allowed(problem: Problem, pods: Sequence[Sequence[int]]) -> bool:
    """Return whether a placement keeps every rule, every number of pods, and fits; O(pods)."""
    return (
        has_allowed_counts(problem, [len(positions) for positions in pods])
        and satisfies_rules(problem, pods)
        and _fits_nodes(problem, pods)
    )


def has_allowed_counts(problem: Problem, counts: Sequence[int]) -> bool:
    """Return whether minimums, slices and members allow these pods per group; O(groups)."""
    return sum(counts) >= problem.min_pods and problem.gang.takes_part(counts)


def satisfies_rules(problem: Problem, pods: Sequence[Sequence[int]]) -> bool:
    """Return whether limits, rules per unit, slices and required tiers hold; O(pods × rules)."""
    levels = problem.snapshot.levels
    placed = [node for positions in pods for node in positions]
    if problem.own_pods.stray_tier is not None:
        return False
    if any(
        len(set(levels.unit_of_node[tier][placed].tolist())) > max_units
        for tier, max_units in problem.rules.limits
    ):
        return False
    for rule in problem.rules.unit_rules:
        counts = _pods_per_unit(problem, pods, rule.group, rule.tier)
        if not all(map(rule.allows, counts.values())):
            return False
    for short_rule in problem.rules.short_slice_rules:
        counts = _pods_per_unit(problem, pods, short_rule.group, short_rule.tier)
        excess = sum(count % short_rule.size for count in counts.values())
        if excess > counts.total() % short_rule.size:
            return False
    return (
        _satisfies_domain_rules(problem, pods)
        and _satisfies_tiers(problem, pods)
        and all(
            _satisfies_slices(problem, group, list(positions))
            for group, positions in enumerate(pods)
        )
    )


def _satisfies_domain_rules(problem: Problem, pods: Sequence[Sequence[int]]) -> bool:
    """Return whether groups use as many domains as they may, and share none that is exclusive."""
    for spread_rule in problem.rules.spread_rules:
        group, tier = spread_rule.group, spread_rule.tier
        if pods[group] and not spread_rule.allows(_pods_per_unit(problem, pods, group, tier)):
            return False
    for rule in problem.rules.exclusive_rules:
        units: tuple[set[int], set[int]] = (set(), set())
        for group in range(len(pods)):
            units[group in rule.groups].update(_pods_per_unit(problem, pods, group, rule.tier))
        if not units[0].isdisjoint(units[1]):
            return False
    return True


def _fits_nodes(problem: Problem, pods: Sequence[Sequence[int]]) -> bool:
    """Return whether every node is allowed and has all that its pods request; O(pods)."""
    snapshot = problem.snapshot
    for shape_index, positions in zip(problem.shape_of, pods, strict=True):
        if not problem.shapes[shape_index].allowed[list(positions)].all():
            return False
    row_of = {name: row for row, name in enumerate(snapshot.resources)}
    return all(
        not quantity or (name in row_of and quantity <= int(snapshot.free[row_of[name], node]))
        for node, used in problem.resources_used(pods).items()
        for name, quantity in used.items()
    )


def _pods_per_unit(
    problem: Problem, pods: Sequence[Sequence[int]], group: int, tier: int
) -> Counter[int]:
    positions = [*pods[group], *problem.own_pods.positions_of[group]]
    return Counter(problem.snapshot.levels.unit_of_node[tier][positions].tolist())


def _satisfies_slices(problem: Problem, group: int, positions: list[int]) -> bool:
    """Return whether no slice is split.

    Slices of `indexed_slices` are checked in all layers. Otherwise only the last layer is checked,
    because the unit rules in `satisfies_rules` check the others.
    """
    layers, levels = problem.request.groups[group].slices, problem.snapshot.levels
    slices = problem.indexed_slices(group, len(positions))
    if slices:
        return all(
            piece.tier is None
            or levels.common_tier(min(nodes), max(nodes)) <= levels.height_of(piece.tier)
            for piece, nodes in slices_with_positions(slices, positions)
        )
    if not layers or layers[-1].tier is None or problem.own_pods.positions:
        return True
    size, unit_of = layers[-1].size, levels.unit_of_node[problem.slice_tier_of(group)]
    if layers[-1].is_indexed:
        parts = [positions[start : start + size] for start in range(0, len(positions), size)]
        return all(len(set(unit_of[part].tolist())) == 1 for part in parts)
    excess = sum(count % size for count in Counter(unit_of[positions].tolist()).values())
    return excess <= (len(positions) % size if layers[-1].has_short else 0)


def _satisfies_tiers(problem: Problem, pods: Sequence[Sequence[int]]) -> bool:
    placed = [node for positions in pods for node in positions]
    bounds = [([*placed, *problem.own_pods.positions], problem.job_cap)]
    for index, group in enumerate(problem.request.groups):
        if group.required is not None:
            tier = problem.snapshot.levels.height_of(group.required)
            bounds.append(([*pods[index], *problem.own_pods.positions_of[index]], tier))
    for index, group_set in enumerate(problem.request.sets):
        if group_set.required is not None:
            in_set = [
                node for group in problem.request.groups_in_set(index) for node in pods[group]
            ]
            tier = problem.snapshot.levels.height_of(group_set.required)
            bounds.append(([*in_set, *problem.running_in_set(index)], tier))
    common = problem.snapshot.levels.common_tier
    return all(common(min(nodes), max(nodes)) <= tier for nodes, tier in bounds if nodes)
