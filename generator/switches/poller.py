"""Walks switches periodically and writes their reports into the store.

A round walks the listed switches and the discovered ones. A switch that fails is walked less and
less often. A switch that reports unchanged neighbors is not walked again, only queried for
changes. The last report of a switch stays, with its time, until a walk gives new facts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from generator.store.fabric_store import FabricStore
from generator.switches.discovery import Frontier
from generator.switches.reports import LastReports, derive_silent_findings
from generator.switches.targets import LoadedTargets, Target, read_targets
from generator.switches.walk import SwitchWalk, WalkOutcome, WalkSession, walk_all, walk_switch
from runtime.transition_log import TransitionLog
from topology.model.errors import ConfigError, KubeError, StoreError, show
from topology.model.facts import Finding

MAX_BACKOFF_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class SwitchBackoff:
    """The failures of one switch, and when it is walked again."""

    num_failures: int = 0
    """Failed walks in a row."""
    retry_at_s: float = 0.0
    """Time of the next walk, in seconds of the clock of the walks."""

    def after_walk(self, outcome: WalkOutcome, *, now_s: float, period_s: float) -> SwitchBackoff:
        """Return the state after a walk: each failure in a row doubles the wait, up to an hour.

        If the period is longer than an hour, the wait is one period.
        """
        if outcome in {WalkOutcome.OK, WalkOutcome.PARTIAL}:
            return SwitchBackoff()
        failures = self.num_failures + 1
        max_wait_s = max(period_s, MAX_BACKOFF_S)
        return SwitchBackoff(failures, now_s + min(period_s * 2.0 ** min(failures, 32), max_wait_s))


def find_due_targets(
    targets: Iterable[Target], waits: Mapping[Target, SwitchBackoff], *, now_s: float
) -> list[Target]:
    """Return the targets to be walked now.

    Args:
        targets: all targets.
        waits: the state of targets that failed.
        now_s: the time of the same clock, in seconds.
    """
    no_wait = SwitchBackoff()
    return [target for target in targets if waits.get(target, no_wait).retry_at_s <= now_s]


log = logging.getLogger(__name__)

MAX_UNCHANGED: Final = 10
"""After this many rounds without a reported change, a switch is walked again anyway."""


class SwitchPoller:
    """Runs the rounds of walks, and holds what one round passes to the next."""

    def __init__(  # noqa: PLR0913 - the edges of a round
        self,
        config: Path,
        *,
        store: FabricStore,
        period: timedelta,
        deadline: timedelta,
        now: Callable[[], datetime],
        clock: Callable[[], float],
        open_session: Callable[[], AbstractAsyncContextManager[WalkSession]],
    ) -> None:
        """Read the list of switches.

        Args:
            config: the file with the list; read again every round.
            store: receives the reports.
            period: the time from one round to the next.
            deadline: the limit for one switch; if it exceeds the period, rounds are skipped.
            now: the wall clock.
            clock: monotonic, in seconds.
            open_session: opens the SNMP session of one round.

        Raises:
            ConfigError: the list or a secret that it names cannot be read or is wrong.
        """
        self.period = period
        self._config = config
        self._store = store
        self._deadline_s = deadline.total_seconds()
        self._now = now
        self._clock = clock
        self._open_session = open_session
        self._problems = TransitionLog(log, "switch problem", level=logging.WARNING)
        self._failures = TransitionLog(log, "switch failure", level=logging.WARNING)
        self._current_problems: dict[Hashable, Mapping[str, object]] = {}
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[None]] | None = None
        self._reset_targets(read_targets(config))

    def _reset_targets(self, loaded: LoadedTargets) -> None:
        """Start over with a new list: an address may belong to another switch now."""
        self._loaded = loaded
        self._frontier = Frontier(loaded.targets.targets, loaded.targets.discovery)
        self._waits: dict[Target, SwitchBackoff] = {}
        self._complete_walks: dict[Target, SwitchWalk] = {}
        self._unchanged: dict[Target, int] = {}
        self._failed: dict[Target, SwitchWalk] = {}
        self._last_reports = LastReports(self._store)

    def derive_findings(self) -> list[Finding]:
        """Return a finding per listed switch that never gave a report. Thread-safe."""
        failed = list(self._failed.values())
        return derive_silent_findings(
            walk
            for walk in failed
            if walk.target.is_expected and walk.target not in self._last_reports
        )

    def tick(self) -> None:
        """Run one round; an error is logged, and the next round tries again."""
        self._current_problems = {}
        try:
            self._read_config()
            asyncio.run(self._run_round())
            self._log_failures()
            self._problems.update(self._current_problems)
        except asyncio.CancelledError:
            log.info("switch walks stopped")
        except Exception as error:  # the named catch-all: the loop goes on
            log.exception("switch round failed", extra={"error": str(error)})

    def stop(self) -> None:
        """Cancel the current round, from another thread; ended walks are in the store already."""
        running = self._running
        if running is not None:
            loop, task = running
            loop.call_soon_threadsafe(task.cancel)

    def _read_config(self) -> None:
        """Load the list again if it changed; while it cannot be read, the last good one counts."""
        try:
            loaded = read_targets(self._config)
        except ConfigError as error:
            self._current_problems[str(error)] = {"problem": str(error)}
            return
        self._current_problems |= {
            str(problem): {"problem": str(problem)} for problem in loaded.problems
        }
        if loaded.targets != self._loaded.targets:
            log.info("switches listed", extra={"num": len(loaded.targets.targets)})
            self._reset_targets(loaded)

    async def _run_round(self) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a running coroutine has a task
        self._running = (asyncio.get_running_loop(), task)
        try:
            targets = (*self._loaded.targets.targets, *self._frontier.discovered)
            due = find_due_targets(targets, self._waits, now_s=self._clock())
            async with self._open_session() as session:
                walk = partial(self._walk_or_check, session)
                async for result in walk_all(due, walk=walk, frontier=self._frontier):
                    self._record_walk(result)
            with self._log_store_errors():
                self._last_reports.withdraw_replaced()
        finally:
            self._running = None

    async def _walk_or_check(self, session: WalkSession, target: Target) -> SwitchWalk:
        """Walk a switch; if it reports no change since its last walk, return the device of then."""
        last = self._complete_walks.get(target)
        is_trusted = self._unchanged.get(target, 0) < MAX_UNCHANGED
        result = await walk_switch(
            target,
            session=session,
            clock=self._clock,
            deadline_s=self._deadline_s,
            last=last if is_trusted else None,
        )
        is_same = last is not None and result.device is last.device
        self._unchanged[target] = self._unchanged.get(target, 0) + 1 if is_same else 0
        return result

    def _record_walk(self, walk: SwitchWalk) -> None:
        """Record the outcome of a walk, and write its report."""
        result = self._last_reports.mark_lost_lldp(walk)
        target = result.target
        wait = self._waits.pop(target, SwitchBackoff())
        period_s = self.period.total_seconds()
        wait = wait.after_walk(result.outcome, now_s=self._clock(), period_s=period_s)
        if wait != SwitchBackoff():
            self._waits[target] = wait
        with self._log_store_errors():
            if result.outcome is WalkOutcome.OK:
                self._failed.pop(target, None)
                self._complete_walks[target] = result
                self._last_reports.write_whole(result, time=self._render_now(), failed=self._failed)
            else:
                self._failed[target] = result
                self._last_reports.write_failed(result, time=self._render_now())

    @contextmanager
    def _log_store_errors(self) -> Iterator[None]:
        try:
            yield
        except (KubeError, StoreError) as error:
            self._current_problems[str(error)] = {"problem": str(error)}

    def _render_now(self) -> str:
        return f"{self._now().astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"

    def _log_failures(self) -> None:
        """Log switches that start or stop failing; an unlisted silent address is not a failure."""
        self._failures.update(
            {
                (target.address, target.port): {
                    "address": show(target.address, 253),
                    "outcome": walk.outcome.value,
                    "reason": walk.reason,
                }
                for target, walk in self._failed.items()
                if target.is_expected
                or target in self._last_reports
                or walk.outcome is not WalkOutcome.UNREACHABLE
            }
        )
