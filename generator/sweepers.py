"""Which node sweeps which InfiniBand subnet. Pure.

One node of each subnet is elected and one more is its spare, each with the HCA and port to sweep
from. Who is elected stays so while it reports and has not failed; then the spare takes over. A
subnet that refuses is refused to all, so that moves nobody.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from generator.intake import STALE_PERIODS
from generator.subnets import subnets_of, swept_ports
from topology.fabric_status import CountedSweep, FabricStatus, Sweeper, SweepRole
from topology.ids import natural_key
from topology.report import NeighborReport

_NUMBER: Final = re.compile(r"[1-9][0-9]?\Z")
_LABEL: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}\Z")  # it becomes a word of a command


class _Candidate(NamedTuple):
    """A port that a subnet can be swept from."""

    node: str
    device: str
    port: int
    has_failed: bool

    def sweeper(self, subnet: str, role: SweepRole) -> Sweeper:
        return Sweeper(subnet=subnet, node=self.node, device=self.device, port=self.port, role=role)


def elect(
    reports: Iterable[NeighborReport],
    *,
    previous: FabricStatus,
    now: datetime,
    period: timedelta,
) -> FabricStatus:
    """Return who sweeps now, and whose sweep counts; equal inputs in any order give equal answers.

    A subnet whose nodes are all silent keeps what it had: nothing better is known. Cost: O(ports).

    Args:
        reports: all that there are.
        previous: what was elected last.
        now: with a time zone.
        period: how often agents report; after three without a word a node is silent.
    """
    reports = tuple(reports)
    candidates: dict[str, list[_Candidate]] = defaultdict(list)
    for report in reports:
        if _is_fresh(report, now, STALE_PERIODS * period):
            for subnet, found in _candidates(report):
                candidates[subnet].append(found)
    before: dict[str, list[Sweeper]] = defaultdict(list)
    for sweeper in previous.sweepers:
        before[sweeper.subnet].append(sweeper)
    known = subnets_of(reports)
    sweepers = [
        sweeper
        for subnet in sorted({*candidates, *before} & known)
        for sweeper in _elect_of(subnet, candidates.get(subnet, ()), before.get(subnet, ()))
    ]
    return FabricStatus(sweepers=tuple(sweepers), sweeps=_counted(reports, known))


def _elect_of(
    subnet: str, candidates: Sequence[_Candidate], before: Sequence[Sweeper]
) -> Iterator[Sweeper]:
    """Yield the elected and the spare of one subnet."""
    if not candidates:
        yield from before
        return
    standing = {(one.node, one.device, one.port): one.role for one in before}
    ranks = {SweepRole.ELECTED: 0, SweepRole.SPARE: 1, None: 2}

    def order(one: _Candidate) -> tuple[object, ...]:
        role = standing.get((one.node, one.device, one.port))
        return (
            one.has_failed,
            ranks[role],
            natural_key(one.node),
            one.node,
            natural_key(one.device),
            one.port,
        )

    ordered = sorted(candidates, key=order)
    yield ordered[0].sweeper(subnet, SweepRole.ELECTED)
    spare = next((one for one in ordered if one.node != ordered[0].node), None)
    if spare is not None:
        yield spare.sweeper(subnet, SweepRole.SPARE)


def _candidates(report: NeighborReport) -> Iterator[tuple[str, _Candidate]]:
    standing = report.status.sweeping
    if standing is None or not standing.able:
        return
    for port in swept_ports(report):
        device, _, number = port.name.partition("/")
        if _LABEL.match(device) and _NUMBER.match(number) and port.subnet:
            failed = port.subnet in standing.failed
            yield port.subnet, _Candidate(report.metadata.name, device, int(number), failed)


def _counted(reports: Iterable[NeighborReport], known: Collection[str]) -> tuple[CountedSweep, ...]:
    """Return whose sweep of each subnet is whole and newest, by what its parts say."""
    parts: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    wholes: dict[str, tuple[str, str]] = {}
    for report in reports:
        sweep = report.spec.sweep
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


def _is_fresh(report: NeighborReport, now: datetime, limit: timedelta) -> bool:
    try:
        observed = datetime.fromisoformat(report.status.observed_at or "")
    except ValueError:
        return False
    return observed.tzinfo is not None and now - observed <= limit
