"""Which node sweeps which InfiniBand subnet. Pure.

One node of each subnet is elected and one more is its spare, each with the HCA and port to sweep
from. Who is elected stays so while it reports and has not failed; then the spare takes over. A
subnet that refuses is refused to all, so that moves nobody.
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
_LABEL: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}\Z")  # it becomes a word of a command


_CandidateKey = tuple[str, str, str, int]
"""Subnet, node, RDMA device and port number."""


class _SweepCandidate(NamedTuple):
    """A port that a subnet can be swept from."""

    has_failed: bool
    role_rank: int
    """What it is now: the elected one comes first, then the spare."""
    node_rank: int
    """Of its node by name, as people sort names."""
    port_position: int
    """Among the ports of its node, which reports have in order."""
    key: _CandidateKey


def elect_sweepers(
    reports: Iterable[Report],
    *,
    previous: FabricStatus,
    now: datetime,
    period: timedelta | None,
    unready: Collection[str] = (),
) -> FabricStatus:
    """Return who sweeps now, and whose sweep counts; equal inputs in any order give equal answers.

    A subnet whose nodes are all silent keeps what it had: nothing better is known. Cost: O(ports).

    Args:
        reports: all that there are.
        previous: what was elected last.
        now: with a time zone.
        period: how often agents report; after three without a word a node is silent. None where
            times of reports do not tell.
        ailing: nodes that are known to be silent.
    """
    reports = sorted(reports, key=lambda one: (natural_key(one.metadata.name), one.metadata.name))
    before: dict[str, list[Sweeper]] = defaultdict(list)
    for sweeper in previous.sweepers:
        before[sweeper.subnet].append(sweeper)
    standing = {
        (one.subnet, one.node, one.device, one.port): _ROLE_ORDER.index(one.role)
        for one in previous.sweepers
    }
    candidates: dict[str, list[_SweepCandidate]] = defaultdict(list)
    for rank, report in enumerate(reports):
        is_fresh = period is None or _is_fresh(report, now, STALE_PERIODS * period)
        if _is_sweep_capable(report) and is_fresh and report.metadata.name not in unready:
            for found in _find_candidates(report, rank, standing):
                candidates[found.key[0]].append(found)
    known = find_subnets(reports)
    sweepers = [
        sweeper
        for subnet in sorted({*candidates, *before} & known)
        for sweeper in _elect_for_subnet(candidates.get(subnet, ())) or before[subnet]
    ]
    return FabricStatus(sweepers=tuple(sweepers), sweeps=_find_counted_sweeps(reports, known))


def _elect_for_subnet(candidates: Sequence[_SweepCandidate]) -> list[Sweeper]:
    """Return the elected and the spare of one subnet, none where there is no candidate."""
    if not candidates:
        return []
    elected = min(candidates).key
    others = [one for one in candidates if one.key[1] != elected[1]]
    spares = [min(others).key] if others else []
    return [
        Sweeper(subnet=subnet, node=node, device=device, port=port, role=role)
        for role, (subnet, node, device, port) in zip(_ROLE_ORDER, [elected, *spares], strict=False)
    ]


def _is_sweep_capable(report: Report) -> bool:
    standing = report.status.sweeping
    return standing is not None and standing.able


def _find_candidates(
    report: Report, rank: int, standing: Mapping[_CandidateKey, int]
) -> Iterator[_SweepCandidate]:
    failed = report.status.sweeping.failed if report.status.sweeping else ()
    seen: set[str] = set()
    for position, port in enumerate(report.swept_ports):
        device, _, number = port.name.partition("/")
        if not (port.subnet and _LABEL.match(device) and _NUMBER.match(number)):
            continue
        seat = (port.subnet, report.metadata.name, device, int(number))
        now = standing.get(seat, len(_ROLE_ORDER))
        if port.subnet in seen and now == len(_ROLE_ORDER):
            continue  # of a node's ports in a subnet the first is as good as any other
        seen.add(port.subnet)
        yield _SweepCandidate(port.subnet in failed, now, rank, position, seat)


def _find_counted_sweeps(
    reports: Iterable[Report], known: Collection[str]
) -> tuple[CountedSweep, ...]:
    """Return whose sweep of each subnet is whole and newest, by what its parts say."""
    parts: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    wholes: dict[str, tuple[str, str]] = {}
    for report in reports:
        sweep = report.sweep
        if sweep is None or sweep.subnet not in known:
            continue
        node = report.metadata.name.partition(".sweep.")[0]
        key = (sweep.subnet, node, sweep.sweep_id)
        parts[key].add(sweep.part)
        if len(parts[key]) == sweep.of:
            found = (report.status.observed_at or "", node)
            wholes[sweep.subnet] = max(found, wholes.get(sweep.subnet, found))
    return tuple(
        CountedSweep(subnet=subnet, node=node) for subnet, (_, node) in sorted(wholes.items())
    )


def _is_fresh(report: Report, now: datetime, limit: timedelta) -> bool:
    try:
        observed = datetime.fromisoformat(report.status.observed_at or "")
    except ValueError:
        return False
    # A clock that is ahead would keep a node that is long gone elected.
    return observed.tzinfo is not None and abs(now - observed) <= limit
