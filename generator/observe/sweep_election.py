"""Elects the nodes that sweep each InfiniBand subnet, and confirms whose sweep counts. Pure.

One node of each subnet is elected and one more is its spare, each with the HCA and port to sweep
from. Both sweep, so that each confirms the other. A node stays elected while it reports and its
sweeps do not fail; then the spare takes over. A refused sweep triggers no new election, because the
subnet refuses every node. In a cluster, a subnet that a single host reports is not swept: a node
can claim any subnet.

A prefix may be that of two networks, and a port sees one of them. A port whose sweep lacks every
other host, or else most ports of its own node, is elected only if there is no better one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from generator.ingest.host_evidence import HostPort
from generator.ingest.named_sweepers import NamedSweepers
from generator.ingest.subnets import find_attested_subnets, find_subnets
from generator.ingest.sweep_choice import UsedSweep
from generator.observe.freshness import STALE_PERIODS, is_fresh
from topology.model.ids import IdKind, natural_key
from topology.reports.fabric_status import (
    CountedSweep,
    FabricStatus,
    Sweeper,
    SweepRole,
    SweepWitness,
)
from topology.reports.packed_reports import PackedReport

_ROLE_ORDER: Final = (SweepRole.ELECTED, SweepRole.SPARE)
_NUMBER: Final = re.compile(r"[1-9][0-9]?\Z")
# The device name becomes an argument of a command.
_LABEL: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}\Z")


_GUIDS: Final = frozenset({IdKind.NODE_GUID, IdKind.PORT_GUID})
_ReachRanks: TypeAlias = Mapping[tuple[str, str], Mapping[HostPort, int]]
_NOTHING: Final[_ReachRanks] = MappingProxyType({})

_CandidateKey = tuple[str, str, str, int]
"""Subnet, node, RDMA device and port number."""


class _SweepCandidate(NamedTuple):
    """A port that a subnet can be swept from."""

    has_failed: bool
    reach_rank: int
    """The `SweepReach.rank` of the node's last sweep: the less the sweep showed, the higher."""
    role_rank: int
    """The current role of the node: 0 elected, 1 spare, 2 none."""
    node_rank: int
    """Position of its node in natural order of names."""
    port_position: int
    """Position among the ports of its node, in the order of the report."""
    key: _CandidateKey


def elect_sweepers(
    reports: Iterable[PackedReport],
    *,
    named: NamedSweepers,
    now: datetime,
    period: timedelta | None,
    unready: Collection[str] = (),
    reach_ranks: _ReachRanks = _NOTHING,
) -> FabricStatus:
    """Return the sweepers of each subnet; the nodes whose sweeps count, and the witnesses, stay.

    The order of the reports does not matter. A subnet whose nodes are all silent keeps its
    sweepers. Cost: O(ports).

    Args:
        reports: all reports.
        named: the result of the last election, and the nodes that a person allows to sweep.
        now: the current time, with a time zone.
        period: how often agents report; a node is silent after three periods without a report.
            None if times of reports are not renewed, so that only `unready` counts.
        unready: nodes whose agent is known not to be ready.
        reach_ranks: how little the sweep of a port showed, by subnet, node and port.
    """
    reports = sorted(reports, key=lambda report: (natural_key(report.name), report.name))
    before: dict[str, list[Sweeper]] = defaultdict(list)
    for sweeper in named.status.sweepers:
        if _is_allowed(sweeper.node, named):
            before[sweeper.subnet].append(sweeper)
    role_ranks = {
        (sweeper.subnet, sweeper.node, sweeper.device, sweeper.port): _ROLE_ORDER.index(
            sweeper.role
        )
        for sweeper in named.status.sweepers
    }
    candidates: dict[str, list[_SweepCandidate]] = defaultdict(list)
    for rank, report in enumerate(reports):
        # Reports from the future count as silent too: with a clock that is ahead, a node that is
        # long gone would stay elected.
        is_recent = period is None or is_fresh(report, now=now, limit=STALE_PERIODS * period)
        is_able = _is_sweep_capable(report) and _is_allowed(report.name, named)
        if is_able and is_recent and report.name not in unready:
            for candidate in _find_candidates(report, rank, role_ranks, reach_ranks):
                candidates[candidate.key[0]].append(candidate)
    known = _find_swept_subnets(reports, named)
    sweepers = [
        sweeper
        for subnet in sorted({*candidates, *before} & known)
        for sweeper in _elect_for_subnet(candidates.get(subnet, ())) or before[subnet]
    ]
    sweeps = (sweep for sweep in named.status.sweeps if sweep.subnet in known)
    witnesses = (witness for witness in named.status.witnesses if witness.subnet in known)
    return FabricStatus(sweepers=tuple(sweepers), sweeps=tuple(sweeps), witnesses=tuple(witnesses))


def confirm_sweeps(
    status: FabricStatus, used: Iterable[UsedSweep], *, is_in_sync: bool
) -> FabricStatus:
    """Return the status with the nodes whose sweeps count after a round.

    The sweep of a new node counts if another sweep confirms it, or if the HyperNodes agree with it:
    it changed nothing, or a person approved what it changed. A witness whose node is gone stays
    recorded until the HyperNodes agree: then nothing is left that it could have contradicted.

    Args:
        status: the elected sweepers, and the nodes whose sweeps counted so far.
        used: the sweeps of this round.
        is_in_sync: whether the HyperNodes agree with the tree of this round.
    """
    swept = {sweeper.subnet for sweeper in status.sweepers}
    used = [sweep for sweep in used if sweep.subnet in swept]
    counted = {sweep.subnet: sweep.node for sweep in status.sweeps}
    counted |= {sweep.subnet: sweep.node for sweep in used if sweep.is_confirmed or is_in_sync}
    sweeps = (CountedSweep(subnet=subnet, node=node) for subnet, node in sorted(counted.items()))
    compared = {witness.subnet: witness.node for witness in status.witnesses} | {
        sweep.subnet: sweep.witness for sweep in used if sweep.witness or is_in_sync
    }
    witnesses = (
        SweepWitness(subnet=subnet, node=node) for subnet, node in sorted(compared.items()) if node
    )
    return status.model_copy(update={"sweeps": tuple(sweeps), "witnesses": tuple(witnesses)})


def _is_allowed(node: str, named: NamedSweepers) -> bool:
    return not named.listed or node in named.listed


def _find_swept_subnets(reports: Iterable[PackedReport], named: NamedSweepers) -> frozenset[str]:
    """Return the subnets that are swept.

    In a cluster several hosts report a port in each of them, or a person listed their node, or
    their sweep has counted before.
    """
    reports = list(reports)
    known = find_subnets(reports)
    if not named.has_agent_tokens:
        return known
    counted = frozenset(sweep.subnet for sweep in named.status.sweeps)
    listed = (report for report in reports if report.name in named.listed)
    return find_attested_subnets(reports) | (counted & known) | find_subnets(listed)


def _elect_for_subnet(candidates: Sequence[_SweepCandidate]) -> list[Sweeper]:
    """Return the elected node and the spare of one subnet; empty without a candidate."""
    if not candidates:
        return []
    elected = min(candidates).key
    others = [candidate for candidate in candidates if candidate.key[1] != elected[1]]
    spares = [min(others).key] if others else []
    return [
        Sweeper(subnet=subnet, node=node, device=device, port=port, role=role)
        for role, (subnet, node, device, port) in zip(_ROLE_ORDER, [elected, *spares], strict=False)
    ]


def _is_sweep_capable(report: PackedReport) -> bool:
    sweeping = report.status.sweeping
    return sweeping is not None and sweeping.able


def _find_candidates(
    report: PackedReport,
    rank: int,
    role_ranks: Mapping[_CandidateKey, int],
    reach_ranks: _ReachRanks,
) -> Iterator[_SweepCandidate]:
    failed = report.status.sweeping.failed if report.status.sweeping else ()
    seen_subnets: set[str] = set()
    by_name = _name_ranks(report, reach_ranks)
    for position, port in enumerate(report.swept_ports):
        device, _, number = port.name.partition("/")
        if not (port.subnet and _LABEL.match(device) and _NUMBER.match(number)):
            continue
        key = (port.subnet, report.name, device, int(number))
        role_rank = role_ranks.get(key, len(_ROLE_ORDER))
        if port.subnet in seen_subnets and role_rank == len(_ROLE_ORDER):
            continue  # one port of a node in a subnet is enough
        reach_rank = by_name.get((port.subnet, port.name), 0)
        if not reach_rank:
            seen_subnets.add(port.subnet)
        has_failed = port.subnet in failed
        yield _SweepCandidate(has_failed, reach_rank, role_rank, rank, position, key)


def _name_ranks(report: PackedReport, reach_ranks: _ReachRanks) -> dict[tuple[str, str], int]:
    """Return the rank of each port whose sweep showed little, by its subnet and name."""
    if not reach_ranks:
        return {}
    by_guid = {
        (subnet, port.port_guid or port.guid): rank
        for subnet in {port.subnet for port in report.swept_ports}
        for port, rank in reach_ranks.get((subnet, report.name), {}).items()
    }
    device = report.device if by_guid else None
    ranks: dict[tuple[str, str], int] = {}
    for port in device.ports if device else ():
        if not port.subnet:
            continue
        keys = [(port.subnet, int(id_.value, 16)) for id_ in port.ids if id_.kind in _GUIDS]
        known = [by_guid[key] for key in keys if key in by_guid]
        if known:
            ranks[port.subnet, port.name] = known[-1]
    return ranks
