"""Walks of switches again and again: reports into the store, patience with those that fail.

A round walks the listed switches and those found from them, each at its own time: one that fails
is left alone for longer and longer, and one whose neighbors did not change is only asked that.
What a switch told last stays its report, with its time, until it tells something new.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from generator.switches.backoff import SwitchBackoff, find_due_targets
from generator.switches.config import LoadedTargets, read_targets
from generator.switches.discovery import Frontier
from generator.switches.last_reports import LastReports, ReportStore
from generator.switches.reports import derive_silent_findings
from generator.switches.targets import Target
from generator.switches.walk import WalkOutcome, WalkSession, SwitchWalk, walk_all, walk_switch
from runtime.transition_log import TransitionLog
from topology.model.errors import ConfigError, KubeError, StoreError, show
from topology.model.facts import Finding

log = logging.getLogger(__name__)

MAX_UNCHANGED: Final = 10
"""Rounds in a row that take a switch's word for it that nothing changed."""


class SwitchPoller:
    """The memory of the walks from one round to the next."""

    def __init__(  # noqa: PLR0913 - what a round needs of the world
        self,
        config: Path,
        *,
        store: ReportStore,
        period: timedelta,
        deadline: timedelta,
        now: Callable[[], datetime],
        clock: Callable[[], float],
        open_session: Callable[[], AbstractAsyncContextManager[WalkSession]],
    ) -> None:
        """Read the list of switches.

        Args:
            config: the list; read again every round.
            store: gets the reports.
            period: from one round to the next.
            deadline: for one switch; where it is longer than a period, rounds are left out.
            now: the time of day.
            clock: seconds that only go forward.
            open_session: makes what fetches rows, for one round.

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
        self._troubles: dict[Hashable, Mapping[str, object]] = {}
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[None]] | None = None
        self._reset_targets(read_targets(config))

    def _reset_targets(self, read: LoadedTargets) -> None:
        """Begin anew with a list: what was known of its switches may come from elsewhere."""
        self._read = read
        self._frontier = Frontier(read.targets.targets, read.targets.discovery)
        self._waits: dict[Target, SwitchBackoff] = {}
        self._whole: dict[Target, SwitchWalk] = {}
        self._unchanged: dict[Target, int] = {}
        self._failed: dict[Target, SwitchWalk] = {}
        self._kept = LastReports(self._store)

    def derive_findings(self) -> list[Finding]:
        """Return a finding per listed switch that never told anything; any thread may ask."""
        failed = list(self._failed.values())
        return derive_silent_findings(
            one for one in failed if one.target.is_expected and one.target not in self._kept
        )

    def tick(self) -> None:
        """Run one round; whatever goes wrong is logged and the next round tries again."""
        self._troubles = {}
        try:
            self._read_config()
            asyncio.run(self._run_round())
            self._log_failures()
            self._problems.update(self._troubles)
        except asyncio.CancelledError:
            log.info("switch walks stopped")
        except Exception as error:  # the named catch-all: the loop goes on
            log.exception("switch round failed", extra={"error": str(error)})

    def stop(self) -> None:
        """End the round in progress, from another thread; walks that ended are in the store."""
        running = self._running
        if running is not None:
            loop, task = running
            loop.call_soon_threadsafe(task.cancel)

    def _read_config(self) -> None:
        """Take over a list that changed; the last good one counts while it cannot be read."""
        try:
            read = read_targets(self._config)
        except ConfigError as error:
            self._troubles[str(error)] = {"problem": str(error)}
            return
        self._troubles |= {str(one): {"problem": str(one)} for one in read.problems}
        if read.targets != self._read.targets:
            log.info("switches listed", extra={"num": len(read.targets.targets)})
            self._reset_targets(read)

    async def _run_round(self) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine that runs has one
        self._running = (asyncio.get_running_loop(), task)
        try:
            targets = (*self._read.targets.targets, *self._frontier.discovered)
            due = find_due_targets(targets, self._waits, now_s=self._clock())
            async with self._open_session() as session:
                walk = partial(self._walk_or_check, session)
                async for found in walk_all(due, walk=walk, frontier=self._frontier):
                    self._record_walk(found)
            with self._log_store_errors():
                self._kept.withdraw_replaced()
        finally:
            self._running = None

    async def _walk_or_check(self, session: WalkSession, target: Target) -> SwitchWalk:
        """Walk a switch, or ask it whether anything changed since its tables were fetched."""
        last = self._whole.get(target)
        is_trusted = self._unchanged.get(target, 0) < MAX_UNCHANGED
        found = await walk_switch(
            target,
            session=session,
            clock=self._clock,
            deadline_s=self._deadline_s,
            last=last if is_trusted else None,
        )
        is_same = last is not None and found.device is last.device
        self._unchanged[target] = self._unchanged.get(target, 0) + 1 if is_same else 0
        return found

    def _record_walk(self, walked: SwitchWalk) -> None:
        """Remember how a walk ended, and write what it told."""
        found = self._kept.mark_lost_lldp(walked)
        target = found.target
        wait = self._waits.pop(target, SwitchBackoff())
        period_s = self.period.total_seconds()
        wait = wait.after_walk(found.outcome, now_s=self._clock(), period_s=period_s)
        if wait != SwitchBackoff():
            self._waits[target] = wait
        with self._log_store_errors():
            if found.outcome is WalkOutcome.OK:
                self._failed.pop(target, None)
                self._whole[target] = found
                self._kept.write_whole(found, time=self._render_now(), failed=self._failed)
            else:
                self._failed[target] = found
                self._kept.write_failed(found, time=self._render_now())

    @contextmanager
    def _log_store_errors(self) -> Iterator[None]:
        try:
            yield
        except (KubeError, StoreError) as error:
            self._troubles[str(error)] = {"problem": str(error)}

    def _render_now(self) -> str:
        return f"{self._now().astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"

    def _log_failures(self) -> None:
        """Tell whose walks began to fail; silence where nobody need be is none."""
        self._failures.update(
            {
                (target.address, target.port): {
                    "address": show(target.address, 253),
                    "outcome": walk.outcome.value,
                    "reason": walk.reason,
                }
                for target, walk in self._failed.items()
                if target.is_expected
                or target in self._kept
                or walk.outcome is not WalkOutcome.UNREACHABLE
            }
        )
