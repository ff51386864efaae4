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
"""A report is stale when it is older than this many collection periods."""


def derive_freshness_findings(
    reports: Sequence[Report],
    *,
    listed: Collection[str],
    now: datetime,
    period: timedelta | None,
    advice: str = "Check the agent there.",
) -> list[Finding]:
    """Return a finding per listed node without a report, and per stale report.

    A report that is as far ahead of the clock is stale too: its age would never show.

    Args:
        reports: all reports. Without any report nothing is known, so no node is silent.
        listed: names of the nodes that should report.
        now: with a time zone.
        period: how often agents collect; None if ages mean nothing, as in saved reports.
        advice: what to do about a stale report.
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
            f"Node {name} has sent no report; its place is known only from what other devices "
            "report. Check that the agent runs there."
        ),
    )


def _build_stale_finding(report: Report, age: timedelta, advice: str) -> Finding:
    name, age_s = report.metadata.name, int(age.total_seconds())
    state, repair = (
        (f"is {age_s} s old", advice)
        if age_s >= 0
        else (f"is {-age_s} s ahead of the clock here", "Check the clocks (NTP).")
    )
    return _build_report_finding(
        report, f"The report of {show(name, 253)} {state}; its facts still count. {repair}"
    )


def _build_report_finding(report: Report, message: str) -> Finding:
    return Finding(
        kind=FindingKind.STALE_REPORT,
        device=report.metadata.name,
        port=None,
        severity=Severity.WARNING,
        message=message,
        since=report.status.observed_at,
    )


def derive_unready_findings(
    reports: Iterable[Report], unready: Collection[str]
) -> tuple[Finding, ...]:
    """Return a finding per report whose agent is not ready.

    Nodes without a report are silent nodes, which `derive_freshness_findings` returns.

    Args:
        reports: all reports.
        unready: names of nodes whose agent is not ready.
    """
    return tuple(
        _build_report_finding(
            report,
            f"The agent on {show(report.metadata.name, 253)} is not ready, so its report may "
            "be old; its facts still count. Check the status and the log of its pod.",
        )
        for report in reports
        if report.device_kind is not None and report.metadata.name in unready
    )


def derive_walk_findings(reports: Iterable[Report]) -> list[Finding]:
    """Return a finding per report of a switch whose last walk failed or was incomplete."""
    return [
        _build_report_finding(
            report,
            f"The walk of switch {show(device.name or report.metadata.name)} is incomplete: "
            f"{row.message}. The facts of earlier walks still count. Check that the switch "
            "answers SNMP.",
        )
        for report in reports
        for row in report.status.collectors
        if row.name == COLLECTOR and row.outcome == "failed"
        for device in (report.device,)
        if device is not None
    ]


class Periods(NamedTuple):
    """How often facts are collected: decides which reports are stale."""

    agents: timedelta | None
    """Between collections of agents; None if the state of their pods shows whether they collect."""
    switches: timedelta | None = None
    """Between walks of a switch; None if this server walks none, so ages mean nothing."""


def derive_report_findings(
    inputs: Inputs, *, now: datetime, periods: Periods | None
) -> list[Finding]:
    """Return the findings about missing or stale reports, failed walks and refused sweeps.

    Args:
        inputs: the reports, and the inventory of nodes that should report.
        now: with a time zone.
        periods: how often facts are collected; None for saved reports.
    """
    node_names = [node.name for node in inputs.inventory.nodes] if inputs.inventory else []
    refused = derive_refusal_findings(inputs.reports, unknown=inputs.unknown_subnets)
    failed = derive_walk_findings(inputs.reports)
    failed_devices = {finding.device for finding in failed}
    agents = [report for report in inputs.reports if not is_switch_report(report)]
    walked = [report for report in inputs.reports if is_switch_report(report)]
    period = periods.agents if periods else None
    agent_findings = derive_freshness_findings(agents, listed=node_names, now=now, period=period)
    stale = derive_freshness_findings(
        walked,
        listed=(),
        now=now,
        period=periods.switches if periods else None,
        advice="Check that it answers SNMP. If it is gone for good, remove its report.",
    )
    new_stale = (finding for finding in stale if finding.device not in failed_devices)
    return [*refused, *failed, *agent_findings, *new_stale]
