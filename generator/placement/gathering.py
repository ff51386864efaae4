"""Where equal pods of one gang go in few domains, on tallies: fast, for batches that try much.

Tier by tier from the top: the fewest units that hold the pods, and among those sets the one
with least room left over. A *rank* asks for another domain than the best, so that a search can
try what is as good for this gang and better for the next.
"""

from __future__ import annotations

from collections.abc import Sequence

from generator.placement.tallies import Tallies

MOST_EXACT = 64
"""Up to so many units the set with least left over is found; else the last one is the tightest."""
MOST_PODS = 4096
"""The same of pods."""
MOST_UNITS = 8
"""Domains of a tier that are compared by what lies inside."""


def gather(
    tallies: Tallies, view: int, num_pods: int, *, cap: int, rank: int = 0
) -> dict[int, int] | None:
    """Return pods per spot, None where no unit of a tier up to `cap` holds them.

    The unit is of the lowest tier that has one; of those the one that needs fewest domains
    inside, then the tightest, then the first. `rank` skips so many of them, down to the last.
    """
    rooms = tallies.views[view].rooms
    for tier in range(cap + 1):
        units = [unit for unit, room in enumerate(rooms[tier]) if room >= num_pods]
        if units:
            units.sort(key=lambda unit: (rooms[tier][unit], unit))
            return _inside(tallies, view, num_pods, tier=tier, units=units, rank=rank)
    return None


def _inside(
    tallies: Tallies, view: int, num_pods: int, *, tier: int, units: list[int], rank: int
) -> dict[int, int]:
    """Return pods per spot in one of some units, the tightest first."""
    rooms = tallies.views[view].rooms
    if tier <= tallies.lowest:
        chosen, at = [units[min(rank, len(units) - 1)]], tier
    else:
        found = [_leaves(tallies, view, num_pods, tier, unit) for unit in units[:MOST_UNITS]]
        found.sort(key=lambda row: row[0])
        chosen, at = found[min(rank, len(found) - 1)][1], tallies.lowest
    for above in range(at, 0, -1):
        chosen = _fewest_below(tallies, view, num_pods, above, chosen)
    pods: dict[int, int] = {}
    for spot in chosen:
        pods[spot] = min(rooms[0][spot], num_pods)
        num_pods -= pods[spot]
    return pods


def _leaves(
    tallies: Tallies, view: int, num_pods: int, tier: int, unit: int
) -> tuple[tuple[int, ...], list[int]]:
    """Return (domains per tier, coarsest first; room; unit), and the leaves to use."""
    chosen, counts = [unit], []
    for above in range(tier, tallies.lowest, -1):
        chosen = _fewest_below(tallies, view, num_pods, above, chosen)
        counts.append(len(chosen))
    return (*counts, tallies.views[view].rooms[tier][unit], unit), chosen


def _fewest_below(
    tallies: Tallies, view: int, num_pods: int, tier: int, units: Sequence[int]
) -> list[int]:
    """Return the fewest units below some of a tier that hold the pods."""
    first, row = tallies.children[tier], tallies.views[view].rooms[tier - 1]
    below = [at for unit in units for at in range(first[unit], first[unit + 1]) if row[at]]
    return [below[at] for at in fewest([row[at] for at in below], num_pods)]


def fewest(rooms: Sequence[int], num_pods: int) -> list[int]:
    """Return the indices of the fewest rooms that hold so many pods, which all together must.

    Of such sets the one with least left over, exactly where rooms and pods are few; ascending.
    """
    order = sorted(range(len(rooms)), key=lambda at: (-rooms[at], at))
    count, total = 0, 0
    while total < num_pods:
        total += rooms[order[count]]
        count += 1
    if total == num_pods:
        return sorted(order[:count])
    if count == 1 or len(rooms) > MOST_EXACT or num_pods > MOST_PODS:
        rest = num_pods - sum(rooms[at] for at in order[: count - 1])
        enough = [at for at in order[count - 1 :] if rooms[at] >= rest]
        tightest = min(enough, key=lambda at: (rooms[at], at))
        return sorted([*order[: count - 1], tightest])
    return _tightest(rooms, count, num_pods)


def _tightest(rooms: Sequence[int], count: int, num_pods: int) -> list[int]:
    """Return so many rooms with the least sum that holds the pods.

    `sums[k]` is the set of sums of k rooms, as the bits of an integer; O(rooms × count) of them.
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
