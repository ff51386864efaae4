"""`toponaut diff --since`: the tree compared with that of an earlier time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import click

from generator.cli.exit_codes import ExitCode, exit_with_problems
from generator.cli.history_access import find_generation_since, open_given_history, show_time
from generator.cli.observation import read_observation
from generator.cli.output import print_document, render_table, show_count
from generator.cli.source_values import parse_sources
from generator.history.history_file import Generation
from generator.history.tree_changes import (
    OUTSIDE,
    PlaceChange,
    TreePart,
    compare_trees,
    count_changes,
    render_change,
)
from topology.model.errors import ParseError, show
from topology.model.tree import API_VERSION, TopologyTree

_HEADER: Final = ("WHAT", "NAME", "BEFORE", "NOW")


class _LoadedPast(NamedTuple):
    """The tree of an earlier time, the present one, and the input that was skipped."""

    before: Generation
    now: TopologyTree
    problems: tuple[ParseError, ...]


def print_tree_diff(
    ctx: click.Context,
    since: datetime,
    options: dict[str, Any],
    *,
    output: str,
    check: bool,
    limit: int | None,
) -> None:
    """Print which nodes, switches and domains came, went or moved since a time.

    Raises:
        click.UsageError: the options name no history.
        StoreError: the history begins later, or cannot be read.
    """
    past = _read_past(since, options)
    changes = compare_trees(past.before.tree, past.now)
    document = {
        "apiVersion": API_VERSION,
        "kind": "TreeDiff",
        "since": show_time(int(since.timestamp())),
        "generation": past.before.number,
        "rows": [render_change(change) for change in changes[:limit]],
        "leftOut": 0 if limit is None else max(0, len(changes) - limit),
    }
    print_document(document, output, text=lambda: _render_text(changes, limit))
    failed = ExitCode.CHECK_FAILED if check and changes else None
    exit_with_problems(ctx, past.problems, failed)


def _read_past(since: datetime, options: dict[str, Any]) -> _LoadedPast:
    """Read the earlier tree, and the present one: of the sources, else the last in the history."""
    store, file = options.pop("store"), options.pop("history")
    with open_given_history(store, file) as history:
        before = find_generation_since(history, since)
        newest = history.read_generations(limit=1)[0]
    sources = parse_sources(options)
    if sources.is_empty:
        return _LoadedPast(before, newest.tree, ())
    read = read_observation(sources, previous=newest.tree)
    return _LoadedPast(before, read.observation.tree, read.problems)


def _render_text(changes: Sequence[PlaceChange], limit: int | None) -> str:
    if not changes:
        return "no differences"
    table = render_table(_HEADER, map(_build_cells, changes[:limit]))
    more = 0 if limit is None else len(changes) - limit
    rows = [table, *([f"and {more} more; --all prints them"] if more > 0 else ())]
    return "\n".join([*rows, ", ".join(_list_totals(changes))])


def _build_cells(change: PlaceChange) -> tuple[str, ...]:
    places = (_show_place(change.part, place) for place in (change.before, change.after))
    return (change.part.value, show(change.name), *places)


def _show_place(part: TreePart, place: str | None) -> str:
    if place is None:
        return "-"
    if place == OUTSIDE:
        return "unplaced" if part is TreePart.NODE else "top"
    return show(place)


def _list_totals(changes: Sequence[PlaceChange]) -> Iterator[str]:
    for part in TreePart:
        counts = count_changes(changes, part)
        for number, what in zip(counts, ("added", "removed", "moved"), strict=True):
            if number:
                plural = {TreePart.SWITCH: "switches"}.get(part)
                name = plural if plural and number != 1 else part.value
                yield f"{number} {name} {what}" if plural else f"{show_count(number, name)} {what}"
