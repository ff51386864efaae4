"""Damaging a fabric at random, and saying honestly which of the faults can be seen."""

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
    """Return the fabric after its faults: switches and hosts go, then cables, then ends swap.

    Equal arguments and an equally seeded source give the same damage. Cost: O(cables), and as
    much again for each lost switch.

    Raises:
        ConfigError: a fraction or number is out of range, a named device is none of the fabric's,
            or `num_swaps` is more than the fabric has pairs of cables to swap.
    """
    _check(wiring, faults)
    if faults.shuffle:
        wiring = _shuffle_hosts(wiring, rng)
    lost_switches = _draw_switches(wiring, faults, rng)
    hosts = [host.name for host in wiring.hosts]
    drawn = rng.sample(hosts, faults.lose_hosts)
    lost_hosts = frozenset(faults.lost).intersection(hosts).union(drawn)
    gone = lost_switches | lost_hosts
    alive = {
        at: cable
        for at, cable in enumerate(wiring.cables)
        if not gone & {cable.low.device, cable.high.device}
    }
    num_lost = min(len(alive), _share(faults.lose_links, len(wiring.cables)))
    lost = [alive.pop(at) for at in sorted(rng.sample(sorted(alive), num_lost))]
    pairs = _pairs(wiring, alive, faults, rng=rng)
    swapped = {at: cable for pair in pairs for at, cable in _exchange(alive, pair)}
    silent = lost_hosts | frozenset(rng.sample(hosts, _share(faults.silent, len(hosts))))
    cables = tuple((alive | swapped).values())
    bare = DamagedFabric(wiring, cables, silent, lost_switches, lost_hosts)
    symmetry = SymmetryIndex(bare)
    found = (
        *_lost_switches(bare, symmetry),
        *(Fault(FaultKind.LOST_LINK, cable, symmetry.shows_missing(cable)) for cable in lost),
        *(_swap(symmetry, [swapped[at] for at in pair]) for pair in pairs),
        *_silent_hosts(bare),
    )
    return replace(bare, faults=found)


def _check(wiring: Wiring, faults: FaultSpec) -> None:
    for fraction in (faults.lose_links, faults.silent, faults.swap):
        if not 0 <= fraction <= 1:
            raise ConfigError(f"expected a share from 0 to 100 %, got {fraction:.4g}")
    if faults.num_swaps < 0:
        raise ConfigError(f"expected a number of swaps, got {faults.num_swaps}")
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
    """Return the names of the switches that losses are drawn from."""
    ranks = {switch.rank for switch in wiring.switches}
    wanted = ranks if faults.lose_rank is None else {faults.lose_rank}
    return [switch.name for switch in wiring.switches if switch.rank in wanted]


def _draw_switches(wiring: Wiring, faults: FaultSpec, rng: RandomSource) -> frozenset[str]:
    drawn = rng.sample(_switches_to_lose(wiring, faults), faults.lose_switches)
    names = {switch.name for switch in wiring.switches}
    return frozenset(faults.lost).intersection(names).union(drawn)


def _shuffle_hosts(wiring: Wiring, rng: RandomSource) -> Wiring:
    """Return the fabric with every host, its HCAs included, in the place of a random one.

    What NVLink domain it is in is a matter of its place.
    """
    drawn = rng.sample(wiring.hosts, len(wiring.hosts))
    pairs = list(zip(wiring.hosts, drawn, strict=True))
    hosts = tuple(replace(new, clique=old.clique) for old, new in pairs)
    taker = {old.name: new.name for old, new in pairs}
    cables = tuple(
        cable._replace(low=cable.low._replace(device=taker[cable.low.device]))
        if cable.low.device in taker
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
    """Yield two cables after they exchanged their upper ends, with their indices."""
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
    """Yield a fault per host without a report; the inventory betrays each."""
    for host in damaged.wiring.hosts:
        if host.name in damaged.silent:
            is_lost = host.name in damaged.lost_hosts
            kind = FaultKind.LOST_HOST if is_lost else FaultKind.SILENT_NODE
            ports = tuple(PortName(host.name, nic.port) for nic in host.nics)
            yield Fault(kind, ports, is_detectable=True)


def _ends(cables: Iterable[Cable]) -> tuple[PortName, ...]:
    return tuple(end for cable in cables for end in cable)
