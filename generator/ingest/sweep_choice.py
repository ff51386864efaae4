"""Chooses the sweep that counts for each subnet, with the problems and findings about it. Pure.

A sweep counts only if its node is named (`named_sweepers`). The elected node's sweep is used before
that of its spare, unless hosts contradict it. A doubt holds plans that depend on the sweep: hosts
contradict it, another named node sees other cables, or it comes from a new node and nobody confirms
it. A sweeper that falls silent stays a witness with its last sweep, until another one has swept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import numpy as np

from generator.ingest.host_evidence import (
    HostCheck,
    HostPort,
    HostPorts,
    SweepReach,
    check_hosts,
    find_reach,
)
from generator.ingest.inputs import SweepDoubt
from generator.ingest.named_sweepers import NamedSweepers, SweepRank
from generator.ingest.report_findings import (
    IgnoredSweep,
    IgnoreReason,
    build_contradicted_doubt,
    build_contradicted_finding,
    build_disagreement_doubt,
    build_disagreement_finding,
    build_lost_witness_doubt,
    build_unconfirmed_doubt,
    derive_refused_sweep_findings,
    describe_reach,
)
from generator.ingest.sweep_views import (
    NO_DIFFERENCE,
    SweepDifference,
    SweepView,
    compare_views,
    read_view,
)
from generator.ingest.sweeps import (
    ParsedSweep,
    ReportedSweep,
    SweepParser,
)
from topology.model.errors import ParseError, ReportError
from topology.model.facts import Finding
from topology.reports.observed_time import is_ahead, parse_observed_at
from topology.reports.packed_reports import PackedReport

SAME_TIME: Final = timedelta(minutes=15)
"""Sweeps in a folder are compared if they are no further apart: three usual intervals."""
_NO_TIME: Final = datetime.min.replace(tzinfo=UTC)


class SweepEvidence(NamedTuple):
    """The evidence by which the sweeps of one round are judged."""

    named: NamedSweepers
    attested: frozenset[str]
    """Subnets that at least two hosts report."""
    hosts: HostPorts
    now: datetime | None
    """The current time, with a time zone; None: no sweep is too new."""
    nodes: Collection[str] = ()
    """The nodes of the cluster, if they are known."""


class NamedSweep(NamedTuple):
    """A sweep of a named node."""

    rank: SweepRank
    sweep: ReportedSweep


@dataclass(frozen=True, slots=True)
class ReadSweep:
    """A parsed sweep, with its view and what hosts say about it."""

    rank: SweepRank
    sweep: ReportedSweep
    parsed: ParsedSweep
    view: SweepView
    check: HostCheck
    reach: SweepReach


class SweepComparison(NamedTuple):
    """How the sweep of another node differs from the one that is used."""

    node: str
    difference: SweepDifference
    hosts: frozenset[str]
    """The names that the sweeps give to the hosts in question: those at the cables that differ; all
    if the sweeps differ much, because a domain keeps the name of most of its hosts. So false cables
    of most hosts would move the others."""


class SweepVerdicts:
    """What is found about the sweeps of one round."""

    def __init__(self) -> None:
        """Find nothing yet."""
        self.problems: list[ParseError] = []
        self.refused: dict[tuple[str, str], ReportError] = {}
        """By node and subnet: why its first unusable sweep cannot be used."""
        self.contradicted: dict[tuple[str, str], HostCheck] = {}
        """By node and subnet: what hosts say against the sweep."""
        self.disagreements: list[Finding] = []
        self.doubts: list[SweepDoubt] = []
        self.confirmed: set[str] = set()
        self.witnesses: dict[str, str] = {}
        """By subnet."""

    def find_lost_witness(self, used: ReportedSweep, named: NamedSweepers) -> str | None:
        """Return the node whose sweep was compared last; None if its sweep is not credible.

        So a sweeper that hosts contradict cannot hold plans while it sweeps.
        """
        witness = named.witness_node(used.subnet)
        is_void = witness == used.node or (witness, used.subnet) in self.contradicted
        return None if is_void else witness

    def build_findings(self, counted: Collection[tuple[str, str]]) -> tuple[Finding, ...]:
        """Return all findings.

        Args:
            counted: node and subnet of each sweep that counts.
        """
        contradicted = (
            build_contradicted_finding(node, subnet, check)
            for (node, subnet), check in self.contradicted.items()
        )
        return (
            *contradicted,
            *self.disagreements,
            *derive_refused_sweep_findings(self.refused, counted),
        )


def find_time(sweep: ReportedSweep) -> datetime:
    """Return the time of a sweep; the earliest possible time if the sweep has no usable time."""
    return parse_observed_at(sweep.observed_at) or _NO_TIME


def find_others(
    used: ReadSweep,
    rows: Sequence[NamedSweep],
    named: NamedSweepers,
    *,
    has_predecessor: bool,
) -> Iterator[NamedSweep]:
    """Yield the newest complete sweep of each other sweeper and of the witness, which comes last.

    In a folder without an election, the sweeps of other nodes at about the same time.

    Args:
        used: the sweep that is used.
        rows: all sweeps of the subnet that may count, best first.
        named: the nodes whose sweeps count.
        has_predecessor: whether the predecessor's sweep is yielded too.
    """
    last_rank = SweepRank.COUNTED if has_predecessor else SweepRank.SPARE
    used_at, seen = find_time(used.sweep), {used.sweep.node}
    for row in rows:
        is_same_time = (
            not named.status.sweepers
            and used_at != _NO_TIME
            and abs(used_at - find_time(row.sweep)) <= SAME_TIME
        )
        is_named = row.rank <= last_rank or row.rank is SweepRank.WITNESS
        is_sweeper = is_named or (row.rank is SweepRank.UNNAMED and is_same_time)
        if is_sweeper and row.sweep.node not in seen and row.sweep.is_complete:
            seen.add(row.sweep.node)
            yield row


def record_disagreement(
    used: ReadSweep,
    rank: SweepRank,
    comparison: SweepComparison,
    evidence: SweepEvidence,
    verdicts: SweepVerdicts,
) -> None:
    """Record how the sweep of another node differs from the one that is used.

    Args:
        used: the sweep that is used.
        rank: why the other sweep counts; a witness does not sweep any longer.
        comparison: how the two differ.
        evidence: what hosts report; the hosts are in question too.
        verdicts: the verdicts, to which this disagreement is added.
    """
    nodes, subnet = (used.sweep.node, comparison.node), used.sweep.subnet
    silent = comparison.node if rank is SweepRank.WITNESS else None
    difference = comparison.difference

    def is_in_question(port: HostPort) -> bool:
        if difference.is_large:
            return port.subnet == subnet
        return port.guid in difference.host_guids

    reported = {name for name, ports in evidence.hosts.items() if any(map(is_in_question, ports))}
    hosts = comparison.hosts | reported
    verdicts.doubts.append(
        build_disagreement_doubt(nodes, subnet, difference, hosts=hosts, silent=silent)
    )
    if difference.is_large:
        finding = build_disagreement_finding(nodes, subnet, difference, silent=silent)
        verdicts.disagreements.append(finding)


class UsedSweep(NamedTuple):
    """A sweep that is used."""

    subnet: str
    node: str
    is_confirmed: bool
    """Whether the sweep comes from the same node as before, or agrees with another sweep."""
    witness: str | None = None
    """The node whose sweep it was compared with; None if there is none."""


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
    reaches: tuple[SweepReach, ...] = ()
    """How far the last sweep of each node reaches that was read."""


class SweepChooser:
    """Chooses sweeps, and keeps what was parsed and compared from round to round."""

    def __init__(self) -> None:
        """Start empty."""
        self._parser = SweepParser()
        self._used: dict[str, ReadSweep] = {}
        """By subnet."""
        self._compared: dict[tuple[str, str, str], SweepComparison] = {}
        """By subnet, and the hashes of two sweeps."""
        self._former: set[tuple[str, str]] = set()
        """Every (subnet, node) that was named since the start."""
        self._reaches: dict[tuple[str, str], SweepReach] = {}
        """By subnet and node."""

    def choose(self, sweeps: Collection[ReportedSweep], evidence: SweepEvidence) -> SweepChoice:
        """Return the sweep that counts for each subnet, and the problems and findings about it.

        Small sweeps are parsed first. Cost: O(port lines) of changed sweeps, O(ports) of hosts.
        """
        self._parser.start_round(sweeps)
        by_subnet, ignored = self._sort_out(sweeps, evidence)
        verdicts, used = SweepVerdicts(), dict[str, ReadSweep]()
        for subnet in sorted(by_subnet, key=lambda key: (self._find_weight(by_subnet[key]), key)):
            usable = list(self._read_usable(by_subnet[subnet], evidence, verdicts))
            if usable:
                used[subnet] = usable[-1] if not usable[-1].check.is_contradicted else usable[0]
                self._judge(used[subnet], by_subnet[subnet], evidence, verdicts)
        self._used = used = dict(sorted(used.items()))
        swept = {(row.sweep.subnet, row.sweep.node) for rows in by_subnet.values() for row in rows}
        self._reaches = {key: reach for key, reach in self._reaches.items() if key in swept}
        counted = {(read.sweep.node, subnet) for subnet, read in used.items()}
        ids = {row.sweep.sweep_id for rows in by_subnet.values() for row in rows}
        self._compared = {key: row for key, row in self._compared.items() if {*key[1:]} <= ids}
        return SweepChoice(
            tuple(read.parsed for read in used.values()),
            tuple(
                UsedSweep(
                    key, read.sweep.node, key in verdicts.confirmed, verdicts.witnesses.get(key)
                )
                for key, read in used.items()
            ),
            frozenset(by_subnet),
            tuple(ignored),
            tuple(verdicts.problems),
            verdicts.build_findings(counted),
            tuple(verdicts.doubts),
            tuple(self._reaches[key] for key in sorted(self._reaches)),
        )

    def _find_weight(self, rows: Sequence[NamedSweep]) -> int:
        """Return the size of the first usable sweep of a subnet."""
        return next(filter(None, (self._parser.weigh(row.sweep) for row in rows)), 0)

    def _sort_out(
        self, sweeps: Iterable[ReportedSweep], evidence: SweepEvidence
    ) -> tuple[dict[str, list[NamedSweep]], list[IgnoredSweep]]:
        """Return the sweeps that may count by subnet, best first, and those that are ignored."""
        by_subnet: dict[str, list[NamedSweep]] = defaultdict(list)
        ignored: list[IgnoredSweep] = []
        for sweep in sweeps:
            rank = evidence.named.rank(sweep.subnet, sweep.node)
            reason = _find_reason(sweep, rank, evidence)
            key = (sweep.subnet, sweep.node)
            if reason is not None:
                ignored.append(IgnoredSweep(sweep.node, sweep.subnet, reason, key in self._former))
            elif rank is not None:
                self._former.add(key)
                by_subnet[sweep.subnet].append(NamedSweep(rank, sweep))
        for rows in by_subnet.values():
            rows.sort(key=lambda row: (row.sweep.node, row.sweep.sweep_id), reverse=True)
            rows.sort(key=lambda row: find_time(row.sweep), reverse=True)
            rows.sort(key=lambda row: row.rank)
        return by_subnet, ignored

    def _read_usable(
        self, rows: Sequence[NamedSweep], evidence: SweepEvidence, verdicts: SweepVerdicts
    ) -> Iterator[ReadSweep]:
        """Yield the complete sweeps up to the first that no host contradicts."""
        for rank, sweep in rows:
            if rank is SweepRank.WITNESS:
                continue
            try:
                read = self._read(rank, sweep, evidence)
            except ReportError as error:
                verdicts.problems.append(ParseError(str(error), source=sweep.title))
                verdicts.refused.setdefault((sweep.node, sweep.subnet), error)
                continue
            if read.reach.is_own_board:
                problem = describe_reach(read.reach)
                verdicts.problems.append(ParseError(problem, source=sweep.title))
                continue
            yield read
            if not read.check.is_contradicted:
                return
            verdicts.contradicted[sweep.node, sweep.subnet] = read.check

    def _read(self, rank: SweepRank, sweep: ReportedSweep, evidence: SweepEvidence) -> ReadSweep:
        """Return a parsed sweep with what hosts say about it.

        Raises:
            ReportError: the sweep is incomplete or damaged.
        """
        last = self._used.get(sweep.subnet)
        parsed = self._parser.parse(sweep, last.parsed if last else None)
        view = last.view if last and last.parsed is parsed else read_view(parsed.devices)
        check = check_hosts(view, sweep.subnet, evidence.hosts)
        reach = find_reach(view, sweep.subnet, sweep.node, hosts=evidence.hosts, check=check)
        self._reaches[sweep.subnet, sweep.node] = reach
        return ReadSweep(rank, sweep, parsed, view, check, reach)

    def _judge(
        self,
        used: ReadSweep,
        rows: Sequence[NamedSweep],
        evidence: SweepEvidence,
        verdicts: SweepVerdicts,
    ) -> None:
        """Record the problems, findings and doubts about the sweep that is used."""
        sweep, named = used.sweep, evidence.named
        subnet, confirmed = sweep.subnet, named.counted_node(sweep.subnet)
        is_confirmed = not named.has_agent_tokens or sweep.node == confirmed
        if used.check.is_contradicted:
            verdicts.doubts.append(build_contradicted_doubt(sweep.node, subnet, used.check))
        others = find_others(used, rows, named, has_predecessor=not is_confirmed)
        compared = list(self._compare_all(used, others, evidence, verdicts))
        for rank, comparison in compared:
            if comparison.difference.is_empty:
                is_confirmed = True
            elif rank is not SweepRank.COUNTED:
                record_disagreement(used, rank, comparison, evidence, verdicts)
        nodes = (comparison.node for _, comparison in compared)
        witness = next(nodes, None) or verdicts.find_lost_witness(sweep, named)
        if is_confirmed:
            verdicts.confirmed.add(subnet)
            if witness and not compared:
                verdicts.doubts.append(build_lost_witness_doubt(sweep.node, subnet, witness))
        else:
            verdicts.doubts.append(build_unconfirmed_doubt(sweep.node, subnet, confirmed))
        # Its sweep may be missing because of the quota: only a deleted node is no witness.
        is_there = witness in evidence.nodes or any(row.sweep.node == witness for row in rows)
        if witness and is_there:
            verdicts.witnesses[subnet] = witness

    def _compare_all(
        self,
        used: ReadSweep,
        others: Iterable[NamedSweep],
        evidence: SweepEvidence,
        verdicts: SweepVerdicts,
    ) -> Iterator[tuple[SweepRank, SweepComparison]]:
        """Yield how the sweeps of others differ, if they are usable.

        The sweep of a witness is compared only if no other sweeper has swept.
        """
        is_witnessed = False
        for row in others:
            if row.rank is SweepRank.WITNESS and is_witnessed:
                return
            comparison = self._compare(used, row, evidence, verdicts)
            if comparison is not None:
                is_witnessed = True
                yield row.rank, comparison

    def _compare(
        self, used: ReadSweep, row: NamedSweep, evidence: SweepEvidence, verdicts: SweepVerdicts
    ) -> SweepComparison | None:
        """Return how another sweep differs; None if that sweep is unusable or hosts contradict it.

        A contradicted sweep of an elected or spare node is noted in `verdicts`. Comparisons are
        cached.
        """
        sweep, other = used.sweep, row.sweep
        key = (sweep.subnet, sweep.sweep_id, other.sweep_id)
        known = self._compared.get(key)
        if known is not None:
            return known._replace(node=other.node)
        if sweep.sweep_id == other.sweep_id:
            return SweepComparison(other.node, NO_DIFFERENCE, frozenset())
        try:
            read = self._read(row.rank, other, evidence)
        except ReportError:
            return None
        if read.reach.is_own_board:
            return None
        if read.check.is_contradicted:
            if row.rank <= SweepRank.SPARE:
                verdicts.contradicted[other.node, other.subnet] = read.check
            return None
        difference = compare_views(used.view, read.view)
        if difference.is_large:
            hosts = used.view.host_names | read.view.host_names
        else:
            guids = np.array(sorted(difference.host_guids), np.uint64)
            hosts = frozenset({*used.view.find_names(guids), *read.view.find_names(guids)} - {""})
        self._compared[key] = SweepComparison(other.node, difference, hosts)
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
    reports: Iterable[PackedReport], evidence: SweepEvidence
) -> list[IgnoredSweep]:
    """Return the nodes that offer to sweep a subnet which no other host reports."""
    return [
        IgnoredSweep(report.name, subnet, IgnoreReason.LONE)
        for report in reports
        if report.status.sweeping is not None
        for subnet in {port.subnet for port in report.swept_ports}
        if is_lone(report.name, subnet, evidence)
    ]
