"""Times in reports and objects: the one reader of them. Pure.

A time is written by another machine or by a person. It is usable if it can be compared with our
clock, and it is ahead if our clock has not reached it yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

_MIN_YEAR: Final = 2000
"""Reports are younger; an earlier time is that of a clock that was never set."""


CLOCK_TOLERANCE: Final = timedelta(minutes=5)
"""A time that is further ahead of our clock was not observed yet."""


def parse_observed_at(text: str | None) -> datetime | None:
    """Return the time of a report in UTC, None if it is absent or cannot be compared with a clock.

    A time without a zone cannot be compared, because nobody knows which zone its writer is in.
    """
    try:
        observed = datetime.fromisoformat(text or "")  # noqa: TID251 - the one reader of times
        if observed.tzinfo is None or observed.year < _MIN_YEAR:
            return None
        return observed.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def is_ahead(text: str | None, now: datetime | None) -> bool:
    """Return whether a time is too far ahead of our clock; never if `now` is None."""
    observed = parse_observed_at(text)
    return observed is not None and now is not None and observed > now + CLOCK_TOLERANCE


def find_latest(texts: Iterable[str | None]) -> str:
    """Return the text with the latest usable time; empty if none is usable."""
    usable = [(time, text) for text in texts if text and (time := parse_observed_at(text))]
    return max(usable)[1] if usable else ""
