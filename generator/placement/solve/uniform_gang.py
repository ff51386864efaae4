"""Plain gangs of equal pods, which only tiers and slices in a leaf bound; batches count on them.

For them the rules of `optimal` need only a few comparisons: the lowest tier that fits, the fewest
nodes, the fewest slots in the domain and in those around it, the fewest slots left on the nodes
used, the first name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from generator.placement.cluster.levels import LEAF_TIER, IntArray, TreeLevels, units_with_min
from generator.placement.cluster.min_cover import choose_fewest_bins, fill_in_order
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.presets import Preset
from generator.placement.request import GangGroup, PlacementRequest
from generator.placement.solve.homogeneous import cut_parts


def is_uniform_gang(snapshot: Snapshot, request: PlacementRequest) -> bool:
    """Return whether a request is one group that only tiers bound, of which no pod runs yet."""
    if request.preset is not Preset.OPTIMAL or len(request.groups) > 1 or request.sets:
        return False
    is_bound = request.strategies or request.limits or request.sort or request.traffic
    return (
        not (is_bound or any(request.roles) or request.options.spares_islands)
        and snapshot.levels.root > LEAF_TIER
        and snapshot.num_nodes > 0
        and request.gang not in snapshot.running
        and _is_uniform_group(snapshot, request.groups[0])
    )


def _is_uniform_group(snapshot: Snapshot, group: GangGroup) -> bool:
    """Return whether pods have no bounds, except slices that must share a leaf."""
    if group.wishes or group.multiples or group.is_optional or group.spread or group.count < 1:
        return False
    if not group.slices:
        return True
    layer = group.slices[-1]
    is_bound = layer.has_short or layer.is_spread or layer.is_indexed
    is_loose = layer.tier is None or snapshot.levels.height_of(layer.tier) < LEAF_TIER
    return len(group.slices) == 1 and not (is_bound or is_loose or layer.least)


def may_span(snapshot: Snapshot, request: PlacementRequest, tier: int) -> bool:
    """Return whether a plain gang may lie in a domain of a tier."""
    tiers = (request.required, request.groups[0].required)
    return all(snapshot.levels.height_of(bound) >= tier for bound in tiers if bound)


def tightest_units(
    levels: TreeLevels, slots_by_tier: Sequence[IntArray], tier: int, units: IntArray
) -> IntArray:
    """Return the units with the fewest slots, then with the fewest around, nearest tier first."""
    units = units_with_min(units, slots_by_tier[tier][units])
    for outer in range(tier + 1, levels.root):
        if len(units) > 1:
            around = levels.unit_of_node[outer][levels.starts[tier][units]]
            units = units_with_min(units, slots_by_tier[outer][around])
    return units


def fill_tightest(
    units: Iterable[tuple[int, Sequence[int]]], num_pods: int
) -> dict[int, int] | None:
    """Return pods per child in the first unit where the fewest children leave the fewest slots.

    In tree order. None if the full engine must decide.

    Args:
        units: (first child, slots per child) of units that hold the pods.
        num_pods: pods of the gang.
    """
    best: dict[int, int] = {}
    least_left = -1
    for first, child_slots in units:
        chosen = choose_fewest_bins(child_slots, num_pods, is_tight=True)
        if chosen is None:
            return None
        num_left = sum([child_slots[index] for index in chosen]) - num_pods
        if not best or num_left < least_left:
            pods = fill_in_order(child_slots, chosen, num_pods)
            best, least_left = {first + index: count for index, count in pods.items()}, num_left
        if not num_left:
            break
    return best


def nodes_in_index_order(
    levels: TreeLevels, group: GangGroup, pods: dict[int, int]
) -> tuple[int, ...]:
    """Return the nodes of pods in index order: slice by slice, each in tree order."""
    if not group.slices or len(pods) == 1:
        return tuple([node for node, count in pods.items() for _ in range(count)])
    parts = sorted(cut_parts(levels, pods, group.slices[-1].size))
    return tuple(node for part in parts for node in part)
