"""Chooses the sweep of each subnet that counts, and says what speaks against it. Pure.

A sweep counts only if its node is named (`named_sweepers`). The elected node's sweep is used before
that of its spare, unless hosts contradict it. A doubt holds plans that depend on the sweep: hosts
contradict it, another named node sees other cables, or it comes from a new node and nobody confirms
it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import numpy as np

from generator.ingest.host_evidence import HostCheck, HostComparison, HostPorts
from generator.ingest.inputs import SweepDoubt
from generator.ingest.named_sweepers import NamedSweepers, SweepRank
from generator.ingest.reported_sweep import (
    ParsedSweep,
    ParseSweep,
    ReportedSweep,
)
from generator.ingest.sweep_findings import (
    IgnoredSweep,
    IgnoreReason,
    build_contradicted_doubt,
    build_contradicted_finding,
    build_disagreement_doubt,
    build_disagreement_finding,
    build_unconfirmed_doubt,
)
from generator.ingest.sweep_views import (
    NO_DIFFERENCE,
    SweepDifference,
    SweepView,
    compare_views,
    read_view,
)
from generator.ingest.unusable_reports import RefusedSweeps
from topology.model.errors import ParseError, ReportError
from topology.model.facts import Finding
from topology.reports.compact_reports import Report
from topology.reports.observed_time import is_ahead, parse_observed_at

SAME_TIME: Final = timedelta(minutes=15)
"""Sweeps in a folder are compared if they are no further apart: three usual intervals."""
_NO_TIME: Final = datetime.min.replace(tzinfo=UTC)


class UsedSweep(NamedTuple):
    """A sweep that is used."""

    subnet: str
    node: str
    is_confirmed: bool
    """Whether the sweep comes from the same node as before, or agrees with another sweep."""


class SweepChoice(NamedTuple):
    """The sweeps that count."""

    sweeps: tuple[ParsedSweep, ...] = ()
    """Sorted by subnet."""
    used: tuple[UsedSweep, ...] = ()
    """Each of these sweeps in short, in the same order."""
    offered: frozenset[str] = frozenset()
    """The subnets of which a named node has a part of a sweep."""
    ignored: tuple[IgnoredSweep, ...] = ()
    problems: tuple[ParseError, ...] = ()
    """Incomplete and damaged sweeps of named nodes."""
    findings: tuple[Finding, ...] = ()
    """Sweeps that hosts contradict, and sweeps that disagree."""
    doubts: tuple[SweepDoubt, ...] = ()


class SweepEvidence(NamedTuple):
    """What the sweeps of one round are judged by."""

    named: NamedSweepers
    attested: frozenset[str]
    """Subnets that at least two hosts report."""
    hosts: HostPorts
    now: datetime | None
    """With a time zone; None: no sweep is too new."""


class _NamedSweep(NamedTuple):
    """A sweep of a named node."""

    rank: SweepRank
    sweep: ReportedSweep


@dataclass(frozen=True, slots=True)
class _ReadSweep:
    """A parsed sweep, with its view and what hosts say about it."""

    rank: SweepRank
    sweep: ReportedSweep
    parsed: ParsedSweep
    view: SweepView
    comparison: HostComparison
    check: HostCheck


class _Comparison(NamedTuple):
    """How the sweep of another node differs from the one that is used."""

    node: str
    difference: SweepDifference
    hosts: frozenset[str]
    """The names that the sweeps give to the hosts in question: those at the cables that differ; all
    if the sweeps differ much, because a domain keeps the name of most of its hosts. So false cables
    of most hosts would move the others."""


class _Verdicts:
    """What is found about the sweeps of one round."""

    def __init__(self) -> None:
        self.problems: list[ParseError] = []
        self.refused = RefusedSweeps()
        self.findings: list[Finding] = []
        self.doubts: list[SweepDoubt] = []
        self.confirmed: set[str] = set()


class SweepChooser:
    """Chooses sweeps, and keeps what was parsed and compared from round to round."""

    def __init__(
        self, parse: ParseSweep, weigh: Callable[[ReportedSweep], int] = lambda _: 0
    ) -> None:
        """Start empty.

        Args:
            parse: reads one sweep.
            weigh: returns the size of a sweep; small sweeps are parsed first.
        """
        self._parse = parse
        self._weigh = weigh
        self._used: dict[str, _ReadSweep] = {}
        """By subnet."""
        self._compared: dict[tuple[str, str, str], _Comparison] = {}
        """By subnet, and the hashes of two sweeps."""
        self._former: set[tuple[str, str]] = set()
        """Every (subnet, node) that was named since the start."""

    def choose(self, sweeps: Iterable[ReportedSweep], evidence: SweepEvidence) -> SweepChoice:
        """Return the sweep that counts for each subnet, and what speaks against it.

        Cost: O(port lines) of changed sweeps, O(ports) of hosts.
        """
        by_subnet, ignored = self._sort_out(sweeps, evidence)
        verdicts, used = _Verdicts(), dict[str, _ReadSweep]()
        for subnet in sorted(by_subnet, key=lambda key: (self._find_weight(by_subnet[key]), key)):
            usable = list(self._read_usable(by_subnet[subnet], evidence, verdicts))
            if usable:
                used[subnet] = usable[-1] if not usable[-1].check.is_contradicted else usable[0]
                self._judge(used[subnet], by_subnet[subnet], evidence, verdicts)
        self._used = used = dict(sorted(used.items()))
        counted = {(read.sweep.node, subnet) for subnet, read in used.items()}
        verdicts.findings += verdicts.refused.findings(counted)
        ids = {row.sweep.sweep_id for rows in by_subnet.values() for row in rows}
        self._compared = {key: row for key, row in self._compared.items() if {*key[1:]} <= ids}
        return SweepChoice(
            tuple(read.parsed for read in used.values()),
            tuple(
                UsedSweep(key, read.sweep.node, key in verdicts.confirmed)
                for key, read in used.items()
            ),
            frozenset(by_subnet),
            tuple(ignored),
            tuple(verdicts.problems),
            tuple(verdicts.findings),
            tuple(verdicts.doubts),
        )

    def _find_weight(self, rows: Sequence[_NamedSweep]) -> int:
        """Return the size of the first usable sweep of a subnet."""
        return next(filter(None, (self._weigh(row.sweep) for row in rows)), 0)

    def _sort_out(
        self, sweeps: Iterable[ReportedSweep], evidence: SweepEvidence
    ) -> tuple[dict[str, list[_NamedSweep]], list[IgnoredSweep]]:
        """Return the sweeps that may count by subnet, best first, and those that are ignored."""
        by_subnet: dict[str, list[_NamedSweep]] = defaultdict(list)
        ignored: list[IgnoredSweep] = []
        for sweep in sweeps:
            rank = evidence.named.rank(sweep.subnet, sweep.node)
            reason = _find_reason(sweep, rank, evidence)
            key = (sweep.subnet, sweep.node)
            if reason is not None:
                ignored.append(IgnoredSweep(sweep.node, sweep.subnet, reason, key in self._former))
            elif rank is not None:
                self._former.add(key)
                by_subnet[sweep.subnet].append(_NamedSweep(rank, sweep))
        for rows in by_subnet.values():
            rows.sort(key=lambda row: (row.sweep.node, row.sweep.sweep_id), reverse=True)
            rows.sort(key=lambda row: _find_time(row.sweep), reverse=True)
            rows.sort(key=lambda row: row.rank)
        return by_subnet, ignored

    def _read_usable(
        self, rows: Sequence[_NamedSweep], evidence: SweepEvidence, verdicts: _Verdicts
    ) -> Iterator[_ReadSweep]:
        """Yield the complete sweeps up to the first that no host contradicts."""
        for rank, sweep in rows:
            try:
                read = self._read(rank, sweep, evidence)
            except ReportError as error:
                verdicts.problems.append(ParseError(str(error), source=sweep.title))
                verdicts.refused.add(sweep.node, sweep.subnet, error)
                continue
            yield read
            if not read.check.is_contradicted:
                return
            finding = build_contradicted_finding(sweep.node, sweep.subnet, read.check)
            verdicts.findings.append(finding)

    def _read(self, rank: SweepRank, sweep: ReportedSweep, evidence: SweepEvidence) -> _ReadSweep:
        """Return a parsed sweep with what hosts say about it.

        Raises:
            ReportError: the sweep is incomplete or damaged.
        """
        last = self._used.get(sweep.subnet)
        parsed = self._parse(sweep, last.parsed if last else None)
        if last and last.parsed is parsed:
            view, comparison = last.view, last.comparison
        else:
            view = read_view(parsed.claims)
            comparison = HostComparison(view, sweep.subnet)
        check = comparison.check(evidence.hosts)
        return _ReadSweep(rank, sweep, parsed, view, comparison, check)

    def _judge(
        self,
        used: _ReadSweep,
        rows: Sequence[_NamedSweep],
        evidence: SweepEvidence,
        verdicts: _Verdicts,
    ) -> None:
        """Record what speaks against the sweep that is used."""
        sweep, named = used.sweep, evidence.named
        confirmed = named.counted_node(sweep.subnet)
        is_confirmed = not named.has_agent_tokens or sweep.node == confirmed
        if used.check.is_contradicted:
            doubt = build_contradicted_doubt(sweep.node, sweep.subnet, used.check)
            verdicts.doubts.append(doubt)
        for rank, other in _find_others(used, rows, named, has_predecessor=not is_confirmed):
            comparison = self._compare(used, other, evidence)
            if comparison is None:
                continue
            if comparison.difference.is_empty:
                is_confirmed = True
            elif rank is not SweepRank.COUNTED:
                _record_disagreement(used, comparison, evidence, verdicts)
        if is_confirmed:
            verdicts.confirmed.add(sweep.subnet)
        else:
            doubt = build_unconfirmed_doubt(sweep.node, sweep.subnet, confirmed)
            verdicts.doubts.append(doubt)

    def _compare(
        self, used: _ReadSweep, other: ReportedSweep, evidence: SweepEvidence
    ) -> _Comparison | None:
        """Return how another sweep differs; None if it is unusable, or hosts contradict it."""
        sweep = used.sweep
        key = (sweep.subnet, sweep.sweep_id, other.sweep_id)
        known = self._compared.get(key)
        if known is not None:
            return known._replace(node=other.node)
        if sweep.sweep_id == other.sweep_id:
            return _Comparison(other.node, NO_DIFFERENCE, frozenset())
        try:
            read = self._read(SweepRank.SPARE, other, evidence)
        except ReportError:
            return None
        if read.check.is_contradicted:
            return None
        difference = compare_views(used.view, read.view)
        if difference.is_large:
            hosts = used.view.host_names | read.view.host_names
        else:
            guids = np.array(sorted(difference.host_guids), np.uint64)
            hosts = frozenset({*used.view.find_names(guids), *read.view.find_names(guids)} - {""})
        self._compared[key] = _Comparison(other.node, difference, hosts)
        return self._compared[key]


def _find_reason(
    sweep: ReportedSweep, rank: SweepRank | None, evidence: SweepEvidence
) -> IgnoreReason | None:
    """Return why a sweep does not count; None if it may."""
    if rank is None:
        return IgnoreReason.UNNAMED
    if is_lone(sweep.node, sweep.subnet, evidence):
        return IgnoreReason.LONE
    return IgnoreReason.AHEAD if is_ahead(sweep.observed_at, evidence.now) else None


def is_lone(node: str, subnet: str, evidence: SweepEvidence) -> bool:
    """Return whether a node of a cluster is the only witness of a subnet, and was never trusted."""
    named = evidence.named
    is_known = subnet in evidence.attested or named.counted_node(subnet) is not None
    return named.has_agent_tokens and not is_known and node not in named.listed


def find_lone_participants(
    reports: Iterable[Report], evidence: SweepEvidence
) -> list[IgnoredSweep]:
    """Return the nodes that offer to sweep a subnet which no other host reports."""
    return [
        IgnoredSweep(report.metadata.name, subnet, IgnoreReason.LONE)
        for report in reports
        if report.status.sweeping is not None
        for subnet in {port.subnet for port in report.swept_ports}
        if is_lone(report.metadata.name, subnet, evidence)
    ]


def _find_time(sweep: ReportedSweep) -> datetime:
    """Return the time of a sweep; the earliest one if it is unusable."""
    return parse_observed_at(sweep.observed_at) or _NO_TIME


def _find_others(
    used: _ReadSweep,
    rows: Sequence[_NamedSweep],
    named: NamedSweepers,
    *,
    has_predecessor: bool,
) -> Iterator[_NamedSweep]:
    """Yield the newest complete sweep of each other sweeper, the predecessor only on request.

    In a folder without an election, the sweeps of other nodes at about the same time.
    """
    last_rank = SweepRank.COUNTED if has_predecessor else SweepRank.SPARE
    used_at, seen = _find_time(used.sweep), {used.sweep.node}
    for row in rows:
        is_same_time = (
            not named.status.sweepers
            and used_at != _NO_TIME
            and abs(used_at - _find_time(row.sweep)) <= SAME_TIME
        )
        is_sweeper = row.rank <= last_rank or (row.rank is SweepRank.UNNAMED and is_same_time)
        if is_sweeper and row.sweep.node not in seen and row.sweep.is_complete:
            seen.add(row.sweep.node)
            yield row


def _record_disagreement(
    used: _ReadSweep, comparison: _Comparison, evidence: SweepEvidence, verdicts: _Verdicts
) -> None:
    nodes, subnet = (used.sweep.node, comparison.node), used.sweep.subnet
    difference = comparison.difference
    reported = {
        name
        for name, ports in evidence.hosts.items()
        if any(
            port.subnet == subnet if difference.is_large else port.guid in difference.host_guids
            for port in ports
        )
    }
    hosts = comparison.hosts | reported
    verdicts.doubts.append(build_disagreement_doubt(nodes, subnet, difference, hosts=hosts))
    if difference.is_large:
        verdicts.findings.append(build_disagreement_finding(nodes, subnet, difference))
