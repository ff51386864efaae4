"""`toponaut simulate jobs`: replay a trace of jobs on a fabric, under several presets."""

from __future__ import annotations

import gzip
import io
import random  # noqa: TID251 - the seeded random source of synthetic traces
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from generator.cli import options
from generator.cli.exit_codes import exit_with_problems
from generator.cli.option_types import parse_share
from generator.cli.output import Table, open_progress, print_document, show_count
from generator.placement.presets import Preset
from generator.simulation.replay.run_names import BEST_FIT, FIRST_FIT, STRATEGY_NAMES, Backfill
from runtime.options import Choice
from topology.model.errors import ConfigError, ParseError, show
from topology.model.tree import TopologyTree

if TYPE_CHECKING:
    from generator.jobs.cluster import SlotCluster
    from generator.simulation.replay.replay import ReplayStatistics
    from generator.simulation.replay.strategies import OptimalOptions, Strategy
    from generator.simulation.replay.trace import Job, Trace

_MAX_TRACE_BYTES: Final = 256 << 20
_STEP: Final = 200
_PROGRESS_PERIOD_S: Final = 10.0
_GZIP: Final = b"\x1f\x8b"
_HEADER: Final = (
    *("PRESET", "GANGS", "LOWEST TIER", "LEAVES", "LEAVES/MIN", "LARGEST GANG"),
    *("USED", "MEAN WAIT", "P95 WAIT"),
)
SYNTHETIC_TRACE: Final = "philly"
_MIN_LOAD: Final = 0.001
_MAX_SEED: Final = (1 << 63) - 1


def _parse_load(text: str) -> float:
    """Return a load; one close to 0 would stretch the clock of the trace without limit.

    Raises:
        click.BadParameter: the text is not a share, or is below 0.001.
    """
    load = parse_share(text)
    if load < _MIN_LOAD:
        raise click.BadParameter(f"'{show(text)}' is less than {_MIN_LOAD:g}")
    return load


@options.command(
    "jobs",
    examples=(
        "toponaut simulate jobs --num-jobs 100 --fabric 2x2x4",
        "toponaut simulate jobs --num-jobs 100 --fabric 2x2x4 --preset kueue -o json",
    ),
)
def jobs(
    *,
    trace: str = options.option(
        "CSV with submit_time_s, gpus and duration_s, plain or gzipped; philly generates a trace.",
        metavar="FILE",
        default=SYNTHETIC_TRACE,
    ),
    num_jobs: int | None = options.number(1, 1_000_000, "Number of jobs to replay."),
    seed: int = options.number(0, _MAX_SEED, "Random seed of a generated trace.", default=0),
    fabric: str = options.option(
        "TopologyTree (output of `toponaut tree -o json`), or top domains x leaves x nodes.",
        metavar="FILE|SHAPE",
        default="8x5x16",
    ),
    slots: int = options.number(1, 1024, "GPUs of each node.", default=8),
    presets: tuple[str, ...] = options.option(
        "Preset to replay, or best-fit or first-fit, to compare with. Repeatable.  [default: "
        "optimal, best-fit, first-fit]",
        "--preset",
        "presets",
        type=Choice(STRATEGY_NAMES),
    ),
    prefer: str | None = options.option(
        "Tier that gangs prefer. Presets such as kueue pack a gang only if it prefers a tier.",
        metavar="TIER",
    ),
    scale_sizes: int = options.number(
        1, 10_000, "Factor for the number of GPUs of each job.", default=1
    ),
    load: float | None = options.option(
        "Requested GPU time divided by available GPU time, such as 0.9. Submit times are stretched "
        "to reach it.",
        type=_parse_load,
        metavar="SHARE",
    ),
    backfill: Backfill = options.option(
        "Jobs that can start before the first waiting job: none, those that do not delay it "
        "(easy), or any.",
        default=Backfill.EASY.value,
    ),
    is_joint: bool = options.option(
        "Whether optimal plans jobs that start at the same time jointly, or one by one.",
        "--joint/--one-by-one",
        "is_joint",
        default=True,
    ),
    spares_islands: bool = options.option(
        "Whether optimal fills the tightest top domains first, or uses fewer leaves first.",
        "--spare-islands/--no-spare-islands",
        "spares_islands",
        default=True,
    ),
    output: str = options.OUTPUT,
) -> None:
    """Replay a trace of jobs on a fabric, and compare presets.

    Prints, for each preset, the tiers of the gangs, the leaves that they use, the largest gang
    that would still fit, utilization and waiting times. The same options always give the same
    results.
    """
    from generator.simulation.replay.strategies import OptimalOptions
    from generator.simulation.replay.trace import scale_jobs

    read = _read_trace(trace, num_jobs, seed)
    tree = _read_tree(fabric)
    scaled = scale_jobs(read.jobs, sizes=scale_sizes, load=load, gpus=slots * len(tree.nodes))
    _check_preferred_tier(prefer, tree)
    optimal = OptimalOptions(is_joint=is_joint, spares_islands=spares_islands)
    names = presets or (Preset.OPTIMAL.value, BEST_FIT, FIRST_FIT)
    runs = [
        _StrategyRun.build(name, tree, slots, prefer, optimal) for name in names
    ]  # built before the first replay, so that a wrong preset is refused at once
    results = [_run_replay(run, scaled, backfill) for run in runs]
    print_document(
        {"jobs": len(scaled), "presets": [result.to_document() for result in results]},
        output,
        text=lambda: Table(
            _HEADER,
            [_render_cells(result) for result in results],
            _count_gangs(scaled, slots),
        ),
    )
    exit_with_problems(read.problems)


class _StrategyRun(NamedTuple):
    """One preset, and the empty cluster that it places on."""

    name: str
    cluster: SlotCluster
    strategy: Strategy

    @classmethod
    def build(
        cls, name: str, tree: TopologyTree, slots: int, tier: str | None, optimal: OptimalOptions
    ) -> _StrategyRun:
        from generator.jobs.cluster import SlotCluster
        from generator.simulation.replay.strategies import make_strategy

        cluster = SlotCluster(tree, slots)
        strategy = make_strategy(name, cluster, preferred_tier=tier, options=optimal)
        return cls(name, cluster, strategy)


def _read_trace(name: str, num: int | None, seed: int) -> Trace:
    from generator.simulation.replay.trace import Trace, draw_philly_jobs, parse_trace
    from generator.store.local_files import read_whole_file

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


def _read_tree(fabric: str) -> TopologyTree:
    from generator.cli.observation import read_tree
    from generator.simulation.replay.replay import build_tree_of_shape, is_shape

    tree = build_tree_of_shape(fabric) if is_shape(fabric) else read_tree(Path(fabric))
    if not tree.nodes or not tree.tiers:
        raise ConfigError(f"{show(fabric, 1024)}: the tree has no nodes")
    return tree


def _run_replay(run: _StrategyRun, jobs: tuple[Job, ...], backfill: Backfill) -> ReplayStatistics:
    from generator.simulation.replay.replay import compute_statistics, run_replay

    total = len(jobs)
    with open_progress(f"replaying {run.name}", every_s=_PROGRESS_PERIOD_S) as progress:
        result = run_replay(
            jobs,
            run.cluster,
            run.strategy,
            backfill=backfill,
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


def _count_gangs(jobs: tuple[Job, ...], slots: int) -> str:
    """Return the line that says how many jobs are gangs: of the others no tier is counted."""
    num_gangs = sum(job.gpus > slots for job in jobs)
    single = len(jobs) - num_gangs
    text = f"{show_count(len(jobs), 'job')}: {show_count(num_gangs, 'gang')}, {single} of one pod"
    if num_gangs:
        return text
    return f"{text}, because none needs more than the {slots} GPUs of a node: see --scale-sizes"


def _render_cells(statistics: ReplayStatistics) -> tuple[str, ...]:
    return (
        statistics.name,
        f"{statistics.gangs}",
        f"{statistics.at_lowest_tier:.1%}" if statistics.gangs else "-",
        f"{statistics.leaves}" if statistics.gangs else "-",
        f"{statistics.over_least:.3f}" if statistics.gangs else "-",
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
