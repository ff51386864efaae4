"""Reports that are missing, stale or dated ahead of our clock."""

from __future__ import annotations

from datetime import timedelta

import pytest

from generator.observe.freshness import derive_freshness_findings
from tests.generator.ingest.test_claims import NOW, PERIOD, report
from topology.model.facts import FindingKind
from topology.reports.neighbor_report import ReportStatus


@pytest.mark.parametrize(
    ("age", "is_stale"),
    [
        (timedelta(seconds=180), False),
        (timedelta(seconds=181), True),
        (timedelta(seconds=-180), False),
        (timedelta(days=-1), True),
        (None, False),
    ],
    ids=["three periods old", "older", "slightly ahead", "from the future", "of unknown age"],
)
def test_it_finds_a_stale_report(age: timedelta | None, *, is_stale: bool) -> None:
    found = derive_freshness_findings([report("a", age)], listed=(), now=NOW, period=PERIOD)
    assert [one.kind for one in found] == [FindingKind.STALE_REPORT] * is_stale


@pytest.mark.parametrize("text", ["yesterday", "2026-11-21T11:00:00", "\x1b", ""])
def test_it_ignores_an_unreadable_time(text: str) -> None:
    odd = report("a").model_copy(update={"status": ReportStatus(observed_at=text)})
    assert derive_freshness_findings([odd], listed=(), now=NOW, period=PERIOD) == []


def test_it_ignores_the_age_of_saved_reports() -> None:
    old = report("a", timedelta(days=100))
    assert derive_freshness_findings([old], listed=(), now=NOW, period=None) == []


@pytest.mark.parametrize(
    ("reports", "silent"),
    [
        (["a"], ["b", "c"]),
        (["a", "b", "c", "d"], []),
        ([], []),
    ],
    ids=["the listed nodes without one", "no node when all reported", "no node without any report"],
)
def test_it_calls_silent(reports: list[str], silent: list[str]) -> None:
    found = derive_freshness_findings(
        [report(name) for name in reports], listed=["c", "b", "a"], now=NOW, period=None
    )
    assert [(one.kind, one.device) for one in found] == [
        (FindingKind.SILENT_NODE, name) for name in silent
    ]
