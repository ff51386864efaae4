"""The time of a report: when its facts were observed. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

_MIN_YEAR: Final = 2000
"""Reports are younger; an earlier time is that of a clock that was never set."""


def parse_observed_at(text: str | None) -> datetime | None:
    """Return the time of a report in UTC, None if it is absent or cannot be compared with a clock.

    A time without a zone cannot be compared, because nobody knows which zone its writer is in.
    """
    try:
        observed = datetime.fromisoformat(text or "")
        if observed.tzinfo is None or observed.year < _MIN_YEAR:
            return None
        return observed.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
