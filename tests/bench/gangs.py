"""Admit gangs of the mix of Kueue's scheduler benchmark on 640 nodes: python -m tests.bench.gangs.

The mix is that of Kueue's test/performance/scheduler/configs/tas: gangs of 4 to 32 pods that need
or prefer one rack or the block, or are spread evenly in slices; 1 block of 10 racks of 64 nodes of
96 CPUs. A gang is placed on the snapshot that the one before left; where none fits, the gangs
that run longest end first. Not like for like with Kueue's own figure (37 admissions/s), which
holds its API server, quotas and the run times of the gangs besides. The reference is a plain best
fit by arrays over the same gangs in the same run, which knows no tier that is required. Then 1,000
gangs of the mix are placed in one batch on 100,000 nodes, for its time and memory.
"""

from __future__ import annotations

import json
import random  # noqa: TID251 - seeded: the order of the mix
import statistics
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import click

from generator.jobs.cluster import SlotCluster, UniformPods
from generator.placement.batch.joint import BatchOptions, place_batch
from generator.placement.cluster.nodes import NodeSpec
from generator.placement.cluster.snapshot import (
    Snapshot,
    build_snapshot,
    with_running,
    without_running,
)
from generator.placement.engine import as_running_gang, place
from generator.placement.presets import Preset
from generator.placement.request import PlacementRequest, parse_request
from generator.simulation.replay.replay import build_tree_of_shape
from generator.simulation.replay.strategies import best_fit
from tests.bench.measurement import WrongResultError
from tests.bench.process_status import PEAK, forget_peak, read_bytes
from topology.model.tree import API_VERSION

GANGS: Final = 15_000
SHAPE: Final = "1x10x64"
BATCH_SHAPE: Final = "40x50x50"
BATCH_GANGS: Final = 1_000
CPUS: Final = 96
MILLICORES: Final = CPUS * 1000
"""Of a node: the unit in which the engine counts."""
TARGET: Final = 1000.0
"""Gangs a second."""
_now: Final = time.process_time
"""What else runs on the machine meanwhile must not count; nothing here waits or has a thread."""
PRESETS: Final = (Preset.KUEUE, Preset.OPTIMAL)


class Class(NamedTuple):
    """One kind of gang of the mix."""

    name: str
    weight: int
    """Of 175 gangs."""
    pods: int
    cpus: int
    """Of each pod."""
    placement: dict[str, Any]
    is_balanced: bool = False


MIX: Final = (
    Class("small, rack required", 50, 4, 2, {"required": "leaf"}),
    Class("medium, rack required", 30, 8, 4, {"required": "leaf"}),
    Class("large, rack required", 20, 16, 8, {"required": "leaf"}),
    Class("small, rack preferred", 30, 4, 2, {"preferred": ["leaf"]}),
    Class("medium, block preferred", 20, 8, 4, {"preferred": ["spine"]}),
    Class(
        "medium, balanced",
        15,
        16,
        4,
        {"preferred": ["leaf"], "slices": [{"size": 4}]},
        is_balanced=True,
    ),
    Class(
        "large, balanced",
        10,
        32,
        8,
        {"preferred": ["leaf"], "slices": [{"size": 8}]},
        is_balanced=True,
    ),
)


class Rate(NamedTuple):
    """How fast one preset admitted the mix."""

    preset: str
    gangs: int
    seconds: float
    """Of placing, starting and ending."""
    p50_s: float
    p99_s: float
    """Of a gang's placing and starting."""
    per_class_s: dict[str, float]
    """Median of the same."""

    @property
    def per_second(self) -> float:
        """Gangs a second."""
        return self.gangs / self.seconds


def draw_mix(num: int, seed: int = 0) -> list[Class]:
    """Return so many gangs in the mix's proportions, shuffled."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    deck = [kind for kind in MIX for _ in range(kind.weight)]
    drawn: list[Class] = []
    while len(drawn) < num:
        rng.shuffle(deck)
        drawn.extend(deck)
    return drawn[:num]


def document_of(kind: Class, preset: Preset) -> dict[str, Any]:
    """Return the document of a kind of gang; balanced ones have a preset of their own in Kueue."""
    name = Preset.KUEUE_BALANCED if kind.is_balanced and preset is Preset.KUEUE else preset
    slices = [{"tier": "leaf", **layer} for layer in kind.placement.get("slices", [])]
    group = {"name": "main", "count": kind.pods, "request": {"cpu": kind.cpus}} | kind.placement
    if slices:
        group["slices"] = slices
    spec = {"preset": name.value, "groups": [group]}
    return {"apiVersion": API_VERSION, "kind": "PlacementRequest", "spec": spec}


def request_of(kind: Class, preset: Preset) -> PlacementRequest:
    """Return the request of a kind of gang."""
    return parse_request(document_of(kind, preset))


def admit(preset: Preset, mix: Sequence[Class]) -> Rate:
    """Admit all gangs one after the other; each must find a place once others have ended."""
    tree = build_tree_of_shape(SHAPE)
    snapshot: Snapshot = build_snapshot(
        tree, {name: NodeSpec(name, {"cpu": MILLICORES}) for name in tree.nodes}
    )
    requests = {kind.name: request_of(kind, preset) for kind in MIX}
    running: deque[str] = deque()
    took: dict[str, list[float]] = {kind.name: [] for kind in mix}
    begun = _now()
    for at, kind in enumerate(mix):
        request = replace(requests[kind.name], gang=str(at))
        placing = 0.0
        while True:
            since = _now()
            found = place(snapshot, request, explains=False)
            if found.is_feasible:
                snapshot = with_running(snapshot, as_running_gang(request, found))
            placing += _now() - since
            if found.is_feasible:
                break
            snapshot = without_running(snapshot, running.popleft())
        running.append(request.gang)
        took[kind.name].append(placing)
        if _is_crowded(snapshot):
            snapshot = without_running(snapshot, running.popleft())
    seconds = _now() - begun
    return _rate(preset.value, took, seconds)


def _is_crowded(snapshot: Snapshot) -> bool:
    """Return whether more runs than the mix lets run at once: Kueue's quotas stop at 83 %."""
    return int(snapshot.free.sum()) < (1 - 51_000 / 61_440) * MILLICORES * snapshot.num_nodes


def reference(mix: Sequence[Class]) -> Rate:
    """Place the same gangs by best fit on arrays."""
    cluster = SlotCluster(build_tree_of_shape(SHAPE), CPUS)
    running: deque[tuple[Any, int]] = deque()
    took: dict[str, list[float]] = {kind.name: [] for kind in mix}
    begun = _now()
    for kind in mix:
        since = _now()
        nodes = best_fit(cluster, UniformPods(kind.pods, kind.cpus))
        cluster.take_slots(nodes, kind.cpus)
        took[kind.name].append(_now() - since)
        running.append((nodes, kind.cpus))
        while cluster.num_free < (1 - 51_000 / 61_440) * cluster.num_slots:
            cluster.return_slots(*running.popleft())
    return _rate("reference: best fit", took, _now() - begun)


def _rate(name: str, took: dict[str, list[float]], seconds: float) -> Rate:
    times = sorted(one for rows in took.values() for one in rows)
    return Rate(
        preset=name,
        gangs=len(times),
        seconds=seconds,
        p50_s=times[len(times) // 2],
        p99_s=times[len(times) * 99 // 100],
        per_class_s={kind: statistics.median(rows) for kind, rows in took.items() if rows},
    )


class BatchCost(NamedTuple):
    """What one batch took."""

    nodes: int
    gangs: int
    seconds: float
    bytes_more: int
    """Peak of the process while it placed the batch, beyond what it held before."""


def measure_batch(shape: str, num: int) -> BatchCost:
    """Place so many gangs of the mix in one batch on the nodes of a tree."""
    tree = build_tree_of_shape(shape)
    specs = {name: NodeSpec(name, {"cpu": MILLICORES}) for name in tree.nodes}
    snapshot = build_snapshot(tree, specs)
    requests = [
        replace(request_of(kind, Preset.OPTIMAL), gang=f"batch-{at}")
        for at, kind in enumerate(draw_mix(num))
    ]
    forget_peak()
    before, begun = read_bytes(PEAK), _now()
    batch = place_batch(snapshot, requests, options=BatchOptions(explains=False))
    seconds = _now() - begun
    if not all(placement.is_feasible for placement in batch.placements):
        raise WrongResultError("a gang that fits was not placed")
    return BatchCost(snapshot.num_nodes, num, seconds, read_bytes(PEAK) - before)


def text_batch(cost: BatchCost) -> str:
    """Return what a batch took as a line."""
    mebibytes = cost.bytes_more / (1 << 20)
    rate = cost.gangs / cost.seconds
    return (
        f"{cost.gangs} gangs in one batch on {cost.nodes} nodes: {cost.seconds:.2f} s, "
        f"{rate:.0f} gangs/s, {mebibytes:.0f} MiB more at the peak"
    )


def text_rates(rates: Sequence[Rate]) -> str:
    """Return the rates as lines, each as a ratio to the reference too."""
    base = rates[0].per_second
    lines = [
        f"{rate.preset:24} {rate.per_second:10.0f} gangs/s {rate.per_second / base:8.2f} x "
        f"p50 {rate.p50_s * 1e3:7.3f} ms  p99 {rate.p99_s * 1e3:7.3f} ms"
        for rate in rates
    ]
    for rate in rates[1:]:
        lines += [
            f"  {rate.preset}: {kind:26} {seconds * 1e3:7.3f} ms"
            for kind, seconds in rate.per_class_s.items()
        ]
    return "\n".join(lines)


@click.command()
@click.option("--gangs", type=click.IntRange(min=1), default=GANGS, show_default=True)
@click.option("--batch-shape", default=BATCH_SHAPE, show_default=True, help="Tree of the batch.")
@click.option(
    "--output", "-o", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def main(gangs: int, batch_shape: str, output: str) -> None:
    """Print gangs admitted a second, per preset, beside a reference of the same run."""
    mix = draw_mix(gangs)
    rates = [reference(mix), *(admit(preset, mix) for preset in PRESETS)]
    batch = measure_batch(batch_shape, min(BATCH_GANGS, gangs))
    if output == "json":
        rows = [rate._asdict() | {"per_second": rate.per_second} for rate in rates]
        document = {"target_per_second": TARGET, "rates": rows, "batch": batch._asdict()}
        click.echo(json.dumps(document, indent=2))
    else:
        click.echo(f"{gangs} gangs on 640 nodes; target {TARGET:.0f} gangs/s")
        click.echo(text_rates(rates))
        click.echo(text_batch(batch))


if __name__ == "__main__":
    main()
