"""The time of day of this machine, for those who pass it on to what is pure."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    """Return the time in UTC."""
    return datetime.now(UTC)  # noqa: TID251 - the one place
