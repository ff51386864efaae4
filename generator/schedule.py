"""Rounds at their times: the only importer of apscheduler in the generator."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger


class Schedule:
    """Calls a function now and every period, in a thread of its own, until it is stopped.

    Calls never overlap; those that are late are made up for by one.
    """

    def __init__(
        self, tick: Callable[[], None], *, period_s: float, now: Callable[[], datetime]
    ) -> None:
        """Start; `tick` must not raise."""
        self._tick = tick
        self._busy = threading.Lock()
        self._is_stopping = False
        self._scheduler = BackgroundScheduler(
            timezone=UTC, executors={"default": ThreadPoolExecutor(max_workers=1)}
        )
        self._scheduler.add_job(
            self._run,
            IntervalTrigger(seconds=period_s, timezone=UTC),
            next_run_time=now(),
            max_instances=1,
            coalesce=True,
            misfire_grace_time=None,
        )
        self._scheduler.start()

    def stop(self, *, deadline_s: float) -> bool:
        """Make no more calls; return whether the one in progress ended before the deadline."""
        self._is_stopping = True
        self._scheduler.shutdown(wait=False)
        is_idle = self._busy.acquire(timeout=deadline_s)
        if is_idle:
            self._busy.release()
        return is_idle

    def _run(self) -> None:
        with self._busy:
            if not self._is_stopping:
                self._tick()
