"""From walks to reports named `switch-MAC`, and the last report of each switch in the store.

The last report of a switch stays in the store, with its time, until a walk gives new facts. A
report is withdrawn when another switch answers at its address. Otherwise a switch that was
replaced, or that has another MAC after a restart, would be in the tree twice.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from generator.store.fabric_store import FabricStore
from generator.switches.targets import Target
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
from topology.reports.packed_reports import SNMP_COLLECTOR, PackedReport, unpack_report


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
    status = msgspec.structs.replace(last.status, collectors=(_build_collector_outcome(walk),))
    return msgspec.structs.replace(last, status=status)


def has_lost_lldp(last: NeighborReport, walk: SwitchWalk) -> bool:
    """Return whether a switch had an LLDP chassis ID, but now shows no ID and no neighbor."""
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
        name=SNMP_COLLECTOR,
        outcome="ok" if walk.outcome is WalkOutcome.OK else "failed",
        message=show(walk.reason),
    )


_NO_LLDP_ADVICE: Final = "it answers, but no longer shows its LLDP tables: check its LLDP agent"


class LastReports:
    """The last report of each switch of one list, by target."""

    def __init__(self, store: FabricStore) -> None:
        """Start with the reports in the store, which are read when a walk first needs them."""
        self._store = store
        self._last: dict[Target, NeighborReport] = {}
        self._owners: dict[str, Target] = {}
        self._replaced: set[str] = set()
        """Names of reports to withdraw."""
        self._stored: dict[str, PackedReport] | None = None

    def __contains__(self, target: object) -> bool:
        """Return whether a walk of this target ever gave a report."""
        return target in self._last

    def mark_lost_lldp(self, walk: SwitchWalk) -> SwitchWalk:
        """Return a walk; mark it as partial if the switch no longer shows its LLDP tables.

        SNMP and LLDP are two programs on most switches. Without the LLDP program, the walk shows
        a switch without neighbors, although its neighbors are unknown.
        """
        last = self._find_last(walk)
        if walk.outcome is WalkOutcome.OK and last is not None and has_lost_lldp(last, walk):
            return dataclasses.replace(walk, outcome=WalkOutcome.PARTIAL, reason=_NO_LLDP_ADVICE)
        return walk

    def write_whole(self, walk: SwitchWalk, *, time: str, failed: Collection[Target]) -> None:
        """Write the report of a complete walk.

        Args:
            walk: the walk.
            time: the time of the walk, in the form of RFC 3339.
            failed: the targets whose last walk failed or was partial.

        Raises:
            KubeError, StoreError: the report cannot be written; it still is the last report.
        """
        (report,) = build_reports([walk], observed_at=time)
        name = report.metadata.name
        self._replace(walk, name)
        owner = self._owners.get(name, walk.target)
        if owner != walk.target and owner not in failed:
            return  # one switch at two addresses: the report would alternate between them
        self._owners[name] = walk.target
        self._replaced.discard(name)
        self._remember(walk.target, report)

    def write_failed(self, walk: SwitchWalk, *, time: str) -> None:
        """Add the failure to the last report; without one, write the facts of a partial walk.

        Raises:
            KubeError, StoreError: the report cannot be written; it still is the last report.
        """
        last = self._find_last(walk)
        if last is not None:
            self._remember(walk.target, build_failed_report(last, walk))
        elif walk.device is not None:
            (partial,) = build_reports([walk], observed_at=time)
            self._remember(walk.target, partial)

    def withdraw_replaced(self) -> None:
        """Withdraw the reports of switches that another switch has replaced.

        Raises:
            KubeError, StoreError: a report cannot be withdrawn; the next call tries again.
        """
        for name in sorted(self._replaced):
            self._store.withdraw_report(name)
            self._replaced.discard(name)

    def _replace(self, walk: SwitchWalk, name: str) -> None:
        """Mark the last report for withdrawal if another switch answers at its address now."""
        last = self._find_last(walk)
        if last is None or last.metadata.name == name:
            return
        self._last.pop(walk.target, None)
        if self._owners.get(last.metadata.name, walk.target) == walk.target:
            self._owners.pop(last.metadata.name, None)
            self._replaced.add(last.metadata.name)

    def _remember(self, target: Target, report: NeighborReport) -> None:
        self._last[target] = report
        self._store.write_report(report)

    def _find_last(self, walk: SwitchWalk) -> NeighborReport | None:
        return self._last.get(walk.target) or self._find_last_stored(walk)

    def _find_last_stored(self, walk: SwitchWalk) -> NeighborReport | None:
        """Return the report that the store had of a switch before the first round, if any.

        It is found by the report name of the walked device, else by the target's address.
        """
        if self._stored is None:
            reports = [row for row in self._store.read_reports().values if row.is_of_switch]
            by_address = {
                id_.value: report
                for report in reports
                for id_ in (report.device.ids if report.device else ())
                if id_.kind is IdKind.IP
            }
            self._stored = by_address | {report.name: report for report in reports}
        last = self._stored.get(build_report_name(walk.device)) if walk.device else None
        last = last or self._stored.get(walk.target.address)
        if last is None or last.name in self._owners:
            return None
        return unpack_report(last)
