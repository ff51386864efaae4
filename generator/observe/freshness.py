"""Findings about reports that are missing, too old or incomplete: `silent-node`, `stale-report`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from generator.ingest.inputs import Inputs
from generator.ingest.subnets import derive_refusal_findings
from generator.observe.plan_blockers import derive_inventory_findings
from topology.model.errors import show
from topology.model.facts import Finding, FindingKind, PortName, Severity
from topology.reports.observed_time import parse_observed_at
from topology.reports.packed_reports import SNMP_COLLECTOR, PackedReport

STALE_PERIODS = 3
"""A report is stale when it is older than this many collection periods."""


def derive_freshness_findings(
    reports: Sequence[PackedReport],
    *,
    listed: Collection[str],
    now: datetime,
    period: timedelta | None,
    advice: str = "Check the agent there.",
    unlinked: Collection[str] = (),
) -> list[Finding]:
    """Return a finding per listed node without a report, and per stale report.

    A report is also stale if its time is as far ahead of the clock, or is absent or unusable: its
    age would never show.

    Args:
        reports: all reports. Without any report nothing is known, so no node is silent.
        listed: names of the nodes that should report.
        now: the current time, with a time zone.
        period: how often agents collect; None if ages mean nothing, as in saved reports.
        advice: how to mend a stale report.
        unlinked: names of the nodes that surely have no link on any port.
    """
    names = {report.name for report in reports if report.device_kind is not None}
    silent = sorted(set(listed) - names) if names else []
    findings = [_build_silent_finding(name, is_unlinked=name in unlinked) for name in silent]
    limit = None if period is None else STALE_PERIODS * period
    findings += (
        _build_stale_finding(report, now, advice)
        for report in reports
        if report.device_kind is not None and not _has_good_time(report, now, limit)
    )
    return findings


def derive_sweep_time_findings(
    reports: Iterable[PackedReport], *, now: datetime, period: timedelta | None
) -> Iterator[Finding]:
    """Yield a finding per node with a sweep whose time is unusable: its age would never show.

    Args:
        reports: all reports.
        now: the current time, with a time zone.
        period: how often agents collect; None for saved reports, which need no time.
    """
    named: set[str] = set()
    for report in reports:
        text, name = report.status.observed_at, report.name.partition(".sweep.")[0]
        has_no_age = parse_observed_at(text) is None and not (text is None and period is None)
        if report.sweep is not None and has_no_age and name not in named:
            named.add(name)
            state, advice = _describe_age(text, now, "Check the agent there.")
            yield Finding(
                kind=FindingKind.STALE_REPORT,
                device=name,
                port=None,
                severity=Severity.WARNING,
                message=(
                    f"The sweep of {show(name, 253)} {state}; any sweep with a usable time takes "
                    f"precedence. {advice}"
                ),
            )


def _has_good_time(report: PackedReport, now: datetime, limit: timedelta | None) -> bool:
    """Return whether a report is fresh; without a limit, whether its time, if any, is usable."""
    if limit is not None:
        return is_fresh(report, now=now, limit=limit)
    text = report.status.observed_at
    return text is None or parse_observed_at(text) is not None


def is_fresh(report: PackedReport, *, now: datetime, limit: timedelta) -> bool:
    """Return whether the time of a report is usable and at most `limit` from `now`.

    A report that is further ahead is not fresh: a node whose clock was ahead would count as present
    long after it is gone.
    """
    observed = parse_observed_at(report.status.observed_at)
    return observed is not None and abs(now - observed) <= limit


def _build_silent_finding(name: str, *, is_unlinked: bool) -> Finding:
    """Return the finding of a node; its ports are what somebody has to look at in the rack."""
    text = (
        f"Node {name} sends no report and has no link on any port: check that it is powered."
        if is_unlinked
        else f"Node {name} has sent no report; its place is known only from what other devices "
        "report. Check that the agent runs there."
    )
    return Finding(
        kind=FindingKind.SILENT_NODE,
        device=name,
        port=None,
        severity=Severity.WARNING,
        message=text,
        ports=(PortName(name, ""),) if is_unlinked else (),
    )


def _build_stale_finding(report: PackedReport, now: datetime, advice: str) -> Finding:
    state, repair = _describe_age(report.status.observed_at, now, advice)
    name = show(report.name, 253)
    return _build_report_finding(
        report, f"The report of {name} {state}; its facts still count. {repair}"
    )


def _describe_age(text: str | None, now: datetime, advice: str) -> tuple[str, str]:
    """Return how old a report is, and what to do about it."""
    observed = parse_observed_at(text)
    if text is None:
        return "has no time, so it counts as stale", advice
    if observed is None:
        return f"has the unusable time '{show(text, 64)}', so it counts as stale", advice
    age_s = int((now - observed).total_seconds())
    if age_s < 0:
        return f"is {-age_s} s ahead of the clock here", "Check the clocks (NTP)."
    return f"is {age_s} s old", advice


def _build_report_finding(report: PackedReport, message: str) -> Finding:
    return Finding(
        kind=FindingKind.STALE_REPORT,
        device=report.name,
        port=None,
        severity=Severity.WARNING,
        message=message,
        since=report.status.observed_at if parse_observed_at(report.status.observed_at) else None,
    )


def derive_unready_findings(
    reports: Iterable[PackedReport], unready: Collection[str]
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
            f"The agent on {show(report.name, 253)} is not ready, so its report may "
            "be old; its facts still count. Check the status and the log of its pod.",
        )
        for report in reports
        if report.device_kind is not None and report.name in unready
    )


def derive_walk_findings(reports: Iterable[PackedReport]) -> list[Finding]:
    """Return a finding per report of a switch whose last walk failed or was incomplete."""
    return [
        _build_report_finding(
            report,
            f"The walk of switch {show(device.name or report.name)} is incomplete: "
            f"{row.message}. The facts of earlier walks still count. Check that the switch "
            "answers SNMP.",
        )
        for report in reports
        for row in report.status.collectors
        if row.name == SNMP_COLLECTOR and row.outcome == "failed"
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
    inputs: Inputs, *, now: datetime, periods: Periods | None, unlinked: Collection[str] = ()
) -> list[Finding]:
    """Return the findings about missing or stale reports, failed walks and refused sweeps.

    Args:
        inputs: the reports, and the inventory of nodes that should report.
        now: the current time, with a time zone.
        periods: how often facts are collected; None for saved reports.
        unlinked: names of the nodes that surely have no link on any port.
    """
    node_names = [node.name for node in inputs.inventory.nodes] if inputs.inventory else []
    failed = derive_walk_findings(inputs.reports)
    refused = derive_refusal_findings(inputs.reports, unknown=inputs.unknown_subnets)
    failed_devices = {finding.device for finding in failed}
    agents = [report for report in inputs.reports if not report.is_of_switch]
    walked = [report for report in inputs.reports if report.is_of_switch]
    period = periods.agents if periods else None
    agent_findings = derive_freshness_findings(
        agents, listed=node_names, now=now, period=period, unlinked=unlinked
    )
    stale = derive_freshness_findings(
        walked,
        listed=(),
        now=now,
        period=periods.switches if periods else None,
        advice="Check that it answers SNMP. If it is gone for good, remove its report.",
    )
    new_stale = (finding for finding in stale if finding.device not in failed_devices)
    listed = derive_inventory_findings(inputs.inventory)
    timeless = derive_sweep_time_findings(inputs.reports, now=now, period=period)
    return [*refused, *failed, *agent_findings, *timeless, *new_stale, *listed]
