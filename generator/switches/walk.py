"""Walks switches in parallel: outcomes, deadlines, and the check for unchanged switches.

Every switch has its own deadline and outcome, and each outcome is yielded as soon as the walk
ends. So a dead switch occupies one of the parallel walks for a few seconds and delays no other.
Fetching rows is not done here: the session does it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from generator.switches.discovery import Frontier
from generator.switches.targets import Target
from topology.model.errors import ParseError, SwitchError, SwitchRefused, show
from topology.model.facts import Device, Source
from topology.sources.lldp_mib.tables import (
    BASE_SPANS,
    BRIDGE_SPAN,
    LLDP,
    REMOTE_STATS,
    STATS_SPAN,
    SYS_NAME,
    SYS_UP_TIME,
    SYSTEM_SPAN,
    V2_SPANS,
    ColumnSpan,
    WalkRow,
    collect_columns,
    is_unnamed,
    local_ports,
    remote_rows,
)
from topology.sources.lldp_mib.walk import parse_walk

MAX_ROWS: Final = 100_000  # a switch with 4096 ports has half as many
_MAX_PARALLEL: Final = 32
_BRIDGE_SHARE: Final = 0.25  # of the deadline of a walk
_REMOTE_TABLE: Final = (*LLDP, 4, 1, 1)


class WalkOutcome(StrEnum):
    """How the walk of a switch ended."""

    OK = "ok"
    PARTIAL = "partial"
    """The switch gave some tables, and then stopped answering or refused the rest."""
    REFUSED = "refused"
    UNREACHABLE = "unreachable"


class WalkSession(Protocol):
    """Fetches rows from switches."""

    def fetch_rows(self, target: Target, span: ColumnSpan) -> AsyncIterator[WalkRow]:
        """Yield the rows of a span in order.

        Raises:
            SwitchSilent: no answer.
            SwitchRefused: the answer is an error or malformed.
        """
        ...


class NeighborStamp(NamedTuple):
    """The values that show whether the neighbors of a switch changed."""

    name: bytes
    up_time_cs: int
    """The time since the start of the switch, in hundredths of a second."""
    change_counters: tuple[int, ...]
    """Time of the last change of a neighbor, then the numbers of changes; the first is 0 if the
    switch does not count changes."""


@dataclass(frozen=True, slots=True)
class SwitchWalk:
    """The result of the walk of one target."""

    target: Target
    outcome: WalkOutcome
    duration_s: float
    device: Device | None = None
    """None if the switch gave nothing usable."""
    reason: str = ""
    """Why the outcome is not `ok`."""
    problems: tuple[ParseError, ...] = ()
    """Skipped parts of its tables."""
    stamp: NeighborStamp | None = None
    """At the start of the walk; None if the switch did not answer."""


async def walk_all(
    targets: Iterable[Target],
    *,
    walk: Callable[[Target], Awaitable[SwitchWalk]],
    frontier: Frontier,
    parallel: int = _MAX_PARALLEL,
) -> AsyncIterator[SwitchWalk]:
    """Yield the walks of switches and of their neighbors, each as soon as it ends.

    Args:
        targets: the first switches.
        walk: walks one switch; never raises.
        frontier: selects the neighbors that are walked too; started with the targets.
        parallel: most walks at one time.
    """
    free = asyncio.Semaphore(parallel)

    async def walk_one(target: Target) -> SwitchWalk:
        async with free:
            return await walk(target)

    order: dict[asyncio.Task[SwitchWalk], int] = {}
    due = list(targets)
    try:
        while due or order:
            for target in due:
                order[asyncio.create_task(walk_one(target))] = len(order)
            done, _ = await asyncio.wait(order, return_when=asyncio.FIRST_COMPLETED)
            ended = [task.result() for task in sorted(done, key=order.__getitem__)]
            order = {task: index for task, index in order.items() if task not in done}
            for result in ended:
                frontier.record_walk(result.target, result.device)
            due = [
                target
                for result in ended
                for target in frontier.find_next(result.target, result.device)
            ]
            for result in ended:
                yield result
    finally:
        for task in order:
            task.cancel()


async def walk_switch(
    target: Target,
    *,
    session: WalkSession,
    clock: Callable[[], float],
    deadline_s: float,
    last: SwitchWalk | None = None,
) -> SwitchWalk:
    """Walk one switch within a deadline; rows that arrived until then are used.

    Args:
        target: the switch.
        session: fetches rows.
        clock: monotonic, in seconds; for the duration.
        deadline_s: the limit of the whole walk.
        last: an earlier walk, whose device is returned if no neighbor changed since; None: all
            tables are walked.
    """
    rows: list[WalkRow] = []
    stamp: NeighborStamp | None = None
    failure: SwitchError | None = None
    started_s = clock()
    try:
        async with asyncio.timeout(deadline_s):
            stamp = await _fetch_stamp(session, target, rows)
            if last is not None and is_unchanged(last, stamp):
                return SwitchWalk(
                    target, WalkOutcome.OK, clock() - started_s, last.device, stamp=stamp
                )
            await _fetch(session, target, rows, deadline_s=deadline_s)
    except TimeoutError:
        failure = SwitchError(f"the walk did not end within {deadline_s:g} s")
    except SwitchError as error:
        failure = error
    return _build_walk(target, rows, failure=failure, duration_s=clock() - started_s, stamp=stamp)


def _build_walk(
    target: Target,
    rows: list[WalkRow],
    *,
    failure: SwitchError | None,
    duration_s: float,
    stamp: NeighborStamp | None,
) -> SwitchWalk:
    """Return the result of a walk, from the rows that arrived."""
    source = f"switch {show(target.address, 253)}"
    device, problems = parse_walk(rows, source=source, address=target.address)
    outcome, reason = _classify_outcome(device, failure)
    return SwitchWalk(
        target=target,
        outcome=outcome,
        duration_s=duration_s,
        device=device,
        reason=reason,
        problems=problems if device else (),
        stamp=stamp,
    )


def is_unchanged(last: SwitchWalk, stamp: NeighborStamp | None) -> bool:
    """Return whether the tables of neighbors are unchanged since an earlier walk.

    True only if the counter can be trusted: the earlier walk was complete, all its neighbors came
    from LLDP, and the switch did not restart, since the counter starts with the switch.
    """
    last_stamp = last.stamp
    if (
        stamp is None
        or last_stamp is None
        or last.outcome is not WalkOutcome.OK
        or last.device is None
    ):
        return False
    sources = {neighbor.source for port in last.device.ports for neighbor in port.neighbors}
    is_same = (stamp.name, stamp.change_counters) == (
        last_stamp.name,
        last_stamp.change_counters,
    ) and stamp.change_counters[0] > 0
    return is_same and last_stamp.up_time_cs <= stamp.up_time_cs and sources == {Source.LLDP}


def _classify_outcome(
    device: Device | None, failure: SwitchError | None
) -> tuple[WalkOutcome, str]:
    if device is not None:
        return (WalkOutcome.PARTIAL, str(failure)) if failure else (WalkOutcome.OK, "")
    if failure is None:
        return WalkOutcome.REFUSED, "it answers, but shows none of the tables: check its SNMP view"
    is_refusal = isinstance(failure, SwitchRefused)
    return (WalkOutcome.REFUSED if is_refusal else WalkOutcome.UNREACHABLE), str(failure)


async def _fetch_stamp(session: WalkSession, target: Target, rows: list[WalkRow]) -> NeighborStamp:
    for span in (SYSTEM_SPAN, STATS_SPAN):
        await _fetch_span(session, target, span, rows)
    cells = dict(rows)
    name, *values = (cells.get((*oid, 0)) for oid in (SYS_NAME, SYS_UP_TIME, *REMOTE_STATS))
    up_time, *stats = (value if isinstance(value, int) else 0 for value in values)
    return NeighborStamp(name if isinstance(name, bytes) else b"", up_time, tuple(stats))


async def _fetch(
    session: WalkSession, target: Target, rows: list[WalkRow], *, deadline_s: float
) -> None:
    """Add the rows of all tables.

    LLDP-V2-MIB is read only if the LLDP-MIB has no neighbors, and the table of bridge ports only if
    a neighbor is on a port without a name.
    """
    for span in BASE_SPANS:
        await _fetch_span(session, target, span, rows)
    columns = collect_columns(rows)
    ports = local_ports(columns, LLDP)
    heard = (row.number for row in remote_rows(columns)[0] if not row.is_ifindex)
    if any(is_unnamed(number, ports) for number in heard):
        await _fetch_bridge_ports(session, target, rows, deadline_s=deadline_s * _BRIDGE_SHARE)
    if not any(oid[: len(_REMOTE_TABLE)] == _REMOTE_TABLE for oid, _ in rows):
        for span in V2_SPANS:
            await _fetch_span(session, target, span, rows)


async def _fetch_bridge_ports(
    session: WalkSession, target: Target, rows: list[WalkRow], *, deadline_s: float
) -> None:
    """Add the interfaces of bridge ports, as far as the switch gives them.

    They only name ports. So a switch that hides them does not lose the rest of its walk.
    """
    try:
        async with asyncio.timeout(deadline_s):
            await _fetch_span(session, target, BRIDGE_SPAN, rows)
    except (TimeoutError, SwitchError):
        return


async def _fetch_span(
    session: WalkSession, target: Target, span: ColumnSpan, rows: list[WalkRow]
) -> None:
    async for row in session.fetch_rows(target, span):
        if len(rows) >= MAX_ROWS:
            raise SwitchRefused(f"more than {MAX_ROWS} rows: no switch has that many")
        rows.append(row)
