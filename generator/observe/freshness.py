"""Findings about reports that are missing, too old or incomplete: `silent-node`, `stale-report`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from generator.ingest.inputs import Inputs
from generator.ingest.subnets import derive_refusal_findings
from generator.switches.reports import COLLECTOR, is_switch_report
from topology.model.errors import show
from topology.model.facts import Finding, FindingKind, Severity
from topology.reports.compact_reports import Report

STALE_PERIODS = 3
"""A report is stale when it is older than so many collection periods."""


def derive_freshness_findings(
    reports: Sequence[Report],
    *,
    listed: Collection[str],
    now: datetime,
    period: timedelta | None,
    advice: str = "Check the agent there.",
) -> list[Finding]:
    """Return a finding per listed node without any report, and per report that is too old.

    One as far ahead of the time counts as too old: nobody would see it grow old.

    Args:
        reports: all reports at hand; without any of them nothing is known, so nobody is silent.
        listed: names of the nodes that should report.
        now: with a time zone.
        period: how often agents collect; None where ages mean nothing, as in saved reports.
        advice: what to do about a report that is too old.
    """
    names = {report.metadata.name for report in reports if report.device_kind is not None}
    findings = [_build_silent_finding(name) for name in sorted(set(listed) - names) if names]
    if period is not None:
        limit = STALE_PERIODS * period
        for report in reports:
            age = _compute_age(report, now)
            if age is not None and abs(age) > limit and report.device_kind is not None:
                findings.append(_build_stale_finding(report, age, advice))
    return findings


def _compute_age(report: Report, now: datetime) -> timedelta | None:
    try:
        observed = datetime.fromisoformat(report.status.observed_at or "")
    except ValueError:
        return None
    return None if observed.tzinfo is None else now - observed


def _build_silent_finding(name: str) -> Finding:
    return Finding(
        kind=FindingKind.SILENT_NODE,
        device=name,
        port=None,
        severity=Severity.WARNING,
        message=(
            f"Node {name} has sent no report; it is placed only as far as others see it. "
            "Check that the agent runs there."
        ),
    )


def _build_stale_finding(report: Report, age: timedelta, advice: str) -> Finding:
    name, age_s = report.metadata.name, int(age.total_seconds())
    what, advised = (
        (f"is {age_s} s old", advice)
        if age_s >= 0
        else (f"is {-age_s} s ahead of the clock here", "Check the clocks (NTP).")
    )
    return _stale_report(
        report, f"The report of {show(name, 253)} {what}; its facts still count. {advised}"
    )


def _stale_report(report: Report, message: str) -> Finding:
    return Finding(
        kind=FindingKind.STALE_REPORT,
        device=report.metadata.name,
        port=None,
        severity=Severity.WARNING,
        message=message,
        since=report.status.observed_at,
    )


def derive_unready_findings(
    reports: Iterable[Report], ailing: Collection[str]
) -> tuple[Finding, ...]:
    """Return a finding per report whose agent is not ready; of nodes without one others tell.

    Args:
        reports: all that there are.
        ailing: names of nodes.
    """
    return tuple(
        _stale_report(
            report,
            f"The agent on {show(report.metadata.name, 253)} is not ready, so its report may "
            "be old; its facts still count. See what its pod says.",
        )
        for report in reports
        if report.device_kind is not None and report.metadata.name in ailing
    )


def derive_walk_findings(reports: Iterable[Report]) -> list[Finding]:
    """Return a finding per report whose switch did not tell everything the last time."""
    return [
        _stale_report(
            report,
            f"Switch {show(device.name or report.metadata.name)} was not walked "
            f"to the end: {row.message}. What it told before still counts. Check that it "
            "answers SNMP.",
        )
        for report in reports
        for row in report.status.collectors
        if row.name == COLLECTOR and row.outcome == "failed"
        for device in (report.device,)
        if device is not None
    ]


class Periods(NamedTuple):
    """How often facts are collected, to judge the age of reports by."""

    agents: timedelta | None
    """Between collections of agents; None: their pods tell whether they collect."""
    switches: timedelta | None = None
    """Between walks of a switch; None: nobody walks them, and their age means nothing."""


def derive_report_findings(
    inputs: Inputs, *, now: datetime, periods: Periods | None
) -> list[Finding]:
    """Return what the reports lack: those missing or too old, and collectors that failed.

    Args:
        inputs: the reports, and the inventory of who should report.
        now: with a time zone.
        ages: None for saved reports.
    """
    listed = [node.name for node in inputs.inventory.nodes] if inputs.inventory else []
    refused = derive_refusal_findings(inputs.reports, unknown=inputs.unknown_subnets)
    failed = derive_walk_findings(inputs.reports)
    found = [*refused, *failed]
    names = {finding.device for finding in failed}
    agents = [report for report in inputs.reports if not is_switch_report(report)]
    walked = [report for report in inputs.reports if is_switch_report(report)]
    period = periods.agents if periods else None
    found += derive_freshness_findings(agents, listed=listed, now=now, period=period)
    stale = derive_freshness_findings(
        walked,
        listed=(),
        now=now,
        period=periods.switches if periods else None,
        advice="Check that it answers SNMP; where it is gone for good, remove its report.",
    )
    return [*found, *(one for one in stale if one.device not in names)]
