"""Applies random faults to a fabric, and says which of them are detectable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from topology.model.errors import ConfigError, show
from topology.model.facts import PortName
from topology.synthetic.faults import DamagedFabric, Fault, FaultKind, FaultSpec, RandomSource
from topology.synthetic.spec import SPINE_RANK, STORAGE_RANK
from topology.synthetic.truth import is_host_cable
from topology.synthetic.visible_faults import SymmetryIndex
from topology.synthetic.wiring import Cable, Switch, Wiring


def damage_fabric(wiring: Wiring, faults: FaultSpec, rng: RandomSource) -> DamagedFabric:
    """Return the fabric after its faults: lost switches and hosts, then lost cables, then swaps.

    Equal arguments and an equally seeded source give the same damage. Cost: O(cables), and
    O(cables) again for each lost switch.

    Raises:
        ConfigError: a fraction or number is out of range, a named device is not in the fabric, or
            the fabric has fewer than `num_swaps` pairs of cables to swap.
    """
    _check(wiring, faults)
    if faults.shuffle:
        wiring = _shuffle_hosts(wiring, rng)
    lost_switches = _draw_switches(wiring, faults, rng)
    hosts = [host.name for host in wiring.hosts]
    drawn = rng.sample(hosts, faults.lose_hosts)
    lost_hosts = frozenset(faults.lost).intersection(hosts).union(drawn)
    lost_devices = lost_switches | lost_hosts
    alive = {
        cable_index: cable
        for cable_index, cable in enumerate(wiring.cables)
        if not lost_devices & {cable.low.device, cable.high.device}
    }
    num_lost = min(len(alive), _share(faults.lose_links, len(wiring.cables)))
    lost_cables = [
        alive.pop(cable_index) for cable_index in sorted(rng.sample(sorted(alive), num_lost))
    ]
    pairs = _pairs(wiring, alive, faults, rng=rng)
    swapped = {
        cable_index: cable for pair in pairs for cable_index, cable in _exchange(alive, pair)
    }
    silent = lost_hosts | frozenset(rng.sample(hosts, _share(faults.silent, len(hosts))))
    cables = tuple((alive | swapped).values())
    damaged = DamagedFabric(wiring, cables, silent, lost_switches, lost_hosts)
    symmetry = SymmetryIndex(damaged)
    applied_faults = (
        *_lost_switches(damaged, symmetry),
        *(
            Fault(FaultKind.LOST_LINK, cable, symmetry.shows_missing(cable))
            for cable in lost_cables
        ),
        *(_swap(symmetry, [swapped[cable_index] for cable_index in pair]) for pair in pairs),
        *_silent_hosts(damaged),
    )
    return replace(damaged, faults=applied_faults)


def _check(wiring: Wiring, faults: FaultSpec) -> None:
    for fraction in (faults.lose_links, faults.silent, faults.swap):
        if not 0 <= fraction <= 1:
            raise ConfigError(f"expected a share from 0 to 100 %, got {fraction:.4g}")
    if faults.num_swaps < 0:
        raise ConfigError(f"expected 0 or more swaps, got {faults.num_swaps}")
    switches = _switches_to_lose(wiring, faults)
    if not 0 <= faults.lose_switches <= len(switches):
        where = "" if faults.lose_rank is None else f" of rank {faults.lose_rank}"
        raise ConfigError(
            f"expected to lose 0 to {len(switches)} switches{where}, got {faults.lose_switches}"
        )
    if not 0 <= faults.lose_hosts <= len(wiring.hosts):
        raise ConfigError(
            f"expected to lose 0 to {len(wiring.hosts)} hosts, got {faults.lose_hosts}"
        )
    names = {switch.name for switch in wiring.switches} | {host.name for host in wiring.hosts}
    unknown = sorted(set(faults.lost) - names)
    if unknown:
        raise ConfigError(
            f"expected a switch or host of the fabric to lose, got {show(unknown[0])}"
        )


def _switches_to_lose(wiring: Wiring, faults: FaultSpec) -> list[str]:
    """Return the names of the switches from which lost switches are drawn."""
    ranks = {switch.rank for switch in wiring.switches}
    ranks_to_lose = ranks if faults.lose_rank is None else {faults.lose_rank}
    return [switch.name for switch in wiring.switches if switch.rank in ranks_to_lose]


def _draw_switches(wiring: Wiring, faults: FaultSpec, rng: RandomSource) -> frozenset[str]:
    drawn = rng.sample(_switches_to_lose(wiring, faults), faults.lose_switches)
    names = {switch.name for switch in wiring.switches}
    return frozenset(faults.lost).intersection(names).union(drawn)


def _shuffle_hosts(wiring: Wiring, rng: RandomSource) -> Wiring:
    """Return the fabric with every host, including its HCAs, in the place of a random host.

    The NVLink domain belongs to the place, not to the host.
    """
    drawn = rng.sample(wiring.hosts, len(wiring.hosts))
    pairs = list(zip(wiring.hosts, drawn, strict=True))
    hosts = tuple(replace(new, clique=old.clique) for old, new in pairs)
    new_name_by_old = {old.name: new.name for old, new in pairs}
    cables = tuple(
        cable._replace(low=cable.low._replace(device=new_name_by_old[cable.low.device]))
        if cable.low.device in new_name_by_old
        else cable
        for cable in wiring.cables
    )
    return replace(wiring, hosts=hosts, cables=cables)


def _share(fraction: float, total: int) -> int:
    return max(1, round(fraction * total)) if fraction else 0


def _pairs(
    wiring: Wiring, alive: Mapping[int, Cable], faults: FaultSpec, *, rng: RandomSource
) -> list[tuple[int, int]]:
    num = faults.num_swaps + _share(faults.swap / 2, len(wiring.cables))
    pairs = draw_swaps(wiring, alive, num, rng=rng)
    if len(pairs) < faults.num_swaps:
        raise ConfigError(f"only {len(pairs)} of {faults.num_swaps} pairs of cables can be swapped")
    return pairs


def _exchange(cables: dict[int, Cable], pair: tuple[int, int]) -> Iterator[tuple[int, Cable]]:
    """Yield (index, cable) of two cables with exchanged upper ends."""
    first, second = pair
    yield first, Cable(cables[first].low, cables[second].high)
    yield second, Cable(cables[second].low, cables[first].high)


def _swap(symmetry: SymmetryIndex, cables: list[Cable]) -> Fault:
    is_seen = any(symmetry.shows_misplaced(cable) for cable in cables)
    return Fault(FaultKind.SWAPPED_CABLE, _ends(cables), is_seen)


def _lost_switches(damaged: DamagedFabric, symmetry: SymmetryIndex) -> Iterator[Fault]:
    for name in sorted(damaged.lost_switches):
        cables = [
            cable
            for cable in damaged.wiring.cables
            if name in (cable.low.device, cable.high.device)
        ]
        yield Fault(FaultKind.LOST_SWITCH, _ends(cables), symmetry.shows_lost(name))


def _silent_hosts(damaged: DamagedFabric) -> Iterator[Fault]:
    """Yield a fault per host without a report; detectable, because the inventory lists the host."""
    for host in damaged.wiring.hosts:
        if host.name in damaged.silent:
            is_lost = host.name in damaged.lost_hosts
            kind = FaultKind.LOST_HOST if is_lost else FaultKind.SILENT_NODE
            ports = tuple(PortName(host.name, nic.port) for nic in host.nics)
            yield Fault(kind, ports, is_detectable=True)


def _ends(cables: Iterable[Cable]) -> tuple[PortName, ...]:
    return tuple(end for cable in cables for end in cable)


class SwapKind(StrEnum):
    """Which two cables exchange an end."""

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
