"""Measure one changed report against all claims at once: python -m tests.bench.incremental.

Ethernet fabrics of 8 rails, reported by hosts and switches. A changed report has another state,
rate or text of a port, or a cable in another port. For the first change of each kind, the result
is compared with a full rebuild; then the others are timed.
"""

from __future__ import annotations

import gc
import json
import random  # noqa: TID251 - for annotations
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import click

from generator.cli.output import render_table
from tests.bench.measurement import WrongResultError
from tests.topology.incremental.changes import Claims, all_reports, built, dice, moved, restated
from topology.incremental.incremental_tree import (
    PreviousGeneration,
    RebuildScope,
    TreeState,
    build_tree_state,
)
from topology.synthetic import FabricKind, SyntheticSpec

SIZES: Final = (1024, 8192, 65536)
RAILS: Final = 8
CHANGES: Final[dict[str, Callable[[Claims, random.Random], Claims]]] = {
    "state, rate or text": restated,
    "a cable moved": moved,
}
_now: Final = time.process_time


class Figure(NamedTuple):
    """One kind of change at one size, by how much was rebuilt."""

    num_hcas: int
    change: str
    path: RebuildScope
    num_changes: int
    whole_s: float
    """All claims at once."""
    seconds: float
    """Median of the changes."""


def measure(num_hcas: int, num_changes: int) -> list[Figure]:
    """Return the medians of random single changes.

    Raises:
        WrongResultError: going on gave another result than all claims at once.
    """
    claims = all_reports(
        built(SyntheticSpec(FabricKind.RAIL, max(1, num_hcas // RAILS), rails=RAILS))
    )
    known = build_tree_state(claims)
    start = _now()
    known = build_tree_state(claims, context=PreviousGeneration(known.inference_state.tree))
    whole_s = _now() - start
    figures = []
    for name, change in CHANGES.items():
        rng = dice(name)
        known = _check(known, change(claims, rng))
        claims, times = known.claims, defaultdict[RebuildScope, list[float]](list)
        for _ in range(num_changes):
            changed = change(claims, rng)
            context = PreviousGeneration(known.inference_state.tree)
            gc.collect()
            start = _now()
            found = build_tree_state(changed, context=context, last=known)
            times[found.scope].append(_now() - start)
        figures += [
            Figure(num_hcas, name, path, len(spent), whole_s, statistics.median(spent))
            for path, spent in sorted(times.items())
        ]
    return figures


def _check(known: TreeState, claims: Claims) -> TreeState:
    context = PreviousGeneration(known.inference_state.tree)
    found = build_tree_state(claims, context=context, last=known)
    whole = build_tree_state(claims, context=context)
    if (found.fabric, found.inference_state.inference) != (
        whole.fabric,
        whole.inference_state.inference,
    ):
        raise WrongResultError("one changed report gives another result than all reports")
    return found


def render(figures: Sequence[Figure]) -> list[dict[str, Any]]:
    """Return the figures as plain rows; `ratio` is that of a change to all claims at once."""
    return [
        {**figure._asdict(), "ratio": round(figure.seconds / figure.whole_s, 5)}
        for figure in figures
    ]


def render_text(figures: Sequence[Figure]) -> str:
    """Return the figures as a table."""
    rows = [
        (
            str(figure.num_hcas),
            figure.change,
            figure.path.value,
            str(figure.num_changes),
            f"{figure.whole_s:.3g} s",
            f"{1000 * figure.seconds:.3g} ms",
            f"1/{figure.whole_s / figure.seconds:.0f}",
        )
        for figure in figures
    ]
    heads = ("HCAS", "CHANGE", "DONE ANEW", "CHANGES", "ALL REPORTS", "ONE REPORT", "RATIO")
    return render_table(heads, rows)


@click.command()
@click.option("--sizes", default=",".join(map(str, SIZES)), show_default=True)
@click.option("--changes", type=click.IntRange(min=1), default=30, show_default=True)
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text")
def main(sizes: str, changes: int, output: str) -> None:
    """Print what one changed report costs, as a ratio to all reports in the same run."""
    gc.set_threshold(200_000, 20, 20)  # as the command does
    figures: list[Figure] = []
    for size in map(int, sizes.split(",")):
        click.echo(f"{size} HCAs: one changed report", err=True)
        figures += measure(size, changes)
    click.echo(json.dumps(render(figures), indent=2) if output == "json" else render_text(figures))


if __name__ == "__main__":
    main()
