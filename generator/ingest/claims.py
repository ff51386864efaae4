"""From reports to claims: one per device, and those of the sweep that counts per subnet. Pure.

`sweep_choice` decides which sweep counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from generator.ingest.host_evidence import HostPort, SweepReach, read_host_ports
from generator.ingest.inputs import SweepDoubt
from generator.ingest.named_sweepers import (
    EVERY_SWEEPER,
    NamedSweepers,
)
from generator.ingest.report_findings import derive_excess_findings, derive_ignored_findings
from generator.ingest.report_scope import (
    explain_flooder,
    find_flooders,
    find_heard,
    limit_to_scope,
    without_neighbors,
)
from generator.ingest.subnets import find_attested_subnets, find_awaited_subnets
from generator.ingest.sweep_choice import (
    SweepChooser,
    SweepEvidence,
    UsedSweep,
    find_lone_participants,
)
from generator.ingest.sweeps import ReportedSweep
from topology.model.claims import Claim, SweptClaims
from topology.model.errors import ParseError
from topology.model.facts import Device, DeviceKind, Finding
from topology.reports.neighbor_report import SweepPart
from topology.reports.observed_time import find_latest
from topology.reports.packed_reports import PackedClaim, PackedReport, pack_device


class ReportClaims(NamedTuple):
    """The claims of reports, and the problems with unusable parts."""

    claims: tuple[Claim | SweptClaims, ...]
    problems: tuple[ParseError, ...]
    reporters: frozenset[str]
    """Names of the nodes that reported about themselves."""
    unknown_subnets: tuple[str, ...] = ()
    """Sorted subnets without a complete sweep: parts are missing, or no sweep has arrived yet."""
    used_sweeps: tuple[UsedSweep, ...] = ()
    """The sweep of each subnet that is used, sorted by subnet."""
    findings: tuple[Finding, ...] = ()
    """Sweeps that are ignored, contradicted or in disagreement."""
    doubts: tuple[SweepDoubt, ...] = ()
    reaches: tuple[SweepReach, ...] = ()
    """How far the sweeps of named nodes reach."""


class _DeviceClaim(NamedTuple):
    """The claim of one report about its device."""

    claim: Claim | None
    """None if nothing of the report counts."""
    problems: tuple[ParseError, ...]
    ports: tuple[HostPort, ...] = ()
    """The ports of a host that are up in an InfiniBand subnet."""
    excess: str = ""
    """Words for the part of the report that is more than a host has."""
    heard: Sequence[int] = ()
    """The devices that a host names, by `find_heard`."""


class ClaimBuilder:
    """Builds the claims of reports; keeps the sweeps that were parsed."""

    def __init__(self) -> None:
        """Start without sweeps."""
        self._chooser = SweepChooser()

    def build_claims(
        self,
        reports: Iterable[PackedReport],
        nodes: Collection[str] = frozenset(),
        *,
        named: NamedSweepers = EVERY_SWEEPER,
        now: datetime | None = None,
    ) -> ReportClaims:
        """Return the claims of reports; for each subnet those of the sweep that counts.

        An incomplete, damaged or too large sweep is a problem, never an empty fabric. Cost:
        O(facts), and of a sweep only if it is new.

        Args:
            reports: all reports.
            nodes: the names of the cluster's nodes, if they are known; no report under such a name
                is about a switch.
            named: the nodes whose sweeps count.
            now: the current time, with a time zone; sweeps with a later date are ignored.
        """
        reports = tuple(reports)
        device_claims = _leave_out_flooders(
            {
                report.name: _build_device_claim(report, device, is_node=report.name in nodes)
                for report in reports
                if (device := report.device) is not None
            }
        )
        hosts = {name: known.ports for name, known in device_claims.items() if known.ports}
        evidence = SweepEvidence(named, find_attested_subnets(reports), hosts, now, nodes)
        sweeps = _collect_sweeps(reports)
        choice = self._chooser.choose(sweeps, evidence)
        awaited = find_awaited_subnets(reports, named, choice.offered)
        lone = find_lone_participants(reports, evidence)
        return ReportClaims(
            (
                *(known.claim for known in device_claims.values() if known.claim),
                *(SweptClaims(sweep.devices) for sweep in choice.sweeps if sweep.devices),
            ),
            (
                *(problem for known in device_claims.values() for problem in known.problems),
                *choice.problems,
                *(error for sweep in choice.sweeps for error in sweep.errors),
            ),
            _find_reporters(reports, device_claims),
            tuple(sorted(awaited - {sweep.subnet for sweep in choice.used})),
            choice.used,
            (
                *derive_ignored_findings((*choice.ignored, *lone)),
                *choice.findings,
                *derive_excess_findings(
                    {name: known.excess for name, known in device_claims.items() if known.excess}
                ),
            ),
            choice.doubts,
            choice.reaches,
        )


def _leave_out_flooders(claims: Mapping[str, _DeviceClaim]) -> dict[str, _DeviceClaim]:
    """Return the claims; hosts that name too many devices lose their neighbors."""
    heard = {name: known.heard for name, known in claims.items() if known.heard}
    reduced = {name: _drop_neighbors(name, claims[name]) for name in sorted(find_flooders(heard))}
    return {**claims, **reduced}


def build_claims(
    reports: Iterable[PackedReport],
    nodes: Collection[str] = frozenset(),
    *,
    named: NamedSweepers = EVERY_SWEEPER,
    now: datetime | None = None,
) -> ReportClaims:
    """Return the claims of reports, as a new `ClaimBuilder` does."""
    return ClaimBuilder().build_claims(reports, nodes, named=named, now=now)


def _find_reporters(
    reports: Iterable[PackedReport], claims: Mapping[str, _DeviceClaim]
) -> frozenset[str]:
    """Return the names of the hosts that have a report of which something counts."""
    names = (report.name for report in reports if report.device_kind is DeviceKind.HOST)
    return frozenset(name for name in names if name in claims and claims[name].claim)


def _collect_sweeps(reports: Iterable[PackedReport]) -> list[ReportedSweep]:
    """Return the sweeps whose parts are among the reports, complete or not."""
    parts: dict[tuple[str, str, str], list[tuple[str | None, SweepPart]]] = defaultdict(list)
    for report in reports:
        if report.sweep is not None:
            part = report.sweep
            node = report.name.partition(".sweep.")[0]
            row = (report.status.observed_at, part)
            parts[part.subnet, node, part.sweep_id].append(row)
    return [
        ReportedSweep(node, find_latest(when for when, _ in rows), tuple(part for _, part in rows))
        for (_, node, _), rows in parts.items()
    ]


def _build_device_claim(report: PackedReport, device: Device, *, is_node: bool) -> _DeviceClaim:
    """Return the claim of a device; a host is always the node that its report is named after.

    RBAC lets an agent write no other report, but its content may be about anything.
    """
    name = report.name
    scoped = limit_to_scope(name, device, is_node=is_node)
    source = f"report {name}"
    problems = tuple(ParseError(problem, source=source) for problem in scoped.problems)
    if scoped.device is None:
        return _DeviceClaim(None, problems, (), scoped.excess)
    packed = report.packed if scoped.device is device else pack_device(scoped.device)
    is_host = scoped.device.kind is DeviceKind.HOST
    claim = PackedClaim(packed, device.name, node=name if is_host else None)
    heard, ports = find_heard(scoped.device), read_host_ports(scoped.device)
    return _DeviceClaim(claim, problems, ports, scoped.excess, heard)


def _drop_neighbors(name: str, known: _DeviceClaim) -> _DeviceClaim:
    """Return the claim of a host without its neighbors, and why."""
    if known.claim is None:
        return known
    device, reason = without_neighbors(known.claim.device), explain_flooder()
    return known._replace(
        claim=PackedClaim(pack_device(device), device.name, node=name),
        problems=(*known.problems, ParseError(reason, source=f"report {name}")),
        excess="; ".join(filter(None, (known.excess, reason))),
    )
