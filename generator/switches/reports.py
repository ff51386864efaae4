"""From walks to reports named `switch-MAC`, and the reports of failed walks. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from msgspec.structs import replace

from generator.switches.report_kind import COLLECTOR
from generator.switches.walk import SwitchWalk, WalkOutcome
from topology.model.errors import show
from topology.model.facts import Device, Finding, FindingKind, Severity
from topology.model.ids import IdKind
from topology.reports.neighbor_report import (
    CollectorOutcome,
    NeighborReport,
    ReportStatus,
    build_report,
)


def build_report_name(device: Device) -> str:
    """Return the name of a switch's report: by its chassis MAC, else its first MAC, else a hash.

    Only MACs are used: other text from a switch must not become part of a file name.
    """
    chassis_macs = [
        id_.value for id_ in device.ids if id_.kind is IdKind.CHASSIS_ID and id_.subtype == "mac"
    ]
    macs = chassis_macs or [id_.value for id_ in device.ids if id_.kind is IdKind.MAC]
    mac = macs[0].replace(":", "") if macs else ""
    return f"switch-{mac or hashlib.sha256(repr(device.ids).encode()).hexdigest()[:12]}"


def build_reports(walks: Iterable[SwitchWalk], *, observed_at: str) -> list[NeighborReport]:
    """Return a report per switch, sorted by name.

    A switch that was walked at two addresses has one report: of its first complete walk, else of
    its first walk.
    """
    chosen: dict[str, SwitchWalk] = {}
    for walk in walks:
        if walk.device is None:
            continue
        name = build_report_name(walk.device)
        earlier = chosen.get(name)
        is_better = earlier is not None and walk.outcome is WalkOutcome.OK is not earlier.outcome
        if earlier is None or is_better:
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
    """Return the last report of a switch, with its facts and their time, plus the failed walk."""
    status = replace(last.status, collectors=(_build_collector_outcome(walk),))
    return replace(last, status=status)


def has_lost_lldp(last: NeighborReport, walk: SwitchWalk) -> bool:
    """Return whether a switch had an LLDP chassis ID, but now shows neither one nor a neighbor."""
    before, now = last.spec.device, walk.device
    if before is None or now is None or any(port.neighbors for port in now.ports):
        return False
    had_chassis_id = any(id_.type is IdKind.CHASSIS_ID for id_ in before.ids)
    return had_chassis_id and all(id_.kind is not IdKind.CHASSIS_ID for id_ in now.ids)


def is_complete(report: NeighborReport) -> bool:
    """Return whether every collector of a report succeeded."""
    return all(row.outcome == "ok" for row in report.status.collectors)


def derive_silent_findings(walks: Iterable[SwitchWalk]) -> list[Finding]:
    """Return a finding per failed walk of a listed switch that never gave a report."""
    return [
        Finding(
            kind=FindingKind.SILENT_NODE,
            device=walk.target.address,
            port=None,
            severity=Severity.WARNING,
            message=(
                f"Switch {show(walk.target.address, 253)} was never walked: {show(walk.reason)}. "
                "Check its address, its credentials, and that it answers SNMP from this machine."
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
