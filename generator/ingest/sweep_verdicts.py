"""What speaks against a sweep: the other sweeps of its subnet, and what hosts report. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from generator.ingest.host_evidence import HostCheck, HostComparison, HostPorts, SweepReach
from generator.ingest.inputs import SweepDoubt
from generator.ingest.named_sweepers import NamedSweepers, SweepRank
from generator.ingest.reported_sweep import ParsedSweep, ReportedSweep
from generator.ingest.sweep_findings import (
    build_contradicted_finding,
    build_disagreement_doubt,
    build_disagreement_finding,
)
from generator.ingest.sweep_views import SweepDifference, SweepView
from generator.ingest.unusable_reports import RefusedSweeps
from topology.model.errors import ParseError
from topology.model.facts import Finding
from topology.reports.observed_time import parse_observed_at

SAME_TIME: Final = timedelta(minutes=15)
"""Sweeps in a folder are compared if they are no further apart: three usual intervals."""
_NO_TIME: Final = datetime.min.replace(tzinfo=UTC)


class SweepEvidence(NamedTuple):
    """What the sweeps of one round are judged by."""

    named: NamedSweepers
    attested: frozenset[str]
    """Subnets that at least two hosts report."""
    hosts: HostPorts
    now: datetime | None
    """With a time zone; None: no sweep is too new."""
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
    comparison: HostComparison
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
        self.refused = RefusedSweeps()
        self.contradicted: dict[tuple[str, str], HostCheck] = {}
        """By node and subnet: what hosts say against the sweep."""
        self.disagreements: list[Finding] = []
        self.doubts: list[SweepDoubt] = []
        self.confirmed: set[str] = set()
        self.witnesses: dict[str, str] = {}
        """By subnet."""

    def find_lost_witness(self, used: ReportedSweep, named: NamedSweepers) -> str | None:
        """Return the node whose sweep was compared last; None if its word is worth nothing.

        So a sweeper that hosts contradict holds nothing as long as it sweeps.
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
        return (*contradicted, *self.disagreements, *self.refused.findings(counted))


def find_time(sweep: ReportedSweep) -> datetime:
    """Return the time of a sweep; the earliest one if it is unusable."""
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
        evidence: what hosts report; they are in question as well.
        verdicts: where it is recorded.
    """
    nodes, subnet = (used.sweep.node, comparison.node), used.sweep.subnet
    silent = comparison.node if rank is SweepRank.WITNESS else None
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
    verdicts.doubts.append(
        build_disagreement_doubt(nodes, subnet, difference, hosts=hosts, silent=silent)
    )
    if difference.is_large:
        finding = build_disagreement_finding(nodes, subnet, difference, silent=silent)
        verdicts.disagreements.append(finding)
