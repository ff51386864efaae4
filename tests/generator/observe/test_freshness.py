"""Reports that are missing, stale or dated ahead of our clock."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from generator.observe.freshness import derive_freshness_findings, derive_sweep_time_findings
from tests.effort import examples
from tests.generator.ingest.test_claims import NOW, PERIOD, report
from tests.packed_reports import packed
from topology.model.facts import FindingKind, PortName
from topology.reports.neighbor_report import ReportStatus
from topology.reports.observed_time import parse_observed_at
from topology.reports.sweep_parts import split_sweep


@pytest.mark.parametrize(
    ("age", "is_stale"),
    [
        (timedelta(seconds=180), False),
        (timedelta(seconds=181), True),
        (timedelta(seconds=-180), False),
        (timedelta(days=-1), True),
        (None, True),
    ],
    ids=["three periods old", "older", "slightly ahead", "from the future", "of unknown age"],
)
def test_it_finds_a_stale_report(age: timedelta | None, *, is_stale: bool) -> None:
    found = derive_freshness_findings(packed([report("a", age)]), listed=(), now=NOW, period=PERIOD)
    assert [one.kind for one in found] == [FindingKind.STALE_REPORT] * is_stale


@pytest.mark.parametrize(
    "text",
    ["yesterday", "2026-11-21T11:00:00", "\x1b", "", "0000-01-01T00:00:00Z",
     "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "1970-01-01T00:00:00Z",
     "9999-12-31T23:59:59-23:59", "2099-01-01T00:00:00Z", "1763722800", "2026-11-21"],
)  # fmt: skip
def test_a_report_without_a_usable_time_is_stale(text: str) -> None:
    odd = structs.replace(report("a"), status=ReportStatus(observed_at=text))
    (found,) = derive_freshness_findings(packed([odd]), listed=(), now=NOW, period=PERIOD)
    assert found.kind is FindingKind.STALE_REPORT
    assert found.message.isprintable()


@given(st.text(max_size=40) | st.datetimes().map(str) | st.none())
@settings(max_examples=examples(200))
def test_a_report_is_fresh_or_stale_but_never_of_unknown_age(text: str | None) -> None:
    odd = structs.replace(report("a"), status=ReportStatus(observed_at=text))
    found = derive_freshness_findings(packed([odd]), listed=(), now=NOW, period=PERIOD)
    observed = parse_observed_at(text)
    assert bool(found) is (observed is None or abs(NOW - observed) > 3 * PERIOD)


def test_an_unusable_time_is_a_finding_even_where_ages_mean_nothing() -> None:
    odd = structs.replace(report("a"), status=ReportStatus(observed_at="yesterday"))
    (found,) = derive_freshness_findings(packed([odd]), listed=(), now=NOW, period=None)
    assert "unusable time 'yesterday'" in found.message


def test_it_ignores_the_age_of_saved_reports() -> None:
    old = report("a", timedelta(days=100))
    assert derive_freshness_findings(packed([old]), listed=(), now=NOW, period=None) == []


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
        packed([report(name) for name in reports]), listed=["c", "b", "a"], now=NOW, period=None
    )
    assert [(one.kind, one.device) for one in found] == [
        (FindingKind.SILENT_NODE, name) for name in silent
    ]


def test_a_silent_node_without_any_link_may_be_off() -> None:
    off, silent = derive_freshness_findings(
        packed([report("a")]), listed=["b", "c"], now=NOW, period=None, unlinked=["b"]
    )
    assert off.message == (
        "Node b sends no report and has no link on any port: check that it is powered."
    )
    assert off.ports == (PortName("b", ""),)
    assert silent.ports == ()


@pytest.mark.parametrize("period", [None, PERIOD], ids=["saved", "served"])
@pytest.mark.parametrize("text", ["yesterday", "0000-01-01T00:00:00Z", "\x1b", "2026-11-21"])
def test_a_sweep_without_a_usable_time_is_one_finding_of_its_node(
    text: str, period: timedelta | None
) -> None:
    parts = [
        structs.replace(part, status=ReportStatus(observed_at=text))
        for subnet in ("fe80000000000000", "fe80000000000001")
        for part in split_sweep("x" * 9, node="a", subnet=subnet)
    ]
    found = list(derive_sweep_time_findings(packed(parts), now=NOW, period=period))
    assert [(one.kind, one.device) for one in found] == [(FindingKind.STALE_REPORT, "a")]
    assert "unusable time" in found[0].message
    assert found[0].message.isprintable()


@pytest.mark.parametrize(("period", "num_found"), [(None, 0), (PERIOD, 1)])
def test_only_a_saved_sweep_needs_no_time(period: timedelta | None, num_found: int) -> None:
    parts = split_sweep("x" * 9, node="a", subnet="fe80000000000000")
    parts = [structs.replace(part, status=ReportStatus()) for part in parts]
    assert len(list(derive_sweep_time_findings(packed(parts), now=NOW, period=period))) == num_found
