"""Which pairs of cables exchange an end: what people really plug wrong, drawn at random."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum

from topology.synthetic.faults import RandomSource
from topology.synthetic.membership import is_host_cable
from topology.synthetic.spec import SPINE_RANK, STORAGE_RANK
from topology.synthetic.wiring import Cable, Switch, Wiring


class SwapKind(StrEnum):
    """What two cables that exchange an end have in common."""

    MOVED_HOST = "moved-host"
    """Host cables of two leaf groups."""
    WRONG_RAIL = "wrong-rail"
    """Host cables of one group, on two leaves."""
    UPLINK = "uplink"
    """Leaf to spine, neither end shared: within a pod or across pods."""
    TRUNK = "trunk"
    """Spine to core, core to the next, or spine to spine of another group; neither end shared."""


def draw_swaps(
    wiring: Wiring, cables: Mapping[int, Cable], num_swaps: int, *, rng: RandomSource
) -> list[tuple[int, int]]:
    """Return pairs of indices of cables that exchange their upper ends; no cable is in two.

    The sorts take turns, so a few swaps show each sort that the fabric can have. There are fewer
    than wanted where no more fit.
    """
    if not num_swaps:
        return []
    switches = {switch.name: switch for switch in wiring.switches}
    pools = _pools(cables, switches, rng)
    if wiring.spec.ports_per_host == 1:
        # No group has two leaves; to look for such pairs would take the square of the cables.
        pools[SwapKind.WRONG_RAIL] = []
    sorts = list(SwapKind)
    taken: set[int] = set()
    pairs: list[tuple[int, int]] = []
    for turn in range(num_swaps):
        start = turn % len(sorts)
        pair = _first_pair(sorts[start:] + sorts[:start], pools, taken, _fits(cables, switches))
        if pair is None:
            break
        taken.update(pair)
        pairs.append(pair)
    return pairs


_Fits = Callable[[SwapKind, int, int], bool]


def _pools(
    cables: Mapping[int, Cable], switches: Mapping[str, Switch], rng: RandomSource
) -> dict[SwapKind, list[int]]:
    """Return the cables that each sort of swap draws from, each in a random order."""
    of_hosts = [
        at
        for at, cable in cables.items()
        if is_host_cable(cable, switches) and switches[cable.high.device].rank != STORAGE_RANK
    ]
    upper = {
        at: (switches[cable.low.device].rank, switches[cable.high.device].rank)
        for at, cable in cables.items()
        if cable.low.device in switches
    }
    uplinks = [at for at, ranks in upper.items() if ranks == (1, SPINE_RANK)]
    trunks = [at for at, (low, _) in upper.items() if low >= SPINE_RANK]
    return {
        SwapKind.MOVED_HOST: rng.sample(of_hosts, len(of_hosts)),
        SwapKind.WRONG_RAIL: rng.sample(of_hosts, len(of_hosts)),
        SwapKind.UPLINK: rng.sample(uplinks, len(uplinks)),
        SwapKind.TRUNK: rng.sample(trunks, len(trunks)),
    }


def _fits(cables: Mapping[int, Cable], switches: Mapping[str, Switch]) -> _Fits:
    def fits(sort: SwapKind, first: int, second: int) -> bool:
        one, other = cables[first], cables[second]
        if one.high.device == other.high.device:
            return False
        if sort in {SwapKind.UPLINK, SwapKind.TRUNK}:
            is_one_rank = switches[one.low.device].rank == switches[other.low.device].rank
            return is_one_rank and one.low.device != other.low.device
        is_one_group = switches[one.high.device].path == switches[other.high.device].path
        return is_one_group == (sort is SwapKind.WRONG_RAIL)

    return fits


def _first_pair(
    sorts: Iterable[SwapKind],
    pools: Mapping[SwapKind, Sequence[int]],
    taken: set[int],
    fits: _Fits,
) -> tuple[int, int] | None:
    """Return a free pair of the first sort that has one."""
    for sort in sorts:
        free = (at for at in pools[sort] if at not in taken)
        for first in free:
            rest = (at for at in pools[sort] if at not in taken)
            second = next((at for at in rest if fits(sort, first, at)), None)
            if second is not None:
                return first, second
    return None
