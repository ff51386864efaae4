"""Which numbers the parts of sweeps get in the store, and which parts are out of date. Pure.

A new sweep is written beside the old one before that is removed, so a reader finds one of them
whole at any time; a sweep that is but one part replaces another such in place. Writing that broke
off is taken up where it ended.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import count

from topology.model.errors import InvariantError
from topology.reports.neighbor_report import NeighborReport, ReportMetadata, SweepPart


def number_parts(
    parts: Sequence[NeighborReport], existing: Mapping[int, SweepPart | None], *, node: str
) -> list[NeighborReport]:
    """Return the reports of new sweeps under names that keep the old ones whole meanwhile.

    Args:
        parts: of whole sweeps, each of another subnet.
        existing: what the node has in the store, by number; None for what cannot be read.
        node: whose parts these are.
    """
    kept = _find_reserved_numbers(existing)
    used: set[int] = set()
    placed = []
    for subnet in dict.fromkeys(_part(report).subnet for report in parts):
        ours = [report for report in parts if _part(report).subnet == subnet]
        numbers = _choose_numbers(ours, existing, kept=kept, used=used)
        used.update(numbers)
        placed += [
            report.model_copy(update={"metadata": ReportMetadata(name=f"{node}.sweep.{number}")})
            for report, number in zip(ours, numbers, strict=True)
        ]
    return placed


def find_outdated_parts(
    existing: Mapping[int, SweepPart | None],
    *,
    swept: Iterable[str],
    numbered: Iterable[str],
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
    kept, gone = set(numbered), {*swept, *handed_over}
    return [
        name
        for number, part in sorted(existing.items())
        if (name := f"{node}.sweep.{number}") not in kept and (part is None or part.subnet in gone)
    ]


def _part(report: NeighborReport) -> SweepPart:
    if report.spec.sweep is None:
        raise InvariantError("expected a part of a sweep")
    return report.spec.sweep


def _find_reserved_numbers(existing: Mapping[int, SweepPart | None]) -> frozenset[int]:
    """Return the numbers of whole sweeps and of what cannot be read.

    A sweep that was never written to its end counts for nobody, so its numbers are free.
    """
    by_sweep: dict[tuple[str, str, int], dict[int, list[int]]] = {}
    for number, part in existing.items():
        if part is not None:
            key = (part.subnet, part.sweep_id, part.of)
            by_sweep.setdefault(key, {}).setdefault(part.part, []).append(number)
    whole = [found for (_, _, of), found in by_sweep.items() if len(found) == of]
    unread = (number for number, part in existing.items() if part is None)
    return frozenset(unread).union(*(numbers for found in whole for numbers in found.values()))


def _choose_numbers(
    ours: Sequence[NeighborReport],
    existing: Mapping[int, SweepPart | None],
    *,
    kept: Collection[int],
    used: Collection[int],
) -> list[int]:
    """Return where the parts of one sweep go.

    What is there of the same sweep stays in its place, and one part takes that of one; all else
    goes where nothing is kept.
    """
    first = _part(ours[0])
    before = {
        number: part
        for number, part in sorted(existing.items(), reverse=True)
        if part is not None and part.subnet == first.subnet and number not in used
    }
    if len(before) == len(ours) == 1:
        return list(before)
    same = {
        part.part: number
        for number, part in before.items()
        if (part.sweep_id, part.of) == (first.sweep_id, first.of)
    }
    taken = {*kept, *used, *same.values()}
    free = (number for number in count() if number not in taken)
    return [same[at] if at in same else next(free) for at in range(len(ours))]
