"""Applies random faults to a fabric, and says which of them are detectable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from topology.model.errors import ConfigError, show
from topology.model.facts import PortName
from topology.synthetic.faults import DamagedFabric, Fault, FaultKind, FaultSpec, RandomSource
from topology.synthetic.swaps import draw_swaps
from topology.synthetic.visible_faults import SymmetryIndex
from topology.synthetic.wiring import Cable, Wiring


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
