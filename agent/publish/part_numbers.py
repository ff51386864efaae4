"""Numbers the parts of sweeps in the store, and finds the parts that are outdated. Pure.

A new sweep is written under other numbers before the old sweep is removed, so a reader always
finds one of them whole. A sweep of one part replaces an older sweep of one part in place. If
writing was interrupted, the next round continues with the missing parts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import count

from msgspec.structs import replace

from topology.model.errors import InvariantError
from topology.reports.neighbor_report import NeighborReport, ReportMetadata, SweepPart


def number_parts(
    parts: Sequence[NeighborReport], existing: Mapping[int, SweepPart | None], *, node: str
) -> list[NeighborReport]:
    """Return the parts of new sweeps under names that keep the old sweeps whole for now.

    Args:
        parts: the parts of whole sweeps, one sweep per subnet.
        existing: the node's parts in the store by number; None for an unreadable part.
        node: the name of the node.
    """
    kept = _find_reserved_numbers(existing)
    used: set[int] = set()
    renamed: list[NeighborReport] = []
    for subnet in dict.fromkeys(_part(report).subnet for report in parts):
        reports = [report for report in parts if _part(report).subnet == subnet]
        numbers = _choose_numbers(reports, existing, kept=kept, used=used)
        used.update(numbers)
        renamed += [
            replace(report, metadata=ReportMetadata(name=f"{node}.sweep.{number}"))
            for report, number in zip(reports, numbers, strict=True)
        ]
    return renamed


def find_outdated_parts(
    existing: Mapping[int, SweepPart | None],
    *,
    swept: Iterable[str],
    numbered: Iterable[str],
    handed_over: Collection[str],
    node: str,
) -> list[str]:
    """Return the names of outdated parts, by number.

    Args:
        existing: the node's parts in the store by number; None for an unreadable part.
        swept: the subnets with a new sweep.
        numbered: the names of the new sweeps' parts.
        handed_over: the subnets for which another node's sweep counts.
        node: the name of the node.
    """
    current, replaced = set(numbered), {*swept, *handed_over}
    return [
        name
        for number, part in sorted(existing.items())
        if (name := f"{node}.sweep.{number}") not in current
        and (part is None or part.subnet in replaced)
    ]


def _part(report: NeighborReport) -> SweepPart:
    if report.spec.sweep is None:
        raise InvariantError("expected a part of a sweep")
    return report.spec.sweep


def _find_reserved_numbers(existing: Mapping[int, SweepPart | None]) -> frozenset[int]:
    """Return the numbers of whole sweeps and of unreadable parts.

    The numbers of a sweep that was never written completely are free: readers ignore such a sweep.
    """
    by_sweep: dict[tuple[str, str, int], dict[int, list[int]]] = {}
    for number, part in existing.items():
        if part is not None:
            key = (part.subnet, part.sweep_id, part.of)
            by_sweep.setdefault(key, {}).setdefault(part.part, []).append(number)
    whole = [parts for (_, _, of), parts in by_sweep.items() if len(parts) == of]
    unreadable = (number for number, part in existing.items() if part is None)
    return frozenset(unreadable).union(*(numbers for parts in whole for numbers in parts.values()))


def _choose_numbers(
    reports: Sequence[NeighborReport],
    existing: Mapping[int, SweepPart | None],
    *,
    kept: Collection[int],
    used: Collection[int],
) -> list[int]:
    """Return the numbers for the parts of one sweep.

    Parts of the same sweep that are already stored keep their numbers. A sweep of one part takes
    the number of an older sweep of one part. All other parts take free numbers.
    """
    first = _part(reports[0])
    before = {
        number: part
        for number, part in sorted(existing.items(), reverse=True)
        if part is not None and part.subnet == first.subnet and number not in used
    }
    if len(before) == len(reports) == 1:
        return list(before)
    same = {
        part.part: number
        for number, part in before.items()
        if (part.sweep_id, part.of) == (first.sweep_id, first.of)
    }
    taken = {*kept, *used, *same.values()}
    free = (number for number in count() if number not in taken)
    return [same[index] if index in same else next(free) for index in range(len(reports))]
