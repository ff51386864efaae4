"""From reports to claims: one per device, and the newest complete sweep per subnet. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from generator.ingest.report_scope import limit_to_scope
from generator.ingest.subnets import find_expected_subnets
from generator.ingest.sweeps import build_detached_claims, parse_sweep
from topology.model.claims import Claim, SweptClaims
from topology.model.errors import ParseError, ReportError, show
from topology.model.facts import Device, DeviceKind
from topology.reports.compact_reports import CompactReport, Report
from topology.reports.neighbor_report import SweepPart
from topology.reports.packed_claims import PackedClaim
from topology.reports.packed_devices import pack_device
from topology.reports.sweep_parts import unpack_sweep


class ReportClaims(NamedTuple):
    """The claims of reports, and the problems with unusable parts."""

    claims: tuple[Claim | SweptClaims, ...]
    problems: tuple[ParseError, ...]
    reporters: frozenset[str]
    """Names of the nodes that reported about themselves."""
    unknown_subnets: tuple[str, ...] = ()
    """Sorted subnets without a complete sweep: parts are missing, or no sweep has arrived yet."""


@dataclass(frozen=True, slots=True)
class _ReportedSweep:
    node: str
    observed_at: str
    parts: tuple[SweepPart, ...]

    @property
    def title(self) -> str:
        return show(f"{self.node}.sweep.* of subnet {self.parts[0].subnet}")


class _DeviceClaim(NamedTuple):
    """The claim of one report about its device."""

    facts: Hashable
    claim: Claim | None
    """None if nothing of the report counts."""
    problems: tuple[ParseError, ...]
    is_node: bool
    """Whether a node of the report's name is listed."""


class _ParsedSweep(NamedTuple):
    """The claims of one complete sweep."""

    parts: tuple[SweepPart, ...]
    claims: tuple[Claim | SweptClaims, ...]
    errors: tuple[ParseError, ...]


class ClaimBuilder:
    """Builds the claims of reports, and returns identical objects for unchanged reports.

    So a consumer sees by object identity which claims are new.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._device_claims: dict[str, _DeviceClaim] = {}
        self._parsed_sweeps: dict[str, _ParsedSweep] = {}

    def build_claims(
        self, reports: Iterable[Report], nodes: Collection[str] = frozenset()
    ) -> ReportClaims:
        """Return the claims of reports; for each subnet those of the newest complete sweep.

        An incomplete or damaged sweep is a problem, never an empty fabric. Cost: O(facts) of new
        and changed reports.

        Args:
            reports: all reports.
            nodes: the names of the cluster's nodes, if they are known; no report under such a name
                is about a switch.
        """
        reports = tuple(reports)
        device_claims, previous = {}, self._device_claims
        parts: dict[tuple[str, str, str], list[tuple[str, SweepPart]]] = defaultdict(list)
        for report in reports:
            name = report.metadata.name
            known = previous.get(name)
            is_node = name in nodes
            if known is not None and known.facts == report.content and known.is_node == is_node:
                device_claims[name] = known
            elif (device := report.device) is not None:
                device_claims[name] = _build_device_claim(report, device, is_node=is_node)
            elif report.sweep is not None:
                part = report.sweep
                key = (part.subnet, name.partition(".sweep.")[0], part.sweep_id)
                parts[key].append((report.status.observed_at or "", part))
        self._device_claims = device_claims
        problems = [problem for known in device_claims.values() for problem in known.problems]
        sweeps = self._select_sweeps(parts, problems)
        expected = {subnet for subnet, _, _ in parts} | find_expected_subnets(reports)
        swept_claims = (claim for sweep in sweeps for claim in sweep.claims)
        speakers = {name for name, known in device_claims.items() if known.claim}
        hosts = (report for report in reports if report.device_kind is DeviceKind.HOST)
        return ReportClaims(
            (*(known.claim for known in device_claims.values() if known.claim), *swept_claims),
            (*problems, *(error for sweep in sweeps for error in sweep.errors)),
            frozenset(host.metadata.name for host in hosts if host.metadata.name in speakers),
            tuple(sorted(expected - self._parsed_sweeps.keys())),
        )

    def _select_sweeps(
        self,
        parts: dict[tuple[str, str, str], list[tuple[str, SweepPart]]],
        problems: list[ParseError],
    ) -> list[_ParsedSweep]:
        """Return the sweep that counts for each subnet, and store it for the next call."""
        by_subnet: dict[str, list[_ReportedSweep]] = defaultdict(list)
        for (subnet, node, _), rows in parts.items():
            observed = max(when for when, _ in rows)
            by_subnet[subnet].append(
                _ReportedSweep(node, observed, tuple(part for _, part in rows))
            )
        parsed: dict[str, _ParsedSweep] = {}
        for subnet in sorted(by_subnet):
            newest_first = sorted(
                by_subnet[subnet],
                key=lambda sweep: (sweep.observed_at, sweep.node, sweep.parts[0].sweep_id),
                reverse=True,
            )
            for sweep in newest_first:
                try:
                    parsed[subnet] = _parse_sweep_report(sweep, self._parsed_sweeps.get(subnet))
                except ReportError as error:
                    problems.append(ParseError(str(error), source=sweep.title))
                    continue
                break
        self._parsed_sweeps = parsed
        return [*parsed.values()]


def build_claims(reports: Iterable[Report], nodes: Collection[str] = frozenset()) -> ReportClaims:
    """Return the claims of reports, as a new `ClaimBuilder` does."""
    return ClaimBuilder().build_claims(reports, nodes)


def _parse_sweep_report(sweep: _ReportedSweep, last: _ParsedSweep | None) -> _ParsedSweep:
    """Return the claims of a sweep; the previous object if its parts are unchanged.

    Raises:
        ReportError: the sweep is incomplete or damaged.
    """
    if last is not None and last.parts == sweep.parts:
        return last
    parsed = parse_sweep(unpack_sweep(sweep.parts), source=sweep.title)
    return _ParsedSweep(sweep.parts, tuple(build_detached_claims(parsed)), parsed.errors)


def _build_device_claim(report: Report, device: Device, *, is_node: bool) -> _DeviceClaim:
    """Return the claim of a device; a host is always the node that its report is named after.

    RBAC lets an agent write no other report, but its content may be about anything.
    """
    name = report.metadata.name
    scoped = limit_to_scope(name, device, is_node=is_node)
    source = f"report {show(name, 253)}"
    problems = tuple(ParseError(problem, source=source) for problem in scoped.problems)
    if scoped.device is None:
        return _DeviceClaim(report.content, None, problems, is_node)
    packed = (
        report.facts.packed
        if scoped.device is device and isinstance(report, CompactReport) and report.facts
        else pack_device(scoped.device)
    )
    is_host = scoped.device.kind is DeviceKind.HOST
    claim = PackedClaim(packed, device.name, node=name if is_host else None)
    return _DeviceClaim(report.content, claim, problems, is_node)
