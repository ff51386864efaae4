"""`toponaut simulate jobs`: a mix of jobs replayed on a fabric, for several presets."""

from __future__ import annotations

import gzip
import io
import random  # noqa: TID251 - the one seeded source of made-up traces
import zlib
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from generator.cli.exit_codes import ExitCode
from generator.cli.fabric_options import open_progress
from generator.cli.observation import read_tree
from generator.cli.options import parse_share
from generator.cli.output import output_option, print_document, print_problems, render_table
from generator.jobs.cluster import SlotCluster
from generator.placement.presets import Preset
from generator.simulation.replay.fabrics import is_shape, build_tree_of_shape
from generator.simulation.replay.page import HEADER, render_page, render_table_row
from generator.simulation.replay.philly import draw_philly_jobs
from generator.simulation.replay.replay import Backfill, run_replay
from generator.simulation.replay.statistics import ReplayStatistics, compute_statistics
from generator.simulation.replay.strategies import (
    BEST_FIT,
    FIRST_FIT,
    STRATEGY_NAMES,
    Strategy,
    OptimalOptions,
    make_strategy,
)
from generator.simulation.replay.trace import Job, Trace, parse_trace, scale_jobs
from generator.store.local_files import read_whole_file
from topology.model.errors import ConfigError, ParseError, show
from topology.model.tree import TopologyTree

SYNTHETIC_TRACE: Final = "philly"
_MAX_TRACE_BYTES: Final = 256 << 20
_MIN_LOAD: Final = 0.001
_STEP: Final = 200
_PROGRESS_PERIOD_S: Final = 10.0
_GZIP: Final = b"\x1f\x8b"


def _parse_load(text: str) -> float:
    """Return a share that a clock can be stretched to."""
    load = parse_share(text)
    if load < _MIN_LOAD:
        raise click.BadParameter(f"'{show(text)}' is less than {_MIN_LOAD:g}")
    return load


class ReplayInput(NamedTuple):
    """What every strategy meets alike."""

    tree: TopologyTree
    slots: int
    jobs: tuple[Job, ...]
    backfill: Backfill


@click.command(name="jobs")
@click.option(
    "--trace",
    default=SYNTHETIC_TRACE,
    show_default=True,
    metavar="FILE",
    help="CSV with submit_time_s, gpus and duration_s, also gzipped; philly makes one up.",
)
@click.option("--num-jobs", type=click.IntRange(min=1), help="Only the first so many.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of a made-up trace.")
@click.option(
    "--fabric",
    default="8x5x16",
    show_default=True,
    metavar="FILE|SHAPE",
    help="TopologyTree as `toponaut tree` prints it, or top domains x leaves x nodes.",
)
@click.option(
    "--slots",
    type=click.IntRange(1, 1024),
    default=8,
    show_default=True,
    help="GPUs of a node.",
)
@click.option(
    "--preset",
    "presets",
    multiple=True,
    type=click.Choice(STRATEGY_NAMES),
    help="May be repeated; two are to compare with.  [default: optimal, best-fit, first-fit]",
)
@click.option(
    "--wish",
    metavar="TIER",
    help="Tier that gangs prefer; presets such as kueue keep near only what wishes so.",
)
@click.option(
    "--scale-sizes",
    type=click.IntRange(1, 10_000),
    default=1,
    show_default=True,
    help="Factor of the jobs' GPUs.",
)
@click.option(
    "--load",
    type=_parse_load,
    metavar="SHARE",
    help="GPU time asked for over what there is, as 0.9; the trace's clock is stretched to it.",
)
@click.option(
    "--backfill",
    type=click.Choice([kind.value for kind in Backfill]),
    default=Backfill.EASY.value,
    show_default=True,
    help="Which jobs may overtake the first that waits: none, those that do not delay it, any.",
)
@click.option(
    "--joint/--one-by-one",
    "is_joint",
    default=True,
    show_default=True,
    help="Whether optimal plans jobs that start at one instant together.",
)
@click.option(
    "--spare-islands/--no-spare-islands",
    "spares_islands",
    default=True,
    show_default=True,
    help="Whether optimal fills the tightest top domains rather than fewer leaves.",
)
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Page with charts that is written besides.",
)
@output_option
@click.pass_context
def jobs(
    ctx: click.Context,
    /,
    output: str,
    *,
    html: Path | None,
    presets: tuple[str, ...],
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Replay a trace of jobs on a fabric and compare presets.

    Prints, per preset, the tiers that gangs reached, the leaf groups they touch, the largest
    gang that would still have a place, utilisation and waiting. Equal options give equal figures.
    """
    trace = _read_trace(options["trace"], options["num_jobs"], options["seed"])
    scene = _build_input(trace, options)
    _check_preferred_tier(options["wish"], scene.tree)
    ways = OptimalOptions(is_joint=options["is_joint"], spares_islands=options["spares_islands"])
    names = presets or (Preset.OPTIMAL.value, BEST_FIT, FIRST_FIT)
    runs = [
        _StrategyRun.build(scene, name, options["wish"], ways) for name in names
    ]  # a wrong preset is told before the first
    found = [_run_replay(scene, run) for run in runs]
    if html is not None:
        _write_file(html, render_page(found, _render_title(options["trace"], scene)))
    print_document(
        {"jobs": len(scene.jobs), "presets": [one.to_document() for one in found]},
        output,
        text=lambda: render_table(HEADER, [render_table_row(one) for one in found]),
    )
    print_problems(trace.problems)
    ctx.exit(ExitCode.SKIPPED if trace.problems else ExitCode.OK)


def _read_trace(name: str, num: int | None, seed: int) -> Trace:
    if name == SYNTHETIC_TRACE:
        return Trace(draw_philly_jobs(num or 5000, random.Random(seed)))  # noqa: S311 - no secret
    raw = read_whole_file(Path(name), _MAX_TRACE_BYTES)
    if isinstance(raw, ParseError):
        raise ConfigError(str(raw))
    source = show(name, 1024)
    found = parse_trace(io.StringIO(_decode_trace(raw, source), newline=""), source=source)
    if not found.jobs:
        why = next((f": {problem}" for problem in found.problems), "")
        raise ConfigError(f"{source}: no job in it{why}")
    return found._replace(jobs=found.jobs[:num])


def _decode_trace(raw: bytes, source: str) -> str:
    """Return the text of a file, unpacked where it is gzipped; never more than the limit."""
    try:
        if raw.startswith(_GZIP):
            with gzip.open(io.BytesIO(raw)) as packed:
                raw = packed.read(_MAX_TRACE_BYTES + 1)
        if len(raw) > _MAX_TRACE_BYTES:
            raise ConfigError(f"{source}: larger than {_MAX_TRACE_BYTES} bytes unpacked")
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{source}: not UTF-8 at byte {error.start}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigError(f"{source}: {show(str(error))}") from error


def _build_input(trace: Trace, options: dict[str, Any]) -> ReplayInput:
    fabric = options["fabric"]
    tree = build_tree_of_shape(fabric) if is_shape(fabric) else read_tree(Path(fabric))
    if not tree.nodes or not tree.tiers:
        raise ConfigError(f"{show(fabric, 1024)}: no node in the tree")
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
        cls, scene: ReplayInput, name: str, wish: str | None, ways: OptimalOptions
    ) -> _StrategyRun:
        cluster = SlotCluster(scene.tree, scene.slots)
        return cls(name, cluster, make_strategy(name, cluster, preferred_tier=wish, options=ways))


def _run_replay(scene: ReplayInput, run: _StrategyRun) -> ReplayStatistics:
    total = len(scene.jobs)
    with open_progress(f"replaying {run.name}", every_s=_PROGRESS_PERIOD_S) as show_progress:
        found = run_replay(
            scene.jobs,
            run.cluster,
            run.strategy,
            backfill=scene.backfill,
            on_start=lambda num: (
                None if num % _STEP else show_progress(f"{run.name}: {num} of {total} jobs started")
            ),
        )
    return compute_statistics(run.name, found, run.cluster)


def _check_preferred_tier(wish: str | None, tree: TopologyTree) -> None:
    if wish is not None and wish != "node" and tree.tier_of(wish) is None:
        known = ", ".join(map(show, tree.tiers))
        raise ConfigError(f"--wish: the tree has no tier '{show(wish)}'; it has {known}")


def _render_title(trace: str, scene: ReplayInput) -> str:
    nodes = len(scene.tree.nodes)
    return (
        f"{len(scene.jobs):,} jobs of {Path(trace).name} on {nodes:,} nodes of {scene.slots} GPUs"
    )


def _write_file(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        problem = f"cannot write {show(str(file), 1024)}: {error.strerror}"
        raise ConfigError(f"--html: {problem}") from error
