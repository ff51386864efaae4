"""Reports to claims: sweeps put together, freshness judged, silent nodes named. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from generator.ingest.subnets import find_expected_subnets
from generator.ingest.sweeps import build_detached_claims, parse_sweep
from topology.model.claims import Claim, SweptClaims
from topology.model.errors import ParseError, ReportError, show
from topology.model.facts import Device, DeviceKind
from topology.model.ids import IdKind
from topology.reports.compact_reports import CompactReport, Report
from topology.reports.neighbor_report import SweepPart
from topology.reports.packed_claims import PackedClaim
from topology.reports.packed_devices import pack_device
from topology.reports.sweep_parts import unpack_sweep


class ReportClaims(NamedTuple):
    """What the reports claim, and what of them could not be used."""

    claims: tuple[Claim | SweptClaims, ...]
    problems: tuple[ParseError, ...]
    reporters: frozenset[str]
    """Names of the nodes that reported about themselves."""
    unknown_subnets: tuple[str, ...] = ()
    """Subnets without a whole sweep: only parts of one are there, or it is still waited for."""


@dataclass(frozen=True, slots=True)
class _ReportedSweep:
    node: str
    observed_at: str
    parts: tuple[SweepPart, ...]

    @property
    def title(self) -> str:
        return show(f"{self.node}.sweep.* of subnet {self.parts[0].subnet}")


class _DeviceClaim(NamedTuple):
    """What one report says of its device."""

    facts: Hashable
    claim: Claim
    problems: tuple[ParseError, ...]


class _ParsedSweep(NamedTuple):
    """What one sweep says."""

    parts: tuple[SweepPart, ...]
    claims: tuple[Claim | SweptClaims, ...]
    errors: tuple[ParseError, ...]


class ClaimBuilder:
    """The claims of reports, each made once as long as its report says the same.

    So whoever makes something of claims can tell by the objects which of them are new.
    """

    def __init__(self) -> None:
        """Nothing was taken yet."""
        self._device_claims: dict[str, _DeviceClaim] = {}
        self._parsed_sweeps: dict[str, _ParsedSweep] = {}

    def build_claims(self, reports: Iterable[Report]) -> ReportClaims:
        """Return the claims of reports; of each subnet the newest sweep whose parts are all there.

        An incomplete or damaged sweep is a problem and never an empty fabric. Cost: O(facts) of
        the reports that are new or say something else.
        """
        reports = tuple(reports)
        told, last = {}, self._device_claims
        parts: dict[tuple[str, str, str], list[tuple[str, SweepPart]]] = defaultdict(list)
        for report in reports:
            name = report.metadata.name
            found = last.get(name)
            if found is not None and found.facts == report.content:
                told[name] = found
            elif (device := report.device) is not None:
                told[name] = _build_device_claim(report, device)
            elif report.sweep is not None:
                sweep = report.sweep
                key = (sweep.subnet, name.partition(".sweep.")[0], sweep.sweep_id)
                parts[key].append((report.status.observed_at or "", sweep))
        self._device_claims = told
        problems = [problem for one in told.values() for problem in one.problems]
        read = self._select_sweeps(parts, problems)
        awaited = {subnet for subnet, _, _ in parts} | find_expected_subnets(reports)
        return ReportClaims(
            (*(one.claim for one in told.values()), *(one for row in read for one in row.claims)),
            (*problems, *(error for row in read for error in row.errors)),
            frozenset(one.metadata.name for one in reports if one.device_kind is DeviceKind.HOST),
            tuple(sorted(awaited - self._parsed_sweeps.keys())),
        )

    def _select_sweeps(
        self,
        parts: dict[tuple[str, str, str], list[tuple[str, SweepPart]]],
        problems: list[ParseError],
    ) -> list[_ParsedSweep]:
        """Return the sweep that counts for each subnet, and remember it."""
        by_subnet: dict[str, list[_ReportedSweep]] = defaultdict(list)
        for (subnet, node, _), rows in parts.items():
            observed = max(when for when, _ in rows)
            by_subnet[subnet].append(
                _ReportedSweep(node, observed, tuple(part for _, part in rows))
            )
        read: dict[str, _ParsedSweep] = {}
        for subnet in sorted(by_subnet):
            newest_first = sorted(
                by_subnet[subnet],
                key=lambda sweep: (sweep.observed_at, sweep.node, sweep.parts[0].sweep_id),
                reverse=True,
            )
            for sweep in newest_first:
                try:
                    read[subnet] = _parse_sweep_report(sweep, self._parsed_sweeps.get(subnet))
                except ReportError as error:
                    problems.append(ParseError(str(error), source=sweep.title))
                    continue
                break
        self._parsed_sweeps = read
        return [*read.values()]


def build_claims(reports: Iterable[Report]) -> ReportClaims:
    """Return the claims of reports, as an `ClaimBuilder` takes them that took none before."""
    return ClaimBuilder().build_claims(reports)


def _parse_sweep_report(sweep: _ReportedSweep, last: _ParsedSweep | None) -> _ParsedSweep:
    """Return what a sweep says; the last one where it is the same.

    Raises:
        ReportError: it is incomplete or damaged.
    """
    if last is not None and last.parts == sweep.parts:
        return last
    parsed = parse_sweep(unpack_sweep(sweep.parts), source=sweep.title)
    return _ParsedSweep(sweep.parts, tuple(build_detached_claims(parsed)), parsed.errors)


def _build_device_claim(report: Report, device: Device) -> _DeviceClaim:
    """Return what a device says, a host under its report's own name.

    An agent may write no other report, but may say that it is another node.
    """
    problems: list[ParseError] = []
    name, is_host = report.metadata.name, device.kind is DeviceKind.HOST
    others = {one.value for one in device.ids if one.kind is IdKind.NODE_NAME} - {name}
    if others and is_host:
        claimed = ", ".join(show(other) for other in sorted(others))
        problem = f"it claims to be node {claimed}; that claim does not count"
        problems.append(ParseError(problem, source=f"report {show(name, 253)}"))
    packed = (
        report.facts.packed
        if isinstance(report, CompactReport) and report.facts
        else pack_device(device)
    )
    claim = PackedClaim(packed, device.name, node=name if is_host else None)
    return _DeviceClaim(report.content, claim, tuple(problems))
