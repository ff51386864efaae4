"""Walking many switches at once: outcomes, deadlines, what else to walk, when to try again.

Every switch has a deadline and an outcome of its own, so a dead one costs a place among the
parallel walks for a few seconds and never a result. How rows are fetched is the session's.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from generator.switch_targets import Discovery, Target
from topology.errors import ParseError, SwitchError, SwitchRefused, show
from topology.facts import Device, Neighbor
from topology.identity import Key, strong_key
from topology.ids import Id, IdKind
from topology.report import CollectorOutcome, NeighborReport, ReportStatus, report_of
from topology.sources.lldp_mib import parse_walk
from topology.sources.lldp_mib_tables import BASE_ROOTS, LLDP, V2_ROOTS, Oid, WalkRow

MAX_ROWS: Final = 100_000  # a switch of 4096 ports has half of that
MAX_BACKOFF_S: Final = 3600.0
COLLECTOR: Final = "snmp"
_REMOTE: Final = (*LLDP, 4, 1, 1)


class Outcome(StrEnum):
    """How the walk of a switch ended."""

    OK = "ok"
    PARTIAL = "partial"
    """It told something and then fell silent, or refused the rest."""
    REFUSED = "refused"
    UNREACHABLE = "unreachable"


class Session(Protocol):
    """Fetches rows from switches."""

    def rows(self, target: Target, root: Oid) -> AsyncIterator[WalkRow]:
        """Yield the rows of a subtree in order.

        Raises:
            SwitchSilent: no answer.
            SwitchRefused: an answer that refuses, or makes no sense.
        """
        ...


@dataclass(frozen=True, slots=True)
class SwitchWalk:
    """What came of one address."""

    target: Target
    outcome: Outcome
    duration_s: float
    device: Device | None = None
    """None where nothing usable was told."""
    reason: str = ""
    """Why it is not `ok`."""
    problems: tuple[ParseError, ...] = ()
    """What of its tables was skipped."""


async def walk_all(
    targets: Iterable[Target],
    *,
    session: Session,
    clock: Callable[[], float],
    deadline_s: float,
    parallel: int = 32,
    discovery: Discovery | None = None,
) -> tuple[SwitchWalk, ...]:
    """Walk switches, then those that they hear, in the order of the targets and of discovery.

    Args:
        targets: where to start; an address given twice is walked once.
        session: fetches rows.
        clock: seconds that only go forward, for durations.
        deadline_s: for one switch, from its start.
        parallel: walks at one time.
        discovery: which neighbors are walked too; None: none.
    """
    free = asyncio.Semaphore(parallel)

    async def walk(target: Target) -> SwitchWalk:
        async with free:
            return await walk_switch(target, session=session, clock=clock, deadline_s=deadline_s)

    due = list({(target.address, target.port): target for target in targets}.values())
    walks: list[SwitchWalk] = []
    num_listed = len(due)
    for _ in range(1 + (discovery.max_depth if discovery else 0)):
        walks += await asyncio.gather(*map(walk, due))
        left = discovery.max_switches - (len(walks) - num_listed) if discovery else 0
        due = further_targets(walks, discovery)[: max(left, 0)] if discovery else []
        if not due:
            break
    return tuple(walks)


async def walk_switch(
    target: Target, *, session: Session, clock: Callable[[], float], deadline_s: float
) -> SwitchWalk:
    """Walk one switch within a deadline; what it told until then is kept."""
    rows: list[WalkRow] = []
    failure: SwitchError | None = None
    began = clock()
    try:
        async with asyncio.timeout(deadline_s):
            await _fetch(session, target, rows)
    except TimeoutError:
        failure = SwitchError(f"not done within {deadline_s:g} s")
    except SwitchError as error:
        failure = error
    device, problems = parse_walk(rows, source=_source(target), address=target.address)
    outcome, reason = _outcome(device, failure)
    return SwitchWalk(
        target=target,
        outcome=outcome,
        duration_s=clock() - began,
        device=device,
        reason=reason,
        problems=problems if device else (),
    )


def _outcome(device: Device | None, failure: SwitchError | None) -> tuple[Outcome, str]:
    if device is not None:
        return (Outcome.PARTIAL, str(failure)) if failure else (Outcome.OK, "")
    if failure is None:
        return Outcome.REFUSED, "it answers, but shows none of the tables: check its view"
    is_refusal = isinstance(failure, SwitchRefused)
    return (Outcome.REFUSED if is_refusal else Outcome.UNREACHABLE), str(failure)


def _source(target: Target) -> str:
    return f"switch {show(target.address, 253)}"


async def _fetch(session: Session, target: Target, rows: list[WalkRow]) -> None:
    """Add the rows of all subtrees; those of LLDP-V2-MIB where the LLDP-MIB has no neighbors."""
    for root in BASE_ROOTS:
        await _fetch_root(session, target, root, rows)
    if not any(oid[: len(_REMOTE)] == _REMOTE for oid, _ in rows):
        for root in V2_ROOTS:
            await _fetch_root(session, target, root, rows)


async def _fetch_root(session: Session, target: Target, root: Oid, rows: list[WalkRow]) -> None:
    async for row in session.rows(target, root):
        if len(rows) >= MAX_ROWS:
            raise SwitchRefused(f"more than {MAX_ROWS} rows: no switch has that many")
        rows.append(row)


def further_targets(walks: Sequence[SwitchWalk], discovery: Discovery) -> list[Target]:
    """Return what neighbors of walked switches are to be walked next; each device at one address.

    Devices that were walked already under another address are known by what they told. The
    credentials are those of the first switch that hears the neighbor. O(neighbors).
    """
    tried = {(walk.target.address, walk.target.port) for walk in walks}
    known = {key for walk in walks if walk.device for key in _keys(walk.device)}
    found: dict[tuple[str, int], Target] = {}
    for walk, neighbor in _heard(walks):
        keys = {key for one in neighbor.device_ids if (key := strong_key(one))}
        told = {(IdKind.IP.value, one.value) for one in neighbor.device_ids}
        if known & (keys | told):
            continue
        target = next(
            (
                walk.target._replace(address=address)
                for address in _allowed(neighbor.device_ids, discovery)
                if (address, walk.target.port) not in tried
            ),
            None,
        )
        if target is not None:
            found.setdefault((target.address, target.port), target)
            known |= keys
    return list(found.values())


def _heard(walks: Iterable[SwitchWalk]) -> Iterator[tuple[SwitchWalk, Neighbor]]:
    for walk in walks:
        for port in walk.device.ports if walk.device else ():
            for neighbor in port.neighbors:
                yield walk, neighbor


def _keys(device: Device) -> Iterator[Key]:
    """Yield what a walked device is known by: its MACs, and its own addresses."""
    for found in device.ids:
        key = strong_key(found)
        if key is not None:
            yield key
        elif found.kind is IdKind.IP:
            yield (IdKind.IP.value, found.value)


def _allowed(ids: Iterable[Id], discovery: Discovery) -> Iterator[str]:
    for found in ids:
        if found.kind is IdKind.IP:
            address = ipaddress.ip_address(found.value)
            if any(address in network for network in discovery.networks):
                yield found.value


@dataclass(frozen=True, slots=True)
class Backoff:
    """How patient to be with one switch that fails again and again."""

    num_failures: int = 0
    """In a row."""
    not_before_s: float = 0.0
    """When to try again, by the clock of the walks."""

    def after(self, outcome: Outcome, *, now_s: float, period_s: float) -> Backoff:
        """Return the state after a walk: each failure in a row doubles the wait, to an hour.

        A period longer than an hour stays what it is.
        """
        if outcome in {Outcome.OK, Outcome.PARTIAL}:
            return Backoff()
        failures = self.num_failures + 1
        longest = max(period_s, MAX_BACKOFF_S)
        return Backoff(failures, now_s + min(period_s * 2.0 ** min(failures, 32), longest))


def due_targets(
    targets: Iterable[Target], waits: Mapping[tuple[str, int], Backoff], *, now_s: float
) -> list[Target]:
    """Return the targets to be walked now.

    Args:
        targets: all of them.
        waits: the state of those that failed, by address and port.
        now_s: by the same clock as the states.
    """
    never = Backoff()
    return [
        target
        for target in targets
        if waits.get((target.address, target.port), never).not_before_s <= now_s
    ]


def report_name(device: Device) -> str:
    """Return the name of a switch's report: its chassis MAC, else its first; else a hash.

    Nothing that a switch says of itself but a MAC becomes a part of a file's name.
    """
    chassis = [
        found.value
        for found in device.ids
        if found.kind is IdKind.CHASSIS_ID and found.subtype == "mac"
    ]
    macs = chassis or [found.value for found in device.ids if found.kind is IdKind.MAC]
    told = macs[0].replace(":", "") if macs else ""
    return f"switch-{told or hashlib.sha256(repr(device.ids).encode()).hexdigest()[:12]}"


def reports_of(walks: Iterable[SwitchWalk], *, observed_at: str) -> list[NeighborReport]:
    """Return a report per switch, whole walks before partial ones, sorted by name.

    A switch that was walked under two addresses has one report: of the first whole walk.
    """
    chosen: dict[str, SwitchWalk] = {}
    for walk in walks:
        if walk.device is None:
            continue
        name = report_name(walk.device)
        kept = chosen.get(name)
        is_better = kept is not None and walk.outcome is Outcome.OK is not kept.outcome
        if kept is None or is_better:
            chosen[name] = walk
    return [
        report_of(
            walk.device,
            name=name,
            status=ReportStatus(observed_at=observed_at, collectors=(_collector(walk),)),
        )
        for name, walk in sorted(chosen.items())
        if walk.device is not None
    ]


def _collector(walk: SwitchWalk) -> CollectorOutcome:
    is_whole = walk.outcome is Outcome.OK
    return CollectorOutcome(
        name=COLLECTOR, outcome="ok" if is_whole else "failed", message=show(walk.reason)
    )
