"""`toponaut simulate jobs`: replay a trace of jobs on a fabric, under several presets."""

from __future__ import annotations

import gzip
import io
import random  # noqa: TID251 - the seeded random source of synthetic traces
import zlib
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from generator.cli.exit_codes import code_for
from generator.cli.observation import read_tree
from generator.cli.output import open_progress, print_document, print_problems, render_table
from generator.jobs.cluster import SlotCluster
from generator.placement.presets import Preset
from generator.simulation.replay.fabrics import build_tree_of_shape, is_shape
from generator.simulation.replay.philly import draw_philly_jobs
from generator.simulation.replay.replay import run_replay
from generator.simulation.replay.run_names import BEST_FIT, FIRST_FIT, Backfill
from generator.simulation.replay.statistics import ReplayStatistics, compute_statistics
from generator.simulation.replay.strategies import OptimalOptions, Strategy, make_strategy
from generator.simulation.replay.trace import Job, Trace, parse_trace, scale_jobs
from generator.store.local_files import read_whole_file
from topology.model.errors import ConfigError, ParseError, show
from topology.model.tree import TopologyTree

SYNTHETIC_TRACE: Final = "philly"
_MAX_TRACE_BYTES: Final = 256 << 20
_STEP: Final = 200
_PROGRESS_PERIOD_S: Final = 10.0
_GZIP: Final = b"\x1f\x8b"
_HEADER: Final = (
    *("PRESET", "GANGS", "LOWEST TIER", "LEAVES", "LEAVES/MIN", "LARGEST GANG"),
    *("USED", "MEAN WAIT", "P95 WAIT"),
)


class ReplayInput(NamedTuple):
    """The input of a replay, the same for every strategy."""

    tree: TopologyTree
    slots: int
    """GPUs of a node."""
    jobs: tuple[Job, ...]
    backfill: Backfill


def run(
    ctx: click.Context,
    /,
    output: str,
    *,
    presets: tuple[str, ...],
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Run `toponaut simulate jobs` with the values of its options."""
    trace = _read_trace(options["trace"], options["num_jobs"], options["seed"])
    replay_input = _build_input(trace, options)
    _check_preferred_tier(options["prefer"], replay_input.tree)
    optimal_options = OptimalOptions(
        is_joint=options["is_joint"], spares_islands=options["spares_islands"]
    )
    names = presets or (Preset.OPTIMAL.value, BEST_FIT, FIRST_FIT)
    runs = [
        _StrategyRun.build(replay_input, name, options["prefer"], optimal_options) for name in names
    ]  # built before the first replay, so that a wrong preset is refused at once
    results = [_run_replay(replay_input, run) for run in runs]
    print_document(
        {"jobs": len(replay_input.jobs), "presets": [result.to_document() for result in results]},
        output,
        text=lambda: render_table(_HEADER, [_render_cells(result) for result in results]),
    )
    print_problems(trace.problems)
    ctx.exit(code_for(trace.problems))


def _read_trace(name: str, num: int | None, seed: int) -> Trace:
    if name == SYNTHETIC_TRACE:
        return Trace(draw_philly_jobs(num or 5000, random.Random(seed)))  # noqa: S311 - no secret
    raw = read_whole_file(Path(name), _MAX_TRACE_BYTES)
    if isinstance(raw, ParseError):
        raise ConfigError(str(raw))
    source = show(name, 1024)
    parsed = parse_trace(io.StringIO(_decode_trace(raw, source), newline=""), source=source)
    if not parsed.jobs:
        reason = next((f": {problem}" for problem in parsed.problems), "")
        raise ConfigError(f"{source}: no jobs in this file{reason}")
    return parsed._replace(jobs=parsed.jobs[:num])


def _decode_trace(raw: bytes, source: str) -> str:
    """Return the text of a file, decompressed if it is gzipped.

    Raises:
        ConfigError: it is larger than the limit, or not UTF-8, or the compression is damaged.
    """
    try:
        if raw.startswith(_GZIP):
            with gzip.open(io.BytesIO(raw)) as packed:
                raw = packed.read(_MAX_TRACE_BYTES + 1)
        if len(raw) > _MAX_TRACE_BYTES:
            raise ConfigError(f"{source}: larger than {_MAX_TRACE_BYTES} bytes when decompressed")
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{source}: not UTF-8 at byte {error.start}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigError(f"{source}: {show(str(error))}") from error


def _build_input(trace: Trace, options: dict[str, Any]) -> ReplayInput:
    fabric = options["fabric"]
    tree = build_tree_of_shape(fabric) if is_shape(fabric) else read_tree(Path(fabric))
    if not tree.nodes or not tree.tiers:
        raise ConfigError(f"{show(fabric, 1024)}: the tree has no nodes")
    scaled = scale_jobs(
        trace.jobs,
        sizes=options["scale_sizes"],
        load=options["load"],
        gpus=options["slots"] * len(tree.nodes),
    )
    return ReplayInput(tree, options["slots"], scaled, Backfill(options["backfill"]))


class _StrategyRun(NamedTuple):
    """One preset, and the empty cluster that it places on."""

    name: str
    cluster: SlotCluster
    strategy: Strategy

    @classmethod
    def build(
        cls, replay_input: ReplayInput, name: str, tier: str | None, options: OptimalOptions
    ) -> _StrategyRun:
        cluster = SlotCluster(replay_input.tree, replay_input.slots)
        strategy = make_strategy(name, cluster, preferred_tier=tier, options=options)
        return cls(name, cluster, strategy)


def _run_replay(replay_input: ReplayInput, run: _StrategyRun) -> ReplayStatistics:
    total = len(replay_input.jobs)
    with open_progress(f"replaying {run.name}", every_s=_PROGRESS_PERIOD_S) as progress:
        result = run_replay(
            replay_input.jobs,
            run.cluster,
            run.strategy,
            backfill=replay_input.backfill,
            on_start=lambda num: (
                None
                if num % _STEP
                else progress.show(f"{run.name}: jobs started", num_done=num, total=total)
            ),
        )
    return compute_statistics(run.name, result, run.cluster)


def _check_preferred_tier(preferred_tier: str | None, tree: TopologyTree) -> None:
    if preferred_tier is None or preferred_tier == "node":
        return
    if tree.tier_of(preferred_tier) is None:
        known = ", ".join(map(show, tree.tiers))
        raise ConfigError(
            f"--prefer: the tree has no tier '{show(preferred_tier)}'; it has {known}"
        )


def _render_cells(statistics: ReplayStatistics) -> tuple[str, ...]:
    return (
        statistics.name,
        f"{statistics.gangs}",
        f"{statistics.at_lowest_tier:.1%}",
        f"{statistics.leaves}",
        f"{statistics.over_least:.3f}",
        " ".join(f"{value:.1f} {show(tier)}" for tier, value in statistics.largest.items()),
        f"{statistics.utilisation:.1%}",
        render_duration(statistics.wait_s["mean"]),
        render_duration(statistics.wait_s["p95"]),
    )


def render_duration(seconds: float) -> str:
    """Return a duration with a suitable unit, such as `1.5 h`."""
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
