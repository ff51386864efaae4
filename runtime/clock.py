"""The clock: the only file that asks the machine for the time of day."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Final, NamedTuple, Protocol

log = logging.getLogger(__name__)

JUMP_COUNTS_AFTER_S: Final = 3600.0
"""The default window of the change budget: after it, a jump ends no window early."""
MAX_STEP: Final = timedelta(minutes=1)
"""Corrections of the clock that are no jump: all of an hour together."""

Monotonic = Callable[[], float]
"""Returns seconds since a fixed moment, which never go back, as `time.monotonic` does."""


class Clock(Protocol):
    """A source of both kinds of time."""

    def now(self) -> datetime:
        """Return the time of day in UTC."""

    def monotonic(self) -> float:
        """Return seconds since some fixed moment, which never go back."""


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """Return the time of day in UTC."""
        return utc_now()

    def monotonic(self) -> float:
        """Return seconds since about the start of the machine."""
        return time.monotonic()


def utc_now() -> datetime:
    """Return the time of day of this machine in UTC."""
    return datetime.now(UTC)  # noqa: TID251 - the only place


class SteadyTime:
    """The time of day of a server: jumps that do not last are left out.

    A clock that is ahead for a moment would make everything old at once: reservations and the
    change budget end, held plans are released, and the history is forgotten. A clock that is behind
    for a moment does the same once it is back, because what began meanwhile has a time that is too
    early. So a jump counts only once it has lasted for `JUMP_COUNTS_AFTER_S` of the monotonic
    clock. A reading is compared with the time that held for the last such span, not with the last
    reading, so a jump made of small steps is noticed too. Several threads may call it.
    """

    def __init__(self, now: Callable[[], datetime], monotonic: Monotonic) -> None:
        """Believe the present time of day."""
        self._now = now
        self._monotonic = monotonic
        self._lock = Lock()
        now_s = monotonic()
        self._start = now() - timedelta(seconds=now_s)
        """The time of day at 0 of the monotonic clock, as it is believed."""
        self._reading = _Reading(now_s, self._start)
        self._has_jumped = False

    def __call__(self) -> datetime:
        """Return the time of day in UTC."""
        with self._lock:
            now, now_s = self._now(), self._monotonic()
            start = now - timedelta(seconds=now_s)
            if abs(start - self._reading.start) > MAX_STEP:  # yet another time lasts from now on
                self._reading = _Reading(now_s, start)
            elif now_s - self._reading.since_s >= JUMP_COUNTS_AFTER_S:
                self._start, self._reading = start, _Reading(now_s, start)
            self._note_jump(start)
            return self._start + timedelta(seconds=now_s) if self._has_jumped else now

    def latest(self) -> datetime:
        """Return the latest time that may be right: a later date is certainly ahead."""
        return max(self(), self._now())

    def _note_jump(self, start: datetime) -> None:
        """Note whether the clock is away from the believed time; log that it left it."""
        has_jumped = abs(start - self._start) > MAX_STEP
        if has_jumped and not self._has_jumped:
            ahead_s = (start - self._start).total_seconds()
            fields = {"ahead_s": ahead_s, "counts_after_s": JUMP_COUNTS_AFTER_S}
            log.warning("time of day jumped", extra=fields)
        self._has_jumped = has_jumped


class _Reading(NamedTuple):
    """A time of day that the clock has shown since a moment, give or take `MAX_STEP`."""

    since_s: float
    """The time of the monotonic clock."""
    start: datetime
    """The time of day at 0 of the monotonic clock, according to it."""
