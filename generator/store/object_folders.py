"""Reads the objects in any folder of YAML and JSON files, which anyone may have written.

A file holds one object or several. Each unusable file or document becomes a problem that names it,
and affects no other file. Of several reports with one name, the newest by `status.observedAt` is
used. If the times are equal or missing and the contents differ, none is used, because each of them
may be wrong. The same holds for HyperNodes, which have no time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from generator.kube.cache import Listing, StoredObject
from generator.outputs.hypernode.model import HyperNode, parse_manifest
from generator.store.object_files import (
    list_files,
    list_ignored_files,
    read_objects,
    render_json,
    write_object,
)
from runtime.clock import utc_now
from runtime.progress import NO_PROGRESS, Progress, track
from topology.model.errors import ParseError, show
from topology.reports.neighbor_report import (
    NeighborReport,
    parse_report,
    render_report,
)
from topology.reports.observed_time import is_ahead, parse_observed_at
from topology.reports.packed_reports import PackedReport, pack_report

Value = TypeVar("Value")


def read_reports(
    folder: Path, *, now: datetime | None = None, progress: Progress = NO_PROGRESS
) -> Listing[PackedReport]:
    """Return every report in a folder, without withdrawn parts of sweeps.

    Args:
        folder: contains the files.
        now: the time, with a time zone; None: the time of the clock. Among reports of one name,
            those with a later time do not count.
        progress: shows the files that are read.

    Raises:
        StoreError: the folder cannot be read.
    """
    return drop_withdrawn(list_reports(folder, now=now, progress=progress))


def list_reports(
    folder: Path, *, now: datetime | None = None, progress: Progress = NO_PROGRESS
) -> Listing[PackedReport]:
    """Return every report in a folder, whatever the order of its files.

    A refused file has its own name. Arguments and errors as in `read_reports`.
    """
    files = list_files(folder)
    problems: list[ParseError] = [*list_ignored_files(folder)]
    refused: dict[str, ParseError] = {}
    rows: list[tuple[str, Path, PackedReport]] = []
    for file in track(files, "reading reports", progress):
        found: list[ParseError] = []
        reports = read_objects(file, lambda document: pack_report(parse_report(document)), found)
        rows += [(report.name, file, report) for report in reports]
        if found:
            refused[file.name] = found[0]
            problems += found[1:]
    chosen = _choose_one_per_name(rows, partial(_find_newest, now=now or utc_now()), problems)
    objects = tuple(StoredObject[PackedReport](report.name, report) for report in chosen)
    return Listing(objects, refused, tuple(problems), len(files))


def drop_withdrawn(listing: Listing[PackedReport]) -> Listing[PackedReport]:
    """Return a listing without withdrawn parts of sweeps."""
    kept = tuple(
        row for row in listing.objects if not (row.value.sweep and row.value.sweep.is_withdrawn)
    )
    return listing._replace(objects=kept)


def write_report(folder: Path, report: NeighborReport) -> bool:
    """Write a report into a folder; return False if the file has this content already.

    Raises:
        StoreError: the name is not valid for an object, or the folder cannot be written.
    """
    return write_object(folder, report.metadata.name, render_json(render_report(report)))


def read_hypernodes(folder: Path) -> Listing[HyperNode]:
    """Return every HyperNode in a folder, ours and foreign ones.

    Raises:
        StoreError: the folder cannot be read.
    """
    problems: list[ParseError] = []
    rows = [
        (hypernode.name, file, hypernode)
        for file in list_files(folder)
        for hypernode in read_objects(file, parse_manifest, problems)
    ]
    chosen = _choose_one_per_name(rows, _find_agreed, problems)
    return Listing(tuple(StoredObject(row.name, row) for row in chosen), problems=tuple(problems))


def _choose_one_per_name(
    rows: Sequence[tuple[str, Path, Value]],
    choose: Callable[[Sequence[Value]], Value | None],
    problems: list[ParseError],
) -> tuple[Value, ...]:
    """Return one object per name, sorted by name; add each repeated name to `problems`.

    Args:
        rows: (name, file, object) of every object.
        choose: returns the object to use of several with one name, or None to use none; not called
            for a single object.
        problems: takes the problems.
    """
    by_name: dict[str, list[tuple[Path, Value]]] = {}
    for name, file, item in rows:
        by_name.setdefault(name, []).append((file, item))
    chosen = []
    for name in sorted(by_name):
        files, objects = zip(*by_name[name], strict=True)
        choice = objects[0] if len(objects) == 1 else choose(objects)
        if choice is not None:
            chosen.append(choice)
        if len(objects) > 1:
            verdict = "none is used: they differ" if choice is None else "one is used"
            others = ", ".join(dict.fromkeys(file.name for file in files[1:]))
            problem = f"{name} is also in {others}; {verdict}"
            problems.append(ParseError(show(problem), source=str(files[0])))
    return tuple(chosen)


def _find_agreed(objects: Sequence[HyperNode]) -> HyperNode | None:
    """Return the first object if all objects are equal, otherwise None."""
    return objects[0] if all(item == objects[0] for item in objects) else None


def _find_newest(objects: Sequence[PackedReport], *, now: datetime) -> PackedReport | None:
    """Return the report observed last; None if several have that time and their facts differ.

    A report that is dated ahead of our clock counts only if all are.

    Args:
        objects: reports of one name.
        now: the current time, with a time zone.
    """
    times = [_rank_time(report, now) for report in objects]
    newest = max(times)
    is_clear = times.count(newest) == 1 or all(
        report.content == objects[0].content for report in objects
    )
    return objects[times.index(newest)] if is_clear else None


def _rank_time(report: PackedReport, now: datetime) -> tuple[bool, float]:
    """Return the sort key of a report by its time.

    The key is whether the time is not ahead of the clock, then its seconds since 1970, which are
    -inf if the time is unusable.
    """
    text = report.status.observed_at
    observed = parse_observed_at(text)
    seconds = float("-inf") if observed is None else observed.timestamp()
    return not is_ahead(text, now), seconds
