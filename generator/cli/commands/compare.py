"""`toponaut compare`: the same gang as every scheduler would place it, side by side."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

import click

from generator.cli.cluster_input import (
    cluster_options,
    fitted,
    question_options,
    read_question,
    read_scene,
    snapshot_of,
    timeout_option,
)
from generator.cli.observation import finish
from generator.cli.output import print_document, table
from generator.cli.source_options import sources_of
from generator.placement.preset_comparison import Compared, compare, render_compared
from generator.placement.presets import Preset
from topology.model.errors import show


@click.command(name="compare")
@question_options
@click.option(
    "--preset",
    multiple=True,
    type=click.Choice([preset.value for preset in Preset]),
    help="Only this one. May be repeated.",
)
@cluster_options
@timeout_option
@click.option(
    "--output",
    "-o",
    type=click.Choice(["text", "json", "yaml"]),
    help="Form of what is printed.  [default: a table on a terminal, else json]",
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    output: str | None,
    *,
    preset: tuple[str, ...],
    timeout: float,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Place a gang under all presets, and compare tier, crossings, fragmentation and victims.

    Each preset has the whole time to itself. Nothing is written anywhere.
    """
    tree, running = options.pop("tree"), options.pop("running")
    sources = sources_of(options)
    asked = read_question(options)
    if not (sources.is_empty or sources.hypernodes or sources.plane):
        sources = sources._replace(plane=asked.request(None).plane)
    scene = read_scene(sources, tree)
    request = fitted(asked, scene.inventory).request(None)
    chosen = [Preset(name) for name in preset] or list(Preset)
    bounded = request.within(timeout)
    rows = compare(snapshot_of(scene, running), bounded, chosen, clock=time.monotonic)
    form = output or ("text" if sys.stdout.isatty() else "json")
    print_document(render_compared(rows), form, text=lambda: _text(rows))
    finish(ctx, scene.problems)


def _text(rows: tuple[Compared, ...]) -> str:
    header = ("PRESET", "TIER", "PODS", "DOMAINS USED", "SLOTS LEFT IN THEM", "VICTIMS", "")
    return table(header, [_cells(row) for row in rows])


def _cells(row: Compared) -> tuple[str, ...]:
    placement = row.placement
    if not placement.is_feasible:
        kind = "no placement" if placement.reason is None else placement.reason.kind.value
        return (row.preset.value, "-", "0", "-", "-", "-", kind)
    pods = [node for nodes in placement.assignment.values() for node in nodes]
    return (
        row.preset.value,
        show(placement.tier or "?"),
        str(len(pods) - pods.count(None)),
        _per_tier(row.domains),
        _per_tier(row.left),
        str(len(placement.victims)),
        "" if placement.is_proved else "best found in time",
    )


def _per_tier(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {show(tier)}" for tier, count in reversed(list(counts.items())))
