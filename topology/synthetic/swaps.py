"""Draws pairs of cables that exchange an end, as in cabling errors that occur in practice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum

from topology.synthetic.faults import RandomSource
from topology.synthetic.membership import is_host_cable
from topology.synthetic.spec import SPINE_RANK, STORAGE_RANK
from topology.synthetic.wiring import Cable, Switch, Wiring


class SwapKind(StrEnum):
    """Kinds of pairs of cables that exchange an end."""

    MOVED_HOST = "moved-host"
    """Host cables of two leaf groups."""
    WRONG_RAIL = "wrong-rail"
    """Host cables of two leaves of one group."""
    UPLINK = "uplink"
    """Cables from leaf to spine without a common end, in one pod or in two."""
    TRUNK = "trunk"
    """Cables from spine to core, from core to the next rank, or between the spines of two groups,
    without a common end."""


def draw_swaps(
    wiring: Wiring, cables: Mapping[int, Cable], num_swaps: int, *, rng: RandomSource
) -> list[tuple[int, int]]:
    """Return pairs of indices of cables that exchange their upper ends.

    A cable is in one pair at most. The kinds take turns, so a few swaps include every kind that the
    fabric can have. Returns fewer pairs if there are not enough.
    """
    if not num_swaps:
        return []
    switches = {switch.name: switch for switch in wiring.switches}
    pools = _pools(cables, switches, rng)
    if wiring.spec.ports_per_host == 1:
        # No group has two leaves, and the search for such pairs would be quadratic in the cables.
        pools[SwapKind.WRONG_RAIL] = []
    kinds = list(SwapKind)
    used_cables: set[int] = set()
    pairs: list[tuple[int, int]] = []
    for turn in range(num_swaps):
        start = turn % len(kinds)
        pair = _first_pair(
            kinds[start:] + kinds[:start], pools, used_cables, _fits(cables, switches)
        )
        if pair is None:
            break
        used_cables.update(pair)
        pairs.append(pair)
    return pairs


_Fits = Callable[[SwapKind, int, int], bool]


def _pools(
    cables: Mapping[int, Cable], switches: Mapping[str, Switch], rng: RandomSource
) -> dict[SwapKind, list[int]]:
    """Return the cables to draw from for each kind of swap, each in a random order."""
    host_cables = [
        cable_index
        for cable_index, cable in cables.items()
        if is_host_cable(cable, switches) and switches[cable.high.device].rank != STORAGE_RANK
    ]
    ranks_by_cable = {
        cable_index: (switches[cable.low.device].rank, switches[cable.high.device].rank)
        for cable_index, cable in cables.items()
        if cable.low.device in switches
    }
    uplinks = [
        cable_index for cable_index, ranks in ranks_by_cable.items() if ranks == (1, SPINE_RANK)
    ]
    trunks = [cable_index for cable_index, (low, _) in ranks_by_cable.items() if low >= SPINE_RANK]
    return {
        SwapKind.MOVED_HOST: rng.sample(host_cables, len(host_cables)),
        SwapKind.WRONG_RAIL: rng.sample(host_cables, len(host_cables)),
        SwapKind.UPLINK: rng.sample(uplinks, len(uplinks)),
        SwapKind.TRUNK: rng.sample(trunks, len(trunks)),
    }


def _fits(cables: Mapping[int, Cable], switches: Mapping[str, Switch]) -> _Fits:
    def fits(kind: SwapKind, first: int, second: int) -> bool:
        first_cable, second_cable = cables[first], cables[second]
        if first_cable.high.device == second_cable.high.device:
            return False
        if kind in {SwapKind.UPLINK, SwapKind.TRUNK}:
            is_same_rank = (
                switches[first_cable.low.device].rank == switches[second_cable.low.device].rank
            )
            return is_same_rank and first_cable.low.device != second_cable.low.device
        is_same_group = (
            switches[first_cable.high.device].path == switches[second_cable.high.device].path
        )
        return is_same_group == (kind is SwapKind.WRONG_RAIL)

    return fits


def _first_pair(
    kinds: Iterable[SwapKind],
    pools: Mapping[SwapKind, Sequence[int]],
    used_cables: set[int],
    fits: _Fits,
) -> tuple[int, int] | None:
    """Return an unused pair of the first kind that has one."""
    for kind in kinds:
        free = (cable_index for cable_index in pools[kind] if cable_index not in used_cables)
        for first in free:
            candidates = (
                cable_index for cable_index in pools[kind] if cable_index not in used_cables
            )
            second = next(
                (cable_index for cable_index in candidates if fits(kind, first, cable_index)), None
            )
            if second is not None:
                return first, second
    return None
