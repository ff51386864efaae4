"""`toponaut compare`: one gang placed under each preset, side by side."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

import click

from generator.cli.cluster_input import (
    build_input_snapshot,
    fit_to_cluster,
    read_cluster_input,
    read_request,
)
from generator.cli.exit_codes import exit_with_problems
from generator.cli.output import print_document, render_table, show_count
from generator.cli.source_values import parse_sources
from generator.placement.preset_comparison import PresetResult, compare_presets, render_comparison
from generator.placement.presets import Preset
from topology.model.errors import show


def run(
    ctx: click.Context,
    /,
    output: str | None,
    *,
    preset: tuple[str, ...],
    timeout: float,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Run `toponaut compare` with the values of its options."""
    tree, running = options.pop("tree"), options.pop("running")
    sources = parse_sources(options)
    loaded = read_request(options)
    if not (sources.is_empty or sources.is_tree or sources.plane):
        sources = sources._replace(plane=loaded.to_request(None).plane)
    cluster = read_cluster_input(sources, tree)
    loaded = fit_to_cluster(loaded, cluster)
    request = loaded.to_request(None)
    presets = [Preset(name) for name in preset] or list(Preset)
    rows = compare_presets(
        build_input_snapshot(cluster, running, loaded, request),
        request.with_deadline(timeout),
        presets,
        clock=time.monotonic,
    )
    output_format = output or ("text" if sys.stdout.isatty() else "json")
    print_document(render_comparison(rows), output_format, text=lambda: _render_text(rows))
    exit_with_problems(ctx, cluster.problems, loaded.code)


def _render_text(rows: tuple[PresetResult, ...]) -> str:
    header = ("PRESET", "TIER", "PODS", "DOMAINS USED", "FREE SLOTS IN THEM", "VICTIMS", "")
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
        ", ".join(show_count(num, show(tier)) for tier, num in _from_top(row.domains_used)),
        ", ".join(f"{show(tier)} {num}" for tier, num in _from_top(row.slots_left)),
        str(len(placement.victims)),
        "" if placement.is_proved else "not proved best",
    )


def _from_top(counts: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield the counts of tiers, highest tier first."""
    return reversed(list(counts.items()))
