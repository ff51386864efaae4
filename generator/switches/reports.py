"""Walks to reports `switch-MAC`, and what walks that failed leave of the reports before. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

from generator.switches.walk import WalkOutcome, SwitchWalk
from topology.model.errors import show
from topology.model.facts import Device, Finding, FindingKind, Severity
from topology.model.ids import IdKind
from topology.reports.compact_reports import Report
from topology.reports.neighbor_report import (
    CollectorOutcome,
    NeighborReport,
    ReportStatus,
    build_report,
)

COLLECTOR: Final = "snmp"


def build_report_name(device: Device) -> str:
    """Return the name of a switch's report: its chassis MAC, else its first; else a hash.

    Nothing that a switch says of itself but a MAC becomes a part of a file's name.
    """
    chassis = [
        found.value
        for found in device.ids
        if found.kind is IdKind.CHASSIS_ID and found.subtype == "mac"
    ]
    macs = chassis or [found.value for found in device.ids if found.kind is IdKind.MAC]
    told = macs[0].replace(":", "") if macs else ""
    return f"switch-{told or hashlib.sha256(repr(device.ids).encode()).hexdigest()[:12]}"


def build_reports(walks: Iterable[SwitchWalk], *, observed_at: str) -> list[NeighborReport]:
    """Return a report per switch, whole walks before partial ones, sorted by name.

    A switch that was walked under two addresses has one report: of the first whole walk.
    """
    chosen: dict[str, SwitchWalk] = {}
    for walk in walks:
        if walk.device is None:
            continue
        name = build_report_name(walk.device)
        kept = chosen.get(name)
        is_better = kept is not None and walk.outcome is WalkOutcome.OK is not kept.outcome
        if kept is None or is_better:
            chosen[name] = walk
    return [
        build_report(
            walk.device,
            name=name,
            status=ReportStatus(
                observed_at=observed_at, collectors=(_build_collector_outcome(walk),)
            ),
        )
        for name, walk in sorted(chosen.items())
        if walk.device is not None
    ]


def build_failed_report(last: NeighborReport, walk: SwitchWalk) -> NeighborReport:
    """Return the last report of a switch whose walk failed: old facts, their time, the failure."""
    status = last.status.model_copy(update={"collectors": (_build_collector_outcome(walk),)})
    return last.model_copy(update={"status": status})


def has_lost_lldp(last: NeighborReport, walk: SwitchWalk) -> bool:
    """Return whether a switch that had a chassis id shows none now, nor anybody that it hears."""
    before, now = last.spec.device, walk.device
    if before is None or now is None or any(port.neighbors for port in now.ports):
        return False
    had_one = any(known.type is IdKind.CHASSIS_ID for known in before.ids)
    return had_one and all(known.kind is not IdKind.CHASSIS_ID for known in now.ids)


def is_switch_report(report: Report) -> bool:
    """Return whether a report is of a walk, and not an agent's."""
    return any(row.name == COLLECTOR for row in report.status.collectors)


def is_complete(report: NeighborReport) -> bool:
    """Return whether everything that was collected for a report was told."""
    return all(row.outcome == "ok" for row in report.status.collectors)


def derive_silent_findings(walks: Iterable[SwitchWalk]) -> list[Finding]:
    """Return a finding per address that ought to be a switch's and never told anything."""
    return [
        Finding(
            kind=FindingKind.SILENT_NODE,
            device=walk.target.address,
            port=None,
            severity=Severity.WARNING,
            message=(
                f"Switch {show(walk.target.address, 253)} was never walked: {show(walk.reason)}. "
                "Check its address, its credentials, and that it answers SNMP from here."
            ),
        )
        for walk in walks
    ]


def _build_collector_outcome(walk: SwitchWalk) -> CollectorOutcome:
    return CollectorOutcome(
        name=COLLECTOR,
        outcome="ok" if walk.outcome is WalkOutcome.OK else "failed",
        message=show(walk.reason),
    )
