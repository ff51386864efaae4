"""Pack equal pods of one gang into few domains: a fast heuristic for batches that try many places.

Tier by tier from the top, it chooses the fewest units that hold the pods, and among such sets the
one with the fewest slots left. A *rank* skips the best domains, so that a search can try domains
that are as good for this gang and better for the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from generator.placement.cluster.capacity import FreeCapacity
from generator.placement.cluster.levels import LEAF_TIER, IntArray
from generator.placement.cluster.min_cover import choose_fewest_bins, fill_in_order

MAX_UNITS_COMPARED = 8
"""Domains of a tier whose contents are compared."""


class PackItem(NamedTuple):
    """Equal pods that are to be placed."""

    shape: int
    """Index of their shape in the free capacity."""
    num_pods: int


class _UnitFill(NamedTuple):
    """A unit in which all items may lie; smaller ones come first."""

    units_used: tuple[int, ...]
    """Units that the first item needs, per tier from below the domain down to the leaves."""
    slots: int
    unit: int
    leaves: tuple[int, ...]
    """The leaves that the first item needs."""


def pack(
    free: FreeCapacity, items: Sequence[PackItem], *, max_tier: int, rank: int = 0
) -> tuple[dict[int, int], ...] | None:
    """Return pods per node of items that share a domain; None if none is found.

    The domain is in the lowest tier with such a domain: the one with the fewest domains used
    inside, then the tightest, then the first. `rank` skips this many, at most to the last. The
    scarcest item goes first, into leaves that also hold the others, which are placed beside it
    where possible.
    """
    totals = [int(free.slots_by_tier(item.shape)[-1].sum()) for item in items]
    order = sorted(range(len(items)), key=lambda index: (totals[index], index))
    scarcest_first = [items[index] for index in order]
    for tier in range(max_tier + 1):
        units = _units_with_capacity(free, scarcest_first, tier)
        skipped = min(rank, max(len(units) - 1, 0))
        if tier > LEAF_TIER:
            compared = units[:MAX_UNITS_COMPARED]
            domains = sorted(_domain(free, scarcest_first, tier, unit) for unit in compared)
            domains = domains[min(skipped, len(domains) - 1) :]
        else:
            domains = [
                _UnitFill((), 0, unit, (unit,)) for unit in units[skipped:][:MAX_UNITS_COMPARED]
            ]
        for domain in domains:
            placed = _pack_in_domain(free, scarcest_first, tier, domain)
            if placed is not None:
                return tuple(placed[order.index(index)] for index in range(len(items)))
    return None


def _units_with_capacity(free: FreeCapacity, items: Sequence[PackItem], tier: int) -> list[int]:
    """Return the units of a tier that hold each item, those with the fewest slots first."""
    slots = [free.slots_by_tier(item.shape)[tier] for item in items]
    holds_all = slots[0] >= items[0].num_pods
    for item_slots, item in zip(slots[1:], items[1:], strict=True):
        holds_all &= item_slots >= item.num_pods
    units = holds_all.nonzero()[0]
    tightest_first: list[int] = units[slots[0][units].argsort(kind="stable")].tolist()
    return tightest_first


def _domain(free: FreeCapacity, items: Sequence[PackItem], tier: int, unit: int) -> _UnitFill:
    """Return what the first item needs in a unit, in units that may hold the others as well."""
    slots = free.slots_by_tier(items[0].shape)
    num_pods = _equivalent_pods(free, items, tier, unit)
    chosen, units_used = [unit], []
    for upper in range(tier, LEAF_TIER, -1):
        children = _children(free, upper, chosen)
        chosen = fewest_bins(slots[upper - 1], children, num_pods)
        units_used.append(len(chosen))
    return _UnitFill(tuple(units_used), int(slots[tier][unit]), unit, tuple(chosen))


def _equivalent_pods(free: FreeCapacity, items: Sequence[PackItem], tier: int, unit: int) -> int:
    """Return the pods of the first item that use as much as all items, if so many fit."""
    unit_slots = [int(free.slots_by_tier(item.shape)[tier][unit]) for item in items]
    all_items = sum(
        -(-item.num_pods * unit_slots[0] // slots)
        for item, slots in zip(items, unit_slots, strict=True)
    )
    return max(items[0].num_pods, min(all_items, unit_slots[0]))


def _children(free: FreeCapacity, tier: int, units: Iterable[int]) -> list[int]:
    return [child for unit in units for child in free.levels.children(tier, unit)]


def _pack_in_domain(
    free: FreeCapacity, items: Sequence[PackItem], tier: int, domain: _UnitFill
) -> list[dict[int, int]] | None:
    """Return pods per node of all items in one domain; the first item decides the leaves."""
    if tier == 0 and len(items) == 1:
        return [{domain.unit: items[0].num_pods}]
    mark, leaves, placed = len(free.changes), list(domain.leaves), list[dict[int, int]]()
    for item in items:
        if tier > LEAF_TIER and not _add_leaves(free, item, tier, (domain.unit, leaves)):
            break
        nodes = _children(free, LEAF_TIER, leaves) if tier else [domain.unit]
        slots = free.slots_by_tier(item.shape)[0]
        if int(slots[nodes].sum()) < item.num_pods:
            break
        chosen = fewest_bins(slots, nodes, item.num_pods)
        placed.append(fill_in_order(slots, chosen, item.num_pods))
        if len(items) > 1:
            for node, num_pods in placed[-1].items():
                free.take(item.shape, node, num_pods)
    free.undo(mark)
    return placed if len(placed) == len(items) else None


def _add_leaves(
    free: FreeCapacity, item: PackItem, tier: int, unit_and_leaves: tuple[int, list[int]]
) -> bool:
    """Add the fewest leaves of a unit in which an item has room beside the leaves so far."""
    unit, leaves = unit_and_leaves
    slots = free.slots_by_tier(item.shape)[LEAF_TIER]
    missing = item.num_pods - int(slots[leaves].sum())
    if missing <= 0:
        return True
    others = [unit]
    for upper in range(tier, LEAF_TIER, -1):
        others = _children(free, upper, others)
    others = [leaf for leaf in others if leaf not in leaves]
    if int(slots[others].sum()) < missing:
        return False
    leaves += fewest_bins(slots, others, missing)
    return True


def fewest_bins(slots: IntArray, bins: Sequence[int], num_pods: int) -> list[int]:
    """Return the fewest of some bins that hold the pods; all together must hold them.

    Of such sets it is the one with the fewest slots left, unless that takes too long to find: then
    only the last bin is tight. Ascending.
    """
    filled = [
        (index, number) for index, number in zip(bins, slots[bins].tolist(), strict=True) if number
    ]
    numbers = [number for _, number in filled]
    chosen = choose_fewest_bins(numbers, num_pods, is_tight=True)
    if chosen is None:
        chosen = _largest_bins(numbers, num_pods)
    return [filled[index][0] for index in chosen]


def _largest_bins(slots: Sequence[int], num_pods: int) -> list[int]:
    """Return the fewest bins: the largest ones, and the smallest one that holds the rest."""
    by_size = sorted(range(len(slots)), key=lambda index: (-slots[index], index))
    count = 0
    while num_pods > slots[by_size[count]]:
        num_pods -= slots[by_size[count]]
        count += 1
    rest = [index for index in by_size[count:] if slots[index] >= num_pods]
    return sorted([*by_size[:count], min(rest, key=lambda index: (slots[index], index))])
