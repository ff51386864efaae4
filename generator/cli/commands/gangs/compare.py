"""`toponaut compare`: one gang placed under each preset, side by side."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from generator.cli import options
from generator.cli.exit_codes import exit_with_problems
from generator.cli.options import InputOptions, RequestOptions
from generator.cli.output import Table, print_document, show_count
from generator.placement.presets import Preset
from topology.model.errors import show

if TYPE_CHECKING:
    from generator.placement.preset_comparison import PresetResult

_COLUMNS: Final = ("PRESET", "TIER", "PODS", "DOMAINS USED", "ROOM FOR MORE PODS", "VICTIMS", "")


@options.command(
    "compare",
    examples=(
        'toponaut compare --sbatch "--nodes=16" --reports fabric/reports --nodes fabric/nodes.yaml',
        "toponaut compare -f job.yaml --kube --preset kueue --preset optimal",
    ),
)
def command(
    *,
    request: RequestOptions,
    preset: tuple[Preset, ...] = options.option("Only this preset. Repeatable."),
    sources: InputOptions,
    tree: Path | None = options.TREE,
    running: Path | None = options.RUNNING,
    timeout: float = options.TIMEOUT,
    output: str = options.OUTPUT,
) -> None:
    """Place a gang under each preset, and compare tiers, domains, room left and victims.

    Each preset may take the full --timeout. Nothing is written.
    """
    from generator.cli.cluster_input import (
        build_input_snapshot,
        read_cluster_input,
        read_request,
    )
    from generator.cli.observation import parse_sources
    from generator.cli.request_input import print_translation
    from generator.placement.preset_comparison import compare_presets, render_comparison

    given, loaded = parse_sources(sources), read_request(request)
    cluster = read_cluster_input(given.with_plane(loaded.to_request(None).plane), tree)
    loaded = loaded.fit_to_nodes(cluster.inventory, cluster.tree.nodes)
    print_translation(loaded)
    wanted = loaded.to_request(None)
    rows = compare_presets(
        build_input_snapshot(cluster, running, loaded, wanted),
        wanted.with_deadline(timeout),
        preset or list(Preset),
        clock=time.monotonic,
    )
    print_document(
        render_comparison(rows),
        output,
        text=lambda: Table(_COLUMNS, [_render_cells(row) for row in rows]),
    )
    exit_with_problems(cluster.problems, loaded.code)


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
        ", ".join(map(show, placement.victims)) or "none",
        "" if placement.is_proved else "not proved best",
    )


def _from_top(counts: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield the counts of tiers, highest tier first."""
    return reversed(list(counts.items()))
