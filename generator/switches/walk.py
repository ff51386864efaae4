"""Walking many switches at once: outcomes, deadlines, and what need not be walked again.

Every switch has a deadline and an outcome of its own, and its outcome is told as soon as it is
there, so a dead one costs a place among the parallel walks for a few seconds and delays nobody.
How rows are fetched is the session's.
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
    LLDP,
    REMOTE_STATS,
    STATS_SPAN,
    SYS_NAME,
    SYS_UP_TIME,
    SYSTEM_SPAN,
    V2_SPANS,
    ColumnSpan,
    WalkRow,
)
from topology.sources.lldp_mib.walk import parse_walk

MAX_ROWS: Final = 100_000  # a switch of 4096 ports has half of that
MAX_PARALLEL: Final = 32
_REMOTE_TABLE: Final = (*LLDP, 4, 1, 1)


class WalkOutcome(StrEnum):
    """How the walk of a switch ended."""

    OK = "ok"
    PARTIAL = "partial"
    """It told something and then fell silent, or refused the rest."""
    REFUSED = "refused"
    UNREACHABLE = "unreachable"


class WalkSession(Protocol):
    """Fetches rows from switches."""

    def fetch_rows(self, target: Target, span: ColumnSpan) -> AsyncIterator[WalkRow]:
        """Yield the rows of a span in order.

        Raises:
            SwitchSilent: no answer.
            SwitchRefused: an answer that refuses, or makes no sense.
        """
        ...


class NeighborStamp(NamedTuple):
    """What tells whether a switch still has the neighbors that it had."""

    name: bytes
    up_time_cs: int
    """Hundredths of a second."""
    change_counters: tuple[int, ...]
    """When any neighbor changed, and how many came and went; the first is 0 where nothing tells."""


@dataclass(frozen=True, slots=True)
class SwitchWalk:
    """What came of one address."""

    target: Target
    outcome: WalkOutcome
    duration_s: float
    device: Device | None = None
    """None where nothing usable was told."""
    reason: str = ""
    """Why it is not `ok`."""
    problems: tuple[ParseError, ...] = ()
    """What of its tables was skipped."""
    stamp: NeighborStamp | None = None
    """As it was when the walk began; None where the switch did not tell."""


async def walk_all(
    targets: Iterable[Target],
    *,
    walk: Callable[[Target], Awaitable[SwitchWalk]],
    frontier: Frontier,
    parallel: int = MAX_PARALLEL,
) -> AsyncIterator[SwitchWalk]:
    """Yield the walks of switches, and of those that they hear, as each of them ends.

    Args:
        targets: where to start.
        walk: walks one switch, and does not fail.
        frontier: which neighbors are walked too; it knows the targets.
        parallel: walks at one time.
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
            order = {task: at for task, at in order.items() if task not in done}
            for found in ended:
                frontier.record_walk(found.target, found.device)
            due = [
                heard for found in ended for heard in frontier.find_next(found.target, found.device)
            ]
            for found in ended:
                yield found
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
    """Walk one switch within a deadline; what it told until then is kept.

    Args:
        target: the switch.
        session: fetches rows.
        clock: seconds that only go forward, for the duration.
        deadline_s: from now on.
        last: an earlier walk, whose device is returned where no neighbor changed since; None: all
            tables are walked.
    """
    rows: list[WalkRow] = []
    stamp: NeighborStamp | None = None
    failure: SwitchError | None = None
    began = clock()
    try:
        async with asyncio.timeout(deadline_s):
            stamp = await _fetch_stamp(session, target, rows)
            if last is not None and is_unchanged(last, stamp):
                return SwitchWalk(target, WalkOutcome.OK, clock() - began, last.device, stamp=stamp)
            await _fetch(session, target, rows)
    except TimeoutError:
        failure = SwitchError(f"not done within {deadline_s:g} s")
    except SwitchError as error:
        failure = error
    return _build_walk(target, rows, failure=failure, duration_s=clock() - began, stamp=stamp)


def _build_walk(
    target: Target,
    rows: list[WalkRow],
    *,
    failure: SwitchError | None,
    duration_s: float,
    stamp: NeighborStamp | None,
) -> SwitchWalk:
    """Return what the rows that came tell."""
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
    """Return whether the tables of neighbors are as they were at an earlier walk.

    Only where the counter is known to tell: the walk was whole, LLDP alone heard somebody, and the
    switch did not restart, for it counts from its start.
    """
    then = last.stamp
    if stamp is None or then is None or last.outcome is not WalkOutcome.OK or last.device is None:
        return False
    sources = {heard.source for port in last.device.ports for heard in port.neighbors}
    is_same = (stamp.name, stamp.change_counters) == (
        then.name,
        then.change_counters,
    ) and stamp.change_counters[0] > 0
    return is_same and then.up_time_cs <= stamp.up_time_cs and sources == {Source.LLDP}


def _classify_outcome(
    device: Device | None, failure: SwitchError | None
) -> tuple[WalkOutcome, str]:
    if device is not None:
        return (WalkOutcome.PARTIAL, str(failure)) if failure else (WalkOutcome.OK, "")
    if failure is None:
        return WalkOutcome.REFUSED, "it answers, but shows none of the tables: check its view"
    is_refusal = isinstance(failure, SwitchRefused)
    return (WalkOutcome.REFUSED if is_refusal else WalkOutcome.UNREACHABLE), str(failure)


async def _fetch_stamp(session: WalkSession, target: Target, rows: list[WalkRow]) -> NeighborStamp:
    for span in (SYSTEM_SPAN, STATS_SPAN):
        await _fetch_span(session, target, span, rows)
    cells = dict(rows)
    name, *numbers = (cells.get((*at, 0)) for at in (SYS_NAME, SYS_UP_TIME, *REMOTE_STATS))
    up_time, *stats = (one if isinstance(one, int) else 0 for one in numbers)
    return NeighborStamp(name if isinstance(name, bytes) else b"", up_time, tuple(stats))


async def _fetch(session: WalkSession, target: Target, rows: list[WalkRow]) -> None:
    """Add the rows of all tables; those of LLDP-V2-MIB where the LLDP-MIB has no neighbors."""
    for span in BASE_SPANS:
        await _fetch_span(session, target, span, rows)
    if not any(oid[: len(_REMOTE_TABLE)] == _REMOTE_TABLE for oid, _ in rows):
        for span in V2_SPANS:
            await _fetch_span(session, target, span, rows)


async def _fetch_span(
    session: WalkSession, target: Target, span: ColumnSpan, rows: list[WalkRow]
) -> None:
    async for row in session.fetch_rows(target, span):
        if len(rows) >= MAX_ROWS:
            raise SwitchRefused(f"more than {MAX_ROWS} rows: no switch has that many")
        rows.append(row)
