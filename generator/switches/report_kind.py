"""Which reports come from walks of switches. Pure."""

from __future__ import annotations

from typing import Final

from topology.reports.packed_reports import PackedReport

COLLECTOR: Final = "snmp"


def is_switch_report(report: PackedReport) -> bool:
    """Return whether a report comes from a walk, not from an agent."""
    return any(row.name == COLLECTOR for row in report.status.collectors)
