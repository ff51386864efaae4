"""The clock: the only file that asks the machine for the time of day."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

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
