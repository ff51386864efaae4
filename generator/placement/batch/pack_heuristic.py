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
    tallies: FreeIndex, row: PackItem, *, max_tier: int, rank: int = 0
) -> dict[int, int] | None:
    """Return pods per spot; None if no unit of a tier up to `max_tier` holds them.

    The unit is in the lowest tier with such a unit: the one with the fewest domains used inside,
    then the tightest, then the first. `rank` skips this many units, at most to the last.
    """
    for tier in range(max_tier + 1):
        units = _units_with_capacity(tallies, [row], tier)
        if units:
            return _pack_in_best_unit(tallies, row, tier=tier, units=units, rank=rank)
    return None


def pack_mixed(
    tallies: FreeIndex, rows: Sequence[PackItem], *, max_tier: int, rank: int = 0
) -> tuple[dict[int, int], ...] | None:
    """Return pods per spot of several items that share a domain; None if none is found.

    The scarcest item goes first, into leaves that also hold the others, which are placed beside it
    where possible. Some of the tightest domains of each tier are tried.
    """
    room = [tallies.views[row.view_index].slots_by_tier[-1][0] for row in rows]
    order = sorted(range(len(rows)), key=lambda at: (room[at], at))
    for tier in range(max_tier + 1):
        units = _units_with_capacity(tallies, [rows[at] for at in order], tier)
        for unit in units[min(rank, max(len(units) - 1, 0)) :][:MAX_UNITS_COMPARED]:
            found = _pack_in_unit(tallies, [rows[at] for at in order], tier, unit)
            if found is not None:
                return tuple(found[order.index(at)] for at in range(len(rows)))
    return None


def _units_with_capacity(tallies: FreeIndex, rows: Sequence[PackItem], tier: int) -> list[int]:
    """Return the units of a tier that hold each item, those with the fewest slots first."""
    views = [tallies.views[row.view_index].slots_by_tier[tier] for row in rows]
    first, pods = views[0], rows[0].num_pods
    units = [unit for unit, room in enumerate(first) if room >= pods]
    for view, row in zip(views[1:], rows[1:], strict=True):
        units = [unit for unit in units if view[unit] >= row.num_pods]
    return sorted(units, key=lambda unit: (first[unit], unit))


def _pack_in_unit(
    tallies: FreeIndex, rows: Sequence[PackItem], tier: int, unit: int
) -> list[dict[int, int]] | None:
    """Return the places of all items in one unit; the first item decides the leaves."""
    leaves: list[int] = []
    found: list[dict[int, int]] = []
    taken: list[SpotUse] = []
    for at, row in enumerate(rows):
        wanted = row.num_pods if at else _equivalent_pods(tallies, rows, tier, unit)
        pods = _pack_in_leaves(tallies, row, (tier, unit), leaves, wanted)
        if pods is None:
            break
        found.append(pods)
        uses = [
            SpotUse(spot, tallies.views[row.view_index].need, num) for spot, num in pods.items()
        ]
        tallies.take(uses)
        taken += uses
    tallies.give_back(taken)
    return found if len(found) == len(rows) else None


def _equivalent_pods(tallies: FreeIndex, rows: Sequence[PackItem], tier: int, unit: int) -> int:
    """Return the pods of the first item that use as much as all items, if so many fit."""
    rooms = [tallies.views[row.view_index].slots_by_tier[tier][unit] for row in rows]
    others = sum(-(-row.num_pods * rooms[0] // room) for row, room in zip(rows, rooms, strict=True))
    return max(rows[0].num_pods, min(others, rooms[0]))


def _pack_in_leaves(
    tallies: FreeIndex, row: PackItem, domain: tuple[int, int], leaves: list[int], wanted: int
) -> dict[int, int] | None:
    """Return pods per spot: in the leaves used so far, then in the fewest others that are needed.

    Other leaves are chosen for `wanted` pods, and added to `leaves`.
    """
    tier, unit = domain
    rooms, lowest = tallies.views[row.view_index].slots_by_tier, tallies.leaf_tier
    if tier <= lowest:
        chosen = [unit] if tier == lowest else []
        return _fill_fewest_spots(
            tallies, row, [unit] if not chosen else _spots_of_leaves(tallies, chosen), row.num_pods
        )
    rest = wanted - sum(rooms[lowest][leaf] for leaf in leaves)
    if rest > 0:
        below = [leaf for leaf in _leaves_inside(tallies, tier, unit) if leaf not in leaves]
        have = [rooms[lowest][leaf] for leaf in below]
        if sum(have) < rest:
            return None
        leaves += [below[at] for at in fewest_bins(have, rest)]
    return _fill_fewest_spots(tallies, row, _spots_of_leaves(tallies, leaves), row.num_pods)


def _leaves_inside(tallies: FreeIndex, tier: int, unit: int) -> list[int]:
    """Return the leaves in a unit of a higher tier."""
    found = [unit]
    for above in range(tier, tallies.leaf_tier, -1):
        first = tallies.first_child[above]
        found = [at for one in found for at in range(first[one], first[one + 1])]
    return found


def _spots_of_leaves(tallies: FreeIndex, leaves: Sequence[int]) -> list[int]:
    if tallies.leaf_tier == 0:
        return list(leaves)
    first = tallies.first_child[1]
    return [at for leaf in leaves for at in range(first[leaf], first[leaf + 1])]


def _fill_fewest_spots(
    tallies: FreeIndex, row: PackItem, spots: Sequence[int], pods: int
) -> dict[int, int] | None:
    """Return pods on the fewest of some spots; None if these do not hold them."""
    rooms = tallies.views[row.view_index].slots_by_tier[0]
    open_spots = [spot for spot in spots if rooms[spot]]
    if sum(rooms[spot] for spot in open_spots) < pods:
        return None
    chosen = fewest_bins([rooms[spot] for spot in open_spots], pods)
    return fill_in_order(rooms, [open_spots[at] for at in chosen], pods)


def _pack_in_best_unit(
    tallies: FreeIndex, row: PackItem, *, tier: int, units: list[int], rank: int
) -> dict[int, int]:
    """Return pods per spot in one of some units, the tightest first."""
    if tier <= tallies.leaf_tier:
        chosen, at = [units[min(rank, len(units) - 1)]], tier
    else:
        found = [_choose_leaves(tallies, row, tier, unit) for unit in units[:MAX_UNITS_COMPARED]]
        found.sort(key=lambda entry: entry[0])
        chosen, at = found[min(rank, len(found) - 1)][1], tallies.leaf_tier
    for above in range(at, 0, -1):
        chosen = _fewest_children(tallies, row, above, chosen)
    return fill_in_order(tallies.views[row.view_index].slots_by_tier[0], chosen, row.num_pods)


def _choose_leaves(
    tallies: FreeIndex, row: PackItem, tier: int, unit: int
) -> tuple[tuple[int, ...], list[int]]:
    """Return (domains per tier, coarsest first; slots; unit), and the leaves to use."""
    chosen, counts = [unit], []
    for above in range(tier, tallies.leaf_tier, -1):
        chosen = _fewest_children(tallies, row, above, chosen)
        counts.append(len(chosen))
    return (*counts, tallies.views[row.view_index].slots_by_tier[tier][unit], unit), chosen


def _fewest_children(
    tallies: FreeIndex, row: PackItem, tier: int, units: Sequence[int]
) -> list[int]:
    """Return the fewest children of some units that hold the pods."""
    first, rooms = tallies.first_child[tier], tallies.views[row.view_index].slots_by_tier[tier - 1]
    below = [at for unit in units for at in range(first[unit], first[unit + 1]) if rooms[at]]
    return [below[at] for at in fewest_bins([rooms[at] for at in below], row.num_pods)]


def fewest_bins(rooms: Sequence[int], num_pods: int) -> list[int]:
    """Return the indices of the fewest bins that hold the pods; all together must hold them.

    Of such sets it is the one with the fewest slots left, exactly if bins and pods are few;
    ascending.
    """
    order = sorted(range(len(rooms)), key=lambda at: (-rooms[at], at))
    count, total = 0, 0
    while total < num_pods:
        total += rooms[order[count]]
        count += 1
    if total == num_pods:
        return sorted(order[:count])
    if count == 1 or len(rooms) > MAX_EXACT_BINS or num_pods > MAX_EXACT_PODS:
        rest = num_pods - sum(rooms[at] for at in order[: count - 1])
        enough = [at for at in order[count - 1 :] if rooms[at] >= rest]
        tightest = min(enough, key=lambda at: (rooms[at], at))
        return sorted([*order[: count - 1], tightest])
    return _tightest_bins(rooms, count, num_pods)


def _tightest_bins(rooms: Sequence[int], count: int, num_pods: int) -> list[int]:
    """Return the bins with the smallest sum that holds the pods.

    `sums[k]` is the set of sums of k bins, as the bits of an integer; O(bins × count) of them.
    """
    layers = [[1] + [0] * count]
    for room in rooms:
        sums = layers[-1]
        layers.append([1, *(sums[k] | sums[k - 1] << room for k in range(1, count + 1))])
    enough = layers[-1][count] >> num_pods
    total = num_pods + (enough & -enough).bit_length() - 1
    chosen: list[int] = []
    for at in reversed(range(len(rooms))):
        if not layers[at][count] >> total & 1:
            chosen.append(at)
            count, total = count - 1, total - rooms[at]
    return chosen[::-1]
