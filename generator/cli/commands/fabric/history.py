"""`toponaut history`: list when the tree changed, and what changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from generator.cli import options
from generator.cli.history_access import open_given_history, show_time
from generator.cli.options import HistoryOptions
from generator.cli.output import CSV, Table, pluralize, print_document
from generator.history.tree_changes import (
    PlaceChange,
    TreePart,
    compare_trees,
    count_changes,
)
from topology.model.tree import API_VERSION

if TYPE_CHECKING:
    from generator.history.history_file import Generation

_HEADER: Final = (
    "generation",
    "time",
    "nodes",
    "domains",
    *(f"{pluralize(part)} changed" for part in TreePart),
)


@options.command(
    "history",
    examples=(
        "toponaut history --store store",
        "toponaut history --store store --since 2025-11-01 -o csv",
    ),
)
def command(
    *,
    history: HistoryOptions,
    since: datetime | None = options.since(
        "Only generations since this date or time: 2026-11-01, or 2026-11-01T08:00:00Z."
    ),
    limit: int = options.number(1, 10_000, "Number of generations, the newest ones.", default=20),
    output: str = options.output_of(CSV),
) -> None:
    """List the generations of the tree, newest first, and how many parts changed in each.

    `toponaut serve` keeps the newest generation of each minute for a day, of each hour for 31 days,
    and of each day for 400 days. `toponaut diff --since` names what changed.
    """
    since_s = 0 if since is None else int(since.timestamp())
    with open_given_history(history) as opened:
        steps = _list_steps(opened.read_generations(limit=limit + 1, since_s=since_s), limit)
        total = opened.count_generations(since_s=since_s)
    rows = [_render_step(step) for step in steps]
    left_out = total - len(steps)
    document = {
        "apiVersion": API_VERSION,
        "kind": "TreeHistory",
        "generations": rows,
        "leftOut": left_out,
    }
    older = f"and {left_out} older; --limit {total} lists all" if left_out else ""
    print_document(
        document,
        output,
        text=lambda: Table(_HEADER, [*map(_build_cells, rows)], older, "no generation"),
    )


class _ListedGeneration(NamedTuple):
    """A generation, and its differences from the kept generation before it."""

    generation: Generation
    changes: tuple[PlaceChange, ...] | None
    """None: nothing is known of what was before."""


def _list_steps(generations: Sequence[Generation], limit: int) -> list[_ListedGeneration]:
    """Return a step per generation; the last generation is only compared with."""
    before = [*generations[1:], None][: len(generations)]
    return [
        _ListedGeneration(newer, None if older is None else compare_trees(older.tree, newer.tree))
        for newer, older in zip(generations, before, strict=True)
    ][:limit]


def _render_step(step: _ListedGeneration) -> dict[str, Any]:
    tree = step.generation.tree
    counts = None
    if step.changes is not None:
        counts = {part.value: count_changes(step.changes, part)._asdict() for part in TreePart}
    return {
        "generation": step.generation.number,
        "time": show_time(step.generation.at_s),
        "nodes": len(tree.nodes) + len(tree.unplaced),
        "domains": len(tree.domains),
        "changes": counts,
    }


def _build_cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of a generation as JSON."""
    *head, changes = row.values()
    counts = ["?"] * len(TreePart) if changes is None else map(_show_counts, changes.values())
    return (*map(str, head), *counts)


def _show_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {what}" for what, number in counts.items() if number) or "none"
