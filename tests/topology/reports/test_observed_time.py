"""The one reader of times: what is usable, what is ahead, what is latest."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology.reports.observed_time import CLOCK_TOLERANCE, find_latest, is_ahead, parse_observed_at

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
UNUSABLE = [
    None, "", "yesterday", "2026-07-01", "2026-07-01T12:00:00", "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00+23:59", "1970-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "1782907200",
]  # fmt: skip


@pytest.mark.parametrize("text", UNUSABLE)
def test_it_reads_no_time_from(text: str | None) -> None:
    assert parse_observed_at(text) is None
    assert not is_ahead(text, NOON)


@given(st.text() | st.datetimes(timezones=st.timezones() | st.none()).map(str))
def test_any_text_has_a_time_in_utc_or_none(text: str) -> None:
    found = parse_observed_at(text)
    assert found is None or found.tzinfo is UTC


@given(st.timedeltas(timedelta(days=-999), timedelta(days=999)), st.integers(-23, 23))
def test_a_time_is_ahead_beyond_the_tolerance_in_any_zone(age: timedelta, hours: int) -> None:
    text = (NOON + age).astimezone(timezone(timedelta(hours=hours))).isoformat()
    assert is_ahead(text, NOON) == (age > CLOCK_TOLERANCE)
    assert not is_ahead(text, None)


def test_the_latest_is_chosen_by_time_and_not_by_text() -> None:
    late, early = "2026-07-01T11:00:00Z", "2026-07-01T12:00:00+02:00"
    assert find_latest([early, "yesterday", None, late, "1999-01-01T00:00:00Z"]) == late
    assert find_latest(UNUSABLE) == ""
