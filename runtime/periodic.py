"""Runs the rounds at their times until a signal says stop: the only importer of apscheduler."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC
from typing import Final

from apscheduler.events import EVENT_JOB_MAX_INSTANCES, JobSubmissionEvent
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

from runtime.clock import Clock

log = logging.getLogger(__name__)

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def run_periodically(
    tick: Callable[[], None],
    *,
    period_s: float,
    jitter_s: float,
    clock: Clock,
    stop: Callable[[], None],
) -> None:
    """Call `tick` now and every period, until SIGTERM or SIGINT; main thread only.

    Rounds never overlap: one that is late is left out. A round that runs when the signal comes
    is let finish; `stop` is called to make it short.
    """
    with _stop_signals() as wait_for_stop:
        scheduler = BackgroundScheduler(
            timezone=UTC, executors={"default": ThreadPoolExecutor(max_workers=1)}
        )
        scheduler.add_job(
            tick,
            IntervalTrigger(seconds=period_s, jitter=jitter_s or None, timezone=UTC),
            next_run_time=clock.now(),
            max_instances=1,
            coalesce=True,
            misfire_grace_time=None,
        )
        scheduler.add_listener(_tell_late, EVENT_JOB_MAX_INSTANCES)
        scheduler.start()
        log.info("agent started", extra={"period_s": period_s})
        name = wait_for_stop()
        log.info("agent stopping", extra={"signal": name})
        stop()
        scheduler.shutdown(wait=True)


def _tell_late(_event: JobSubmissionEvent) -> None:
    log.warning("round left out, the one before goes on")


@contextmanager
def _stop_signals() -> Iterator[Callable[[], str]]:
    """Yield a function that blocks until a stop signal comes and returns its name.

    The signal travels through a pipe: nothing but a write happens in the signal's own context,
    where the locks of a scheduler may be held, and no child inherits a blocked signal.
    """
    reading, writing = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(writing, False)
    before = {number: signal.signal(number, lambda *_: None) for number in STOP_SIGNALS}
    wakeup_before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)

    def wait_for_stop() -> str:
        numbers = {number.value: number.name for number in STOP_SIGNALS}
        while True:
            name = numbers.get(os.read(reading, 1)[0])
            if name:
                return name

    try:
        yield wait_for_stop
    finally:
        signal.set_wakeup_fd(wakeup_before)
        for number, action in before.items():
            signal.signal(number, action)
        os.close(reading)
        os.close(writing)
