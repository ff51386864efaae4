"""Which numbers the parts of sweeps get in the store, and which parts are out of date. Pure.

A new sweep is written beside the old one before that is removed, so a reader finds one of them
whole at any time; a sweep that is but one part replaces another such in place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import count

from topology.errors import InvariantError
from topology.report import NeighborReport, ReportMetadata, SweepPart


def place_parts(
    parts: Sequence[NeighborReport], existing: Mapping[int, SweepPart | None], *, node: str
) -> list[NeighborReport]:
    """Return the reports of new sweeps under names that keep the old ones whole meanwhile.

    Args:
        parts: of whole sweeps, each of another subnet.
        existing: what the node has in the store, by number; None for what cannot be read.
        node: whose parts these are.
    """
    taken = set(existing)
    placed = []
    for subnet in dict.fromkeys(_part(report).subnet for report in parts):
        ours = [report for report in parts if _part(report).subnet == subnet]
        numbers = _same_place(ours, existing) or _free(taken, len(ours))
        taken.update(numbers)
        placed += [
            report.model_copy(update={"metadata": ReportMetadata(name=f"{node}.sweep.{number}")})
            for report, number in zip(ours, numbers, strict=True)
        ]
    return placed


def outdated_parts(
    existing: Mapping[int, SweepPart | None],
    *,
    swept: Iterable[str],
    placed: Iterable[str],
    handed_over: Collection[str],
    node: str,
) -> list[str]:
    """Return the names of parts that say nothing any more, in order.

    Args:
        existing: what the node has in the store, by number; None for what cannot be read.
        swept: subnets that were swept anew.
        placed: names of their parts.
        handed_over: subnets of which another node's sweep counts.
        node: whose parts these are.
    """
    kept, gone = set(placed), {*swept, *handed_over}
    return [
        name
        for number, part in sorted(existing.items())
        if (name := f"{node}.sweep.{number}") not in kept and (part is None or part.subnet in gone)
    ]


def _part(report: NeighborReport) -> SweepPart:
    if report.spec.sweep is None:
        raise InvariantError("expected a part of a sweep")
    return report.spec.sweep


def _same_place(
    ours: Sequence[NeighborReport], existing: Mapping[int, SweepPart | None]
) -> list[int]:
    """Return the numbers of the same sweep, or of the one part that one part replaces."""
    first = _part(ours[0])
    before = {
        number: part
        for number, part in existing.items()
        if part is not None and part.subnet == first.subnet
    }
    if len(before) == len(ours) == 1:
        return list(before)
    same = {part.part: number for number, part in before.items() if part.sweep_id == first.sweep_id}
    return [same[at] for at in range(len(ours))] if set(same) == set(range(len(ours))) else []


def _free(taken: Collection[int], wanted: int) -> list[int]:
    free = (number for number in count() if number not in taken)
    return [next(free) for _ in range(wanted)]
