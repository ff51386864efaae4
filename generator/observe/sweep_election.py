"""Elects the node that sweeps each InfiniBand subnet. Pure.

One node of each subnet is elected and one more is its spare, each with the HCA and port to sweep
from. A node stays elected while it reports and its sweeps do not fail; then the spare takes over.
A refused sweep triggers no new election, because the subnet refuses every node.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from generator.ingest.subnets import find_subnets
from generator.observe.freshness import STALE_PERIODS
from topology.model.ids import natural_key
from topology.reports.compact_reports import Report
from topology.reports.fabric_status import CountedSweep, FabricStatus, Sweeper, SweepRole

_ROLE_ORDER: Final = (SweepRole.ELECTED, SweepRole.SPARE)
_NUMBER: Final = re.compile(r"[1-9][0-9]?\Z")
# The device name becomes an argument of a command.
_LABEL: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}\Z")


_CandidateKey = tuple[str, str, str, int]
"""Subnet, node, RDMA device and port number."""


class _SweepCandidate(NamedTuple):
    """A port that a subnet can be swept from."""

    has_failed: bool
    role_rank: int
    """Its current role: 0 elected, 1 spare, 2 none."""
    node_rank: int
    """Position of its node in natural order of names."""
    port_position: int
    """Position among the ports of its node, in the order of the report."""
    key: _CandidateKey


def elect_sweepers(
    reports: Iterable[Report],
    *,
    previous: FabricStatus,
    now: datetime,
    period: timedelta | None,
    unready: Collection[str] = (),
) -> FabricStatus:
    """Return the sweepers of each subnet, and the node whose sweep counts.

    The order of the reports does not matter. A subnet whose nodes are all silent keeps its
    sweepers. Cost: O(ports).

    Args:
        reports: all reports.
        previous: the result of the last election.
        now: with a time zone.
        period: how often agents report; a node is silent after three periods without a report.
            None if times of reports are not renewed, so that only `unready` counts.
        unready: nodes whose agent is known not to be ready.
    """
    reports = sorted(
        reports, key=lambda report: (natural_key(report.metadata.name), report.metadata.name)
    )
    before: dict[str, list[Sweeper]] = defaultdict(list)
    for sweeper in previous.sweepers:
        before[sweeper.subnet].append(sweeper)
    role_ranks = {
        (sweeper.subnet, sweeper.node, sweeper.device, sweeper.port): _ROLE_ORDER.index(
            sweeper.role
        )
        for sweeper in previous.sweepers
    }
    candidates: dict[str, list[_SweepCandidate]] = defaultdict(list)
    for rank, report in enumerate(reports):
        is_fresh = period is None or _is_fresh(report, now, STALE_PERIODS * period)
        if _is_sweep_capable(report) and is_fresh and report.metadata.name not in unready:
            for candidate in _find_candidates(report, rank, role_ranks):
                candidates[candidate.key[0]].append(candidate)
    known = find_subnets(reports)
    sweepers = [
        sweeper
        for subnet in sorted({*candidates, *before} & known)
        for sweeper in _elect_for_subnet(candidates.get(subnet, ())) or before[subnet]
    ]
    return FabricStatus(sweepers=tuple(sweepers), sweeps=_find_counted_sweeps(reports, known))


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


def _is_sweep_capable(report: Report) -> bool:
    sweeping = report.status.sweeping
    return sweeping is not None and sweeping.able


def _find_candidates(
    report: Report, rank: int, role_ranks: Mapping[_CandidateKey, int]
) -> Iterator[_SweepCandidate]:
    failed = report.status.sweeping.failed if report.status.sweeping else ()
    seen_subnets: set[str] = set()
    for position, port in enumerate(report.swept_ports):
        device, _, number = port.name.partition("/")
        if not (port.subnet and _LABEL.match(device) and _NUMBER.match(number)):
            continue
        key = (port.subnet, report.metadata.name, device, int(number))
        role_rank = role_ranks.get(key, len(_ROLE_ORDER))
        if port.subnet in seen_subnets and role_rank == len(_ROLE_ORDER):
            continue  # one port of a node in a subnet is enough
        seen_subnets.add(port.subnet)
        yield _SweepCandidate(port.subnet in failed, role_rank, rank, position, key)


def _find_counted_sweeps(
    reports: Iterable[Report], known: Collection[str]
) -> tuple[CountedSweep, ...]:
    """Return the node with the newest complete sweep of each subnet."""
    parts: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    newest: dict[str, tuple[str, str]] = {}
    for report in reports:
        sweep = report.sweep
        if sweep is None or sweep.subnet not in known:
            continue
        node = report.metadata.name.partition(".sweep.")[0]
        key = (sweep.subnet, node, sweep.sweep_id)
        parts[key].add(sweep.part)
        if len(parts[key]) == sweep.of:
            sweep_key = (report.status.observed_at or "", node)
            newest[sweep.subnet] = max(sweep_key, newest.get(sweep.subnet, sweep_key))
    return tuple(
        CountedSweep(subnet=subnet, node=node) for subnet, (_, node) in sorted(newest.items())
    )


def _is_fresh(report: Report, now: datetime, limit: timedelta) -> bool:
    try:
        observed = datetime.fromisoformat(report.status.observed_at or "")
    except ValueError:
        return False
    # Reports from the future count as silent too: with a clock that is ahead, a node that is
    # long gone would stay elected.
    return observed.tzinfo is not None and abs(now - observed) <= limit
