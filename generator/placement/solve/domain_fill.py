"""Fill one domain with the pods of a job: by tables, or by whole leaves if its nodes are equal.

If the work exceeds the budget, the children with the most slots are filled first, and the answer is
not proved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from generator.placement.cluster.levels import LEAF_TIER
from generator.placement.cluster.min_cover import choose_fewest_bins, fill_in_order
from generator.placement.solve.budget import BudgetExhausted
from generator.placement.solve.domain_dp import DomainTables, FillContext, is_constant


@dataclass(frozen=True, slots=True)
class DomainFill:
    """Pods per node of one domain."""

    pods_per_node: dict[int, int]
    is_proved: bool


def fill_domain(context: FillContext, tier: int, unit: int, num_pods: int) -> DomainFill:
    """Share out the pods of a job whose domain is this unit."""
    if tier == 0:
        return DomainFill({unit: num_pods}, is_proved=True)
    try:
        pods = _fill_even_leaves(context, unit, num_pods) if tier == LEAF_TIER + 1 else None
        if pods is None:
            pods = DomainTables(context, tier, unit, num_pods).pods_per_node(tier, unit, num_pods)
    except BudgetExhausted:
        return DomainFill(_fullest_first(context, tier, unit, num_pods), is_proved=False)
    return DomainFill(pods, is_proved=True)


def _fill_even_leaves(context: FillContext, unit: int, num_pods: int) -> dict[int, int] | None:
    """Return pods per node of a unit above leaves, if all its usable nodes hold equally many.

    The fewest nodes are then the same whichever leaves are used: only leaves are chosen. None if
    nodes differ, or if the bounds require pods on some of them.
    """
    levels, bounds = context.levels, context.bounds
    start, stop = levels.starts[LEAF_TIER + 1][unit], levels.stops[LEAF_TIER + 1][unit]
    slots = bounds.slots[0][start:stop]
    is_bound = any(low is not None for low in bounds.low) or context.counts_islands
    if is_bound or bounds.worst_tier <= LEAF_TIER or not is_constant(slots[slots > 0]):
        return None
    leaves = levels.children(LEAF_TIER + 1, unit)
    leaf_slots = bounds.slots[LEAF_TIER][leaves.start : leaves.stop].tolist()
    chosen = choose_fewest_bins(leaf_slots, num_pods, is_tight=context.counts_fragmentation)
    if chosen is None:
        return None
    context.budget.spend(len(leaf_slots))
    pods: dict[int, int] = {}
    for index, share in fill_in_order(leaf_slots, chosen, num_pods).items():
        nodes = levels.children(LEAF_TIER, leaves[index])
        used = nodes.start + np.flatnonzero(bounds.slots[0][nodes.start : nodes.stop])
        node_slots = bounds.slots[0][used].tolist()
        filled = fill_in_order(node_slots, range(-(-share // node_slots[0])), share)
        pods |= {int(used[place]): count for place, count in filled.items()}
    return pods


def _fullest_first(context: FillContext, tier: int, unit: int, num_pods: int) -> dict[int, int]:
    """Return pods per node: minimums, then children with most slots, the last a tight fit."""
    if tier == 0:
        return {unit: num_pods} if num_pods else {}
    span = context.levels.children(tier, unit)
    low = context.bounds.lower_bounds(tier - 1, span)
    spare = context.bounds.high[tier - 1][span.start : span.stop] - low
    shares, missing_pods = low.copy(), num_pods - int(low.sum())
    order = np.lexsort((np.arange(len(span)), -spare, low == 0))
    for rank, index in enumerate(order):
        tight_fits = [later for later in order[rank:] if spare[later] >= missing_pods]
        is_last = bool(tight_fits) and (low[index] == 0 or low[tight_fits[-1]] > 0)
        chosen = tight_fits[-1] if is_last else index
        shares[chosen] += min(int(spare[chosen]), missing_pods)
        missing_pods -= min(int(spare[chosen]), missing_pods)
        if not missing_pods:
            break
    pods: dict[int, int] = {}
    for child, share in zip(span, shares.tolist(), strict=True):
        if share:
            pods |= _fullest_first(context, tier - 1, child, share)
    return pods
