"""`toponaut compare`: the same gang as every scheduler would place it, side by side."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

import click

from generator.cli.cluster_input import (
    cluster_options,
    fit_to_inventory,
    request_options,
    read_request,
    read_cluster_input,
    build_input_snapshot,
    timeout_option,
)
from generator.cli.observation import exit_with_problems
from generator.cli.output import print_document, render_table
from generator.cli.source_options import parse_sources
from generator.placement.preset_comparison import PresetResult, compare_presets, render_comparison
from generator.placement.presets import Preset
from topology.model.errors import show


@click.command(name="compare")
@request_options
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
    sources = parse_sources(options)
    asked = read_request(options)
    if not (sources.is_empty or sources.hypernodes or sources.plane):
        sources = sources._replace(plane=asked.to_request(None).plane)
    scene = read_cluster_input(sources, tree)
    request = fit_to_inventory(asked, scene.inventory).to_request(None)
    chosen = [Preset(name) for name in preset] or list(Preset)
    bounded = request.with_deadline(timeout)
    rows = compare_presets(
        build_input_snapshot(scene, running), bounded, chosen, clock=time.monotonic
    )
    form = output or ("text" if sys.stdout.isatty() else "json")
    print_document(render_comparison(rows), form, text=lambda: _render_text(rows))
    exit_with_problems(ctx, scene.problems)


def _render_text(rows: tuple[PresetResult, ...]) -> str:
    header = ("PRESET", "TIER", "PODS", "DOMAINS USED", "SLOTS LEFT IN THEM", "VICTIMS", "")
    return render_table(header, [_render_cells(row) for row in rows])


def _render_cells(row: PresetResult) -> tuple[str, ...]:
    placement = row.placement
    if not placement.is_feasible:
        kind = "no placement" if placement.reason is None else placement.reason.kind.value
        return (row.preset.value, "-", "0", "-", "-", "-", kind)
    pods = [node for nodes in placement.assignment.values() for node in nodes]
    return (
        row.preset.value,
        show(placement.tier or "?"),
        str(len(pods) - pods.count(None)),
        _render_tier_counts(row.domains_used),
        _render_tier_counts(row.slots_left),
        str(len(placement.victims)),
        "" if placement.is_proved else "best found in time",
    )


def _render_tier_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {show(tier)}" for tier, count in reversed(list(counts.items())))
