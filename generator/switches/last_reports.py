"""The last report of each switch that is walked, and what becomes of it in the store.

What a switch told last stays its report, with its time, until it tells something new. A report is
withdrawn once another switch answers at its address: one that was replaced, or that calls itself
by another MAC since it restarted, would else stay in the tree beside itself.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final, Protocol

from generator.store.directory import StoredReports
from generator.switches.reports import (
    build_failed_report,
    has_lost_lldp,
    is_switch_report,
    build_report_name,
    build_reports,
)
from generator.switches.targets import Target
from generator.switches.walk import WalkOutcome, SwitchWalk
from topology.model.ids import IdKind
from topology.reports.compact_reports import Report
from topology.reports.neighbor_report import NeighborReport

_NO_LLDP_ADVICE: Final = "it answers, but no longer shows the tables of LLDP: check its LLDP agent"


class ReportStore(Protocol):
    """Where reports of switches are kept."""

    def read_reports(self) -> StoredReports:
        """Return all reports."""
        ...

    def write_report(self, report: NeighborReport) -> bool:
        """Write a report; return False where that would say nothing new."""
        ...

    def withdraw_report(self, name: str) -> None:
        """Delete the report of a switch; one that is not there is no error."""
        ...


class LastReports:
    """What the switches of one list told, by the address that was asked."""

    def __init__(self, store: ReportStore) -> None:
        """Know only what the store holds, which is read at the first walk that asks for it."""
        self._store = store
        self._last: dict[Target, NeighborReport] = {}
        self._owners: dict[str, Target] = {}
        self._replaced: set[str] = set()
        """Reports that are to be withdrawn."""
        self._stored: dict[str, Report] | None = None

    def __contains__(self, target: object) -> bool:
        """Return whether a switch ever told anything at an address."""
        return target in self._last

    def mark_lost_lldp(self, found: SwitchWalk) -> SwitchWalk:
        """Return a walk, as a part of one where LLDP fell silent on a switch that answers.

        SNMP and LLDP are two programs on most switches. Without the second one the walk shows a
        switch that hears nobody, which is not known at all.
        """
        last = self._find_last(found)
        if found.outcome is WalkOutcome.OK and last is not None and has_lost_lldp(last, found):
            return replace(found, outcome=WalkOutcome.PARTIAL, reason=_NO_LLDP_ADVICE)
        return found

    def write_whole(self, found: SwitchWalk, *, time: str, failed: Collection[Target]) -> None:
        """Write what a whole walk told.

        Args:
            found: the walk.
            time: of the walk, RFC 3339.
            failed: the switches whose last walk did not tell all.

        Raises:
            KubeError, StoreError: it cannot be written; it counts as told all the same.
        """
        (report,) = build_reports([found], observed_at=time)
        name = report.metadata.name
        self._replace(found, name)
        owner = self._owners.get(name, found.target)
        if owner != found.target and owner not in failed:
            return  # one switch at two addresses: the report would change with each of them
        self._owners[name] = found.target
        self._replaced.discard(name)
        self._remember(found.target, report)

    def write_failed(self, found: SwitchWalk, *, time: str) -> None:
        """Note a failure in the last report; what a part told counts where there is none.

        Raises:
            KubeError, StoreError: it cannot be written; it counts as told all the same.
        """
        last = self._find_last(found)
        if last is not None:
            self._remember(found.target, build_failed_report(last, found))
        elif found.device is not None:
            (part,) = build_reports([found], observed_at=time)
            self._remember(found.target, part)

    def withdraw_replaced(self) -> None:
        """Withdraw the reports of switches that are not where they were.

        Raises:
            KubeError, StoreError: one cannot be withdrawn; the next call tries it again.
        """
        for name in sorted(self._replaced):
            self._store.withdraw_report(name)
            self._replaced.discard(name)

    def _replace(self, found: SwitchWalk, name: str) -> None:
        """Take note where another switch answers at an address than the last time."""
        last = self._find_last(found)
        if last is None or last.metadata.name == name:
            return
        self._last.pop(found.target, None)
        if self._owners.get(last.metadata.name, found.target) == found.target:
            self._owners.pop(last.metadata.name, None)
            self._replaced.add(last.metadata.name)

    def _remember(self, target: Target, report: NeighborReport) -> None:
        self._last[target] = report
        self._store.write_report(report)

    def _find_last(self, found: SwitchWalk) -> NeighborReport | None:
        return self._last.get(found.target) or self._find_last_stored(found)

    def _find_last_stored(self, found: SwitchWalk) -> NeighborReport | None:
        """Return what the store had of a switch before the first round, if anything.

        It is found by what the switch calls itself, else by the address that was asked.
        """
        if self._stored is None:
            walked = [one for one in self._store.read_reports().reports if is_switch_report(one)]
            self._stored = {
                known.value: one
                for one in walked
                for known in (one.device.ids if one.device else ())
                if known.kind is IdKind.IP
            } | {one.metadata.name: one for one in walked}
        by_name = self._stored.get(build_report_name(found.device)) if found.device else None
        last = by_name or self._stored.get(found.target.address)
        is_free = last is not None and last.metadata.name not in self._owners
        return last.to_wire() if last is not None and is_free else None
