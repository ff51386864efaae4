"""Pack equal pods of one gang into few domains: a fast heuristic for batches that try many places.

Tier by tier from the top, it chooses the fewest units that hold the pods, and among such sets the
one with the fewest slots left. A *rank* skips the best domains, so that a search can try domains
that are as good for this gang and better for the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from generator.placement.batch.free_index import FreeIndex, SpotUse
from generator.placement.cluster.subset_sum import fill_in_order

MAX_EXACT_BINS = 64
"""Up to this many units the tightest set is found; with more, only its last unit is tight."""
MAX_EXACT_PODS = 4096
"""The same limit for pods."""
MAX_UNITS_COMPARED = 8
"""Domains of a tier whose contents are compared."""


class PackItem(NamedTuple):
    """Equal pods that are to be placed."""

    view_index: int
    num_pods: int


def pack(
    free_index: FreeIndex, item: PackItem, *, max_tier: int, rank: int = 0
) -> dict[int, int] | None:
    """Return pods per spot; None if no unit of a tier up to `max_tier` holds them.

    The unit is in the lowest tier with such a unit: the one with the fewest domains used inside,
    then the tightest, then the first. `rank` skips this many units, at most to the last.
    """
    for tier in range(max_tier + 1):
        units = _units_with_capacity(free_index, [item], tier)
        if units:
            return _pack_in_best_unit(free_index, item, tier=tier, units=units, rank=rank)
    return None


def pack_mixed(
    free_index: FreeIndex, items: Sequence[PackItem], *, max_tier: int, rank: int = 0
) -> tuple[dict[int, int], ...] | None:
    """Return pods per spot of several items that share a domain; None if none is found.

    The scarcest item goes first, into leaves that also hold the others, which are placed beside it
    where possible. Some of the tightest domains of each tier are tried.
    """
    total_slots = [free_index.views[item.view_index].slots_by_tier[-1][0] for item in items]
    scarcest_first = sorted(range(len(items)), key=lambda index: (total_slots[index], index))
    for tier in range(max_tier + 1):
        units = _units_with_capacity(free_index, [items[index] for index in scarcest_first], tier)
        for unit in units[min(rank, max(len(units) - 1, 0)) :][:MAX_UNITS_COMPARED]:
            pods_per_spot = _pack_in_unit(
                free_index, [items[index] for index in scarcest_first], tier, unit
            )
            if pods_per_spot is not None:
                return tuple(
                    pods_per_spot[scarcest_first.index(index)] for index in range(len(items))
                )
    return None


def _units_with_capacity(free_index: FreeIndex, items: Sequence[PackItem], tier: int) -> list[int]:
    """Return the units of a tier that hold each item, those with the fewest slots first."""
    views = [free_index.views[item.view_index].slots_by_tier[tier] for item in items]
    first, pods = views[0], items[0].num_pods
    units = [unit for unit, slots in enumerate(first) if slots >= pods]
    for view, item in zip(views[1:], items[1:], strict=True):
        units = [unit for unit in units if view[unit] >= item.num_pods]
    return sorted(units, key=lambda unit: (first[unit], unit))


def _pack_in_unit(
    free_index: FreeIndex, items: Sequence[PackItem], tier: int, unit: int
) -> list[dict[int, int]] | None:
    """Return the places of all items in one unit; the first item decides the leaves."""
    leaves: list[int] = []
    pods_per_spot: list[dict[int, int]] = []
    uses_taken: list[SpotUse] = []
    for index, item in enumerate(items):
        num_wanted = item.num_pods if index else _equivalent_pods(free_index, items, tier, unit)
        pods = _pack_in_leaves(free_index, item, (tier, unit), leaves, num_wanted)
        if pods is None:
            break
        pods_per_spot.append(pods)
        uses = [
            SpotUse(spot, free_index.views[item.view_index].need, num) for spot, num in pods.items()
        ]
        free_index.take(uses)
        uses_taken += uses
    free_index.give_back(uses_taken)
    return pods_per_spot if len(pods_per_spot) == len(items) else None


def _equivalent_pods(free_index: FreeIndex, items: Sequence[PackItem], tier: int, unit: int) -> int:
    """Return the pods of the first item that use as much as all items, if so many fit."""
    unit_slots = [free_index.views[item.view_index].slots_by_tier[tier][unit] for item in items]
    others = sum(
        -(-item.num_pods * unit_slots[0] // slots)
        for item, slots in zip(items, unit_slots, strict=True)
    )
    return max(items[0].num_pods, min(others, unit_slots[0]))


def _pack_in_leaves(
    free_index: FreeIndex,
    item: PackItem,
    domain: tuple[int, int],
    leaves: list[int],
    num_wanted: int,
) -> dict[int, int] | None:
    """Return pods per spot: in the leaves used so far, then in the fewest others that are needed.

    Other leaves are chosen for `num_wanted` pods, and added to `leaves`.
    """
    tier, unit = domain
    slots_by_tier, leaf_tier = free_index.views[item.view_index].slots_by_tier, free_index.leaf_tier
    if tier <= leaf_tier:
        chosen = [unit] if tier == leaf_tier else []
        return _fill_fewest_spots(
            free_index,
            item,
            [unit] if not chosen else _spots_of_leaves(free_index, chosen),
            item.num_pods,
        )
    missing_pods = num_wanted - sum(slots_by_tier[leaf_tier][leaf] for leaf in leaves)
    if missing_pods > 0:
        other_leaves = [
            leaf for leaf in _leaves_inside(free_index, tier, unit) if leaf not in leaves
        ]
        other_slots = [slots_by_tier[leaf_tier][leaf] for leaf in other_leaves]
        if sum(other_slots) < missing_pods:
            return None
        leaves += [other_leaves[index] for index in fewest_bins(other_slots, missing_pods)]
    return _fill_fewest_spots(free_index, item, _spots_of_leaves(free_index, leaves), item.num_pods)


def _leaves_inside(free_index: FreeIndex, tier: int, unit: int) -> list[int]:
    """Return the leaves in a unit of a higher tier."""
    units = [unit]
    for upper in range(tier, free_index.leaf_tier, -1):
        first = free_index.first_child[upper]
        units = [child for parent in units for child in range(first[parent], first[parent + 1])]
    return units


def _spots_of_leaves(free_index: FreeIndex, leaves: Sequence[int]) -> list[int]:
    if free_index.leaf_tier == 0:
        return list(leaves)
    first = free_index.first_child[1]
    return [spot for leaf in leaves for spot in range(first[leaf], first[leaf + 1])]


def _fill_fewest_spots(
    free_index: FreeIndex, item: PackItem, spots: Sequence[int], pods: int
) -> dict[int, int] | None:
    """Return pods on the fewest of some spots; None if these do not hold them."""
    slots = free_index.views[item.view_index].slots_by_tier[0]
    open_spots = [spot for spot in spots if slots[spot]]
    if sum(slots[spot] for spot in open_spots) < pods:
        return None
    chosen = fewest_bins([slots[spot] for spot in open_spots], pods)
    return fill_in_order(slots, [open_spots[index] for index in chosen], pods)


def _pack_in_best_unit(
    free_index: FreeIndex, item: PackItem, *, tier: int, units: list[int], rank: int
) -> dict[int, int]:
    """Return pods per spot in one of some units, the tightest first."""
    if tier <= free_index.leaf_tier:
        chosen, known_tier = [units[min(rank, len(units) - 1)]], tier
    else:
        candidates = [
            _choose_leaves(free_index, item, tier, unit) for unit in units[:MAX_UNITS_COMPARED]
        ]
        candidates.sort(key=lambda entry: entry[0])
        chosen, known_tier = candidates[min(rank, len(candidates) - 1)][1], free_index.leaf_tier
    for upper in range(known_tier, 0, -1):
        chosen = _fewest_children(free_index, item, upper, chosen)
    return fill_in_order(free_index.views[item.view_index].slots_by_tier[0], chosen, item.num_pods)


def _choose_leaves(
    free_index: FreeIndex, item: PackItem, tier: int, unit: int
) -> tuple[tuple[int, ...], list[int]]:
    """Return (domains per tier, coarsest first; slots; unit), and the leaves to use."""
    chosen, counts = [unit], []
    for upper in range(tier, free_index.leaf_tier, -1):
        chosen = _fewest_children(free_index, item, upper, chosen)
        counts.append(len(chosen))
    return (*counts, free_index.views[item.view_index].slots_by_tier[tier][unit], unit), chosen


def _fewest_children(
    free_index: FreeIndex, item: PackItem, tier: int, units: Sequence[int]
) -> list[int]:
    """Return the fewest children of some units that hold the pods."""
    first, slots = (
        free_index.first_child[tier],
        free_index.views[item.view_index].slots_by_tier[tier - 1],
    )
    children = [
        child for unit in units for child in range(first[unit], first[unit + 1]) if slots[child]
    ]
    child_slots = [slots[child] for child in children]
    return [children[index] for index in fewest_bins(child_slots, item.num_pods)]


def fewest_bins(slots: Sequence[int], num_pods: int) -> list[int]:
    """Return the indices of the fewest bins that hold the pods; all together must hold them.

    Of such sets it is the one with the fewest slots left, exactly if bins and pods are few;
    ascending.
    """
    by_size = sorted(range(len(slots)), key=lambda index: (-slots[index], index))
    count, total = 0, 0
    while total < num_pods:
        total += slots[by_size[count]]
        count += 1
    if total == num_pods:
        return sorted(by_size[:count])
    if count == 1 or len(slots) > MAX_EXACT_BINS or num_pods > MAX_EXACT_PODS:
        missing_pods = num_pods - sum(slots[index] for index in by_size[: count - 1])
        sufficient = [index for index in by_size[count - 1 :] if slots[index] >= missing_pods]
        tightest = min(sufficient, key=lambda index: (slots[index], index))
        return sorted([*by_size[: count - 1], tightest])
    return _tightest_bins(slots, count, num_pods)


def _tightest_bins(slots: Sequence[int], count: int, num_pods: int) -> list[int]:
    """Return the bins with the smallest sum that holds the pods.

    `sums[k]` is the set of sums of k bins, as the bits of an integer; O(bins × count) of them.
    """
    sums_by_count = [[1] + [0] * count]
    for bin_slots in slots:
        sums = sums_by_count[-1]
        sums_by_count.append(
            [1, *(sums[k] | sums[k - 1] << bin_slots for k in range(1, count + 1))]
        )
    large_enough = sums_by_count[-1][count] >> num_pods
    total = num_pods + (large_enough & -large_enough).bit_length() - 1
    chosen: list[int] = []
    for index in reversed(range(len(slots))):
        if not sums_by_count[index][count] >> total & 1:
            chosen.append(index)
            count, total = count - 1, total - slots[index]
    return chosen[::-1]
