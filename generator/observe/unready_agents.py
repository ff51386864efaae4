"""Findings about agents that run and do not collect, where their pods tell it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from topology.model.errors import show
from topology.model.facts import Finding, FindingKind, Severity
from topology.reports.compact_reports import Report


def ailing_findings(reports: Iterable[Report], ailing: Collection[str]) -> tuple[Finding, ...]:
    """Return a finding per report whose agent is not ready; of nodes without one others tell.

    Args:
        reports: all that there are.
        ailing: names of nodes.
    """
    return tuple(
        Finding(
            kind=FindingKind.STALE_REPORT,
            device=report.metadata.name,
            port=None,
            severity=Severity.WARNING,
            message=(
                f"The agent on {show(report.metadata.name, 253)} is not ready, so its report may "
                "be old; its facts still count. See what its pod says."
            ),
            since=report.status.observed_at,
        )
        for report in reports
        if report.device_kind is not None and report.metadata.name in ailing
    )
