"""Jobs that run every period, in a thread of their own: the only file that imports apscheduler."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Final

from apscheduler.events import EVENT_JOB_MAX_INSTANCES, JobSubmissionEvent
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger

log = logging.getLogger(__name__)
_MAX_CHECK_S: Final = 5.0
"""The time from one look at the clock to the next."""
_MAX_STEP_S: Final = 0.5
"""A larger step back is no usual correction of the clock."""


class PeriodicJob:
    """Calls a function now and every period, in one thread, until it is stopped.

    A call may request the next call before the period is over, and so may any thread with `wake`.
    Calls never overlap: a periodic call that is due while another runs is skipped, and a call that
    `wake` requested runs afterwards.
    """

    def __init__(
        self,
        tick: Callable[[], float | None],
        *,
        period_s: float,
        now: Callable[[], datetime],
        jitter_s: float = 0.0,
    ) -> None:
        """Start.

        Args:
            tick: the function; must not raise. It may return the seconds until its next call.
            period_s: the time from one call to the next.
            now: the wall clock.
            jitter_s: a random share of this is added to each period, so that many processes do
                not act at the same moment.
        """
        self._tick = tick
        self._period_s = period_s
        self._now = now
        self._busy = threading.Lock()
        self._due_lock = threading.Lock()
        self._due: datetime | None = None
        """The time of an early call that was requested, or None."""
        self._is_stopping = False
        self._stopped = threading.Event()
        self._scheduler = BackgroundScheduler(
            timezone=UTC, executors={"default": ThreadPoolExecutor(max_workers=1)}
        )
        self._scheduler.add_job(
            self._run,
            _SkippingTrigger(seconds=period_s, jitter=jitter_s or None, timezone=UTC),
            next_run_time=now(),
            max_instances=1,
            coalesce=True,
            misfire_grace_time=None,
        )
        self._scheduler.add_listener(_log_skipped, EVENT_JOB_MAX_INSTANCES)
        self._scheduler.start()
        threading.Thread(target=self._watch_clock, name="clock watch", daemon=True).start()

    def wake(self, delay_s: float) -> None:
        """Request a call within some seconds; one call serves all requests before it starts."""
        due = self._now() + timedelta(seconds=delay_s)
        with self._due_lock:
            if self._is_stopping or (self._due is not None and self._due <= due):
                return
            self._due = due
            self._scheduler.add_job(
                self._run,
                DateTrigger(due, timezone=UTC),
                id="sooner",
                replace_existing=True,
                max_instances=2,  # a call that has not quite ended may request it
                misfire_grace_time=None,
            )

    def stop(self, *, deadline_s: float | None = None) -> bool:
        """Make no more calls, and wait for the call in progress.

        Args:
            deadline_s: how long to wait; None waits until the call ends.

        Returns:
            Whether the call in progress ended before the deadline.
        """
        with self._due_lock:
            self._is_stopping = True
        self._stopped.set()
        self._scheduler.shutdown(wait=False)
        is_idle = self._busy.acquire(timeout=-1 if deadline_s is None else deadline_s)
        if is_idle:
            self._busy.release()
        return is_idle

    def _run(self) -> None:
        with self._busy:
            with self._due_lock:
                self._due = None  # changes from now on need another call
            sooner_s = None if self._is_stopping else self._tick()
        if sooner_s is not None and sooner_s < self._period_s:
            self.wake(sooner_s)

    def _watch_clock(self) -> None:
        """Call at once after the clock was set back, until the job is stopped.

        The library plans by the time of day, so after a moment with a clock that was ahead it would
        wait until that time comes again.
        """
        check_s = min(self._period_s, _MAX_CHECK_S)
        offset_s = self._now().timestamp() - monotonic()
        while not self._stopped.wait(check_s):
            earlier_s, offset_s = offset_s, self._now().timestamp() - monotonic()
            if earlier_s - offset_s > _MAX_STEP_S:
                log.warning("clock set back", extra={"seconds": round(earlier_s - offset_s)})
                for job in self._scheduler.get_jobs():
                    with suppress(JobLookupError):  # it was due meanwhile
                        job.modify(next_run_time=self._now())


class _SkippingTrigger(IntervalTrigger):  # type: ignore[misc] # the library has no types
    """An interval that skips all missed calls but one.

    APScheduler lists all missed calls, so a clock that jumps by years would fill the memory.
    """

    def get_next_fire_time(
        self, previous_fire_time: datetime | None, now: datetime
    ) -> datetime | None:
        """Return the time of the next call."""
        if previous_fire_time is not None:
            previous_fire_time = max(previous_fire_time, now - self.interval)
        found: datetime | None = super().get_next_fire_time(previous_fire_time, now)
        return found


def _log_skipped(_event: JobSubmissionEvent) -> None:
    log.warning("round skipped: previous still running")
