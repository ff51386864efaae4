"""Time placements against their bars: python -m tests.bench.placing.

One gang on clusters of 1,000 to 100,000 nodes that are partly taken, or empty: the question that
somebody asked before, other counts of pods, gangs that no leaf holds, the same after a gang has
started, and pods with three resources, a selector and taints. Then gangs of pods of several sizes,
leaders with workers on nodes of which no two have the same free, and a hundred groups that each
need a leaf. Beside every size stands a plain best fit by arrays of the same run, so that ratios
mean the same on every machine. The collector of garbage is set as `toponaut serve` sets it.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import click

from generator.cli.output import render_table
from generator.jobs.cluster import SlotCluster, UniformPods
from generator.placement.answer import Placement
from generator.placement.cluster.nodes import NodeSpec
from generator.placement.cluster.snapshot import Snapshot, build_snapshot, with_running
from generator.placement.engine import as_running_gang, place
from generator.placement.request import PlacementRequest, parse_request
from generator.simulation.replay.replay import build_tree_of_shape
from generator.simulation.replay.strategies import best_fit
from runtime.process_settings import collect_garbage_rarely
from tests.bench.measurement import WrongResultError
from topology.model.tree import API_VERSION

SHAPES: Final = {1_000: "5x10x20", 10_000: "10x40x25", 100_000: "40x50x50"}
"""Trees by number of nodes."""
SLOTS: Final = 8
CALLS: Final = 60
_now: Final = time.process_time
"""What else runs on the machine meanwhile must not count; nothing here waits or has a thread."""
REFERENCE: Final = "reference: best fit"
REPEATED: Final = "question asked before"
COUNTED: Final = "another count"
WHOLE: Final = "60 to 100 whole nodes"
LARGEST: Final = "985 to 1,024 whole nodes"
UNEVEN: Final = "beyond a leaf, pods share nodes"
CHANGED: Final = "once a gang has started"
EXPLAINED: Final = "another count, explained"
EMPTY: Final = "nothing runs, all nodes alike"
FRESH: Final = "3 resources, selector, taints"
GROUPS: Final = "100 groups of 10, each in a leaf"
MIXED: Final = "pods of 2 and 3 sizes"
LED: Final = "leader and 4 to 8 workers, no two nodes alike"
PLAIN: Final = (REPEATED, COUNTED, WHOLE, EMPTY, CHANGED, FRESH)
BARS: Final[dict[tuple[str, int], float]] = {
    **{(name, 10_000): 5e-3 for name in PLAIN},
    **{(name, 100_000): 25e-3 for name in (*PLAIN, LARGEST)},
    (GROUPS, 1_000): 20e-3,
}
"""Median seconds by measurement and number of nodes."""
SIZES_OF_PODS: Final = (
    ((8, 4), (4, 2)),
    ((1, 2), (16, 4)),
    ((4, 4), (6, 2), (3, 1)),
    ((40, 2), (30, 3), (20, 1)),
)
"""Gangs of several groups, each as (pods, slots per pod)."""


class Figure(NamedTuple):
    """What one kind of placement took on one cluster."""

    name: str
    nodes: int
    p50_s: float
    p99_s: float
    proved: float
    """Part of the answers that are proved."""

    @property
    def bar_s(self) -> float | None:
        """Median that it should keep."""
        return BARS.get((self.name, self.nodes))


def measure(nodes: int, calls: int) -> list[Figure]:
    """Return the figures of one cluster."""
    snapshot = _cluster(nodes)
    asked = [_workers(3 + number % 40) for number in range(calls)]
    rows = [
        _reference(nodes, calls),
        _timed(REPEATED, nodes, _repeated(snapshot, asked)),
        _timed(COUNTED, nodes, _each(snapshot, asked)),
        _timed(WHOLE, nodes, _each(snapshot, [_whole(60 + at % 40) for at in range(calls)])),
        _timed(EMPTY, nodes, _each(_empty_cluster(nodes), asked)),
        _timed(UNEVEN, nodes, _each(snapshot, [_workers(200 + at % 40) for at in range(calls)])),
        _timed(EXPLAINED, nodes, _each(snapshot, asked, report=Placement.render)),
        _timed(CHANGED, nodes, _started(snapshot, asked)),
        _timed(FRESH, nodes, _each(snapshot, [_fresh(number) for number in range(calls)])),
    ]
    rows.append(_timed(MIXED, nodes, _each(snapshot, [_several(row) for row in SIZES_OF_PODS])))
    rows.append(_timed(LED, nodes, _each(_used_cluster(nodes), [_led(num) for num in range(4, 9)])))
    if nodes == max(SHAPES):  # no domain of the smaller clusters holds as many
        asked = [_whole(1024 - at % 40) for at in range(calls)]
        rows.append(_timed(LARGEST, nodes, _each(snapshot, asked)))
    if nodes == min(SHAPES):
        rows.append(_timed(GROUPS, nodes, (_placed(_leaves(), _sub_groups()) for _ in range(9))))
    return rows


def _cluster(nodes: int) -> Snapshot:
    """Return a cluster on which something runs on every third node, with labels and taints."""
    tree = build_tree_of_shape(SHAPES[nodes])
    specs = {
        name: NodeSpec(
            name,
            {"slots": SLOTS - (at * 7919 % 5 if at % 3 == 0 else 0), "cpu": 96_000, "memory": 1000},
            labels={"zone": "a" if at % 10 else "b"},
            taints=("gpu=yes:NoSchedule",) if at % 50 == 0 else (),
        )
        for at, name in enumerate(tree.nodes)
    }
    return build_snapshot(tree, specs)


def _empty_cluster(nodes: int) -> Snapshot:
    """Return a cluster of equal nodes on which nothing runs: all domains of a tier are as good."""
    tree = build_tree_of_shape(SHAPES[nodes])
    return build_snapshot(tree, {name: NodeSpec(name, {"slots": SLOTS}) for name in tree.nodes})


def _used_cluster(nodes: int) -> Snapshot:
    """Return a cluster with half of its GPUs taken, and nodes that all have other shares left."""
    tree = build_tree_of_shape(SHAPES[nodes])
    specs = {
        name: NodeSpec(
            name,
            {"gpu": 8, "cpu": 96_000, "memory": 2000},
            {
                "gpu": at * 7919 % 2 * 8,
                "cpu": (10 + at * 6101 % 87) * 1000,
                "memory": 100 + at * 7907 % 1900,
            },
        )
        for at, name in enumerate(tree.nodes)
    }
    return build_snapshot(tree, specs)


def _led(num_workers: int) -> PlacementRequest:
    """Return a request for a leader with its workers, of which each takes all GPUs of a node."""
    leader = {"name": "leader", "count": 1, "request": {"cpu": 4, "memory": 50}}
    each = {"gpu": 8, "cpu": 8, "memory": 50}
    return _request([leader, {"name": "workers", "count": num_workers, "request": each}])


def _request(groups: Sequence[dict[str, Any]], **spec: object) -> PlacementRequest:
    document = {"groups": list(groups), **spec}
    return parse_request({"apiVersion": API_VERSION, "kind": "PlacementRequest", "spec": document})


def _workers(count: int, **row: object) -> PlacementRequest:
    return _request([{"name": "workers", "count": count, "request": {"slots": 2}, **row}])


def _whole(count: int) -> PlacementRequest:
    """Return a request for nodes of which nothing is taken."""
    return _workers(count, request={"slots": SLOTS})


def _fresh(number: int) -> PlacementRequest:
    """Return a request for a kind of pods that no other number asks for."""
    need = {"slots": 3, "cpu": 12 + number % 60, "memory": 100 + number // 60}
    return _workers(16, request=need, node_selector={"zone": ["a"]})


def _several(groups: Iterable[tuple[int, int]]) -> PlacementRequest:
    return _request(
        [
            {"name": f"g{at}", "count": count, "request": {"slots": slots}}
            for at, (count, slots) in enumerate(groups)
        ]
    )


def _sub_groups() -> PlacementRequest:
    rows = [{"name": f"g{at}", "count": 10, "required": "leaf"} for at in range(100)]
    return _request(rows, required="spine")


def _leaves() -> Snapshot:
    return build_snapshot(build_tree_of_shape("1x100x10"), {})


Timed = Iterable[tuple[float, bool]]
"""(seconds, whether the answer is proved)."""


def _placed(
    snapshot: Snapshot,
    request: PlacementRequest,
    report: Callable[[Placement], object] | None = None,
) -> tuple[float, bool]:
    """Return how long a placement takes, its report included."""
    begun = _now()
    found = place(snapshot, request, explains=report is not None)
    if report is not None:
        report(found)
    took = _now() - begun
    if not found.is_feasible:
        raise WrongResultError("a gang that fits was not placed")
    return took, found.is_proved


def _each(
    snapshot: Snapshot,
    asked: Sequence[PlacementRequest],
    report: Callable[[Placement], object] | None = None,
) -> Timed:
    """Time each request on a snapshot that forgets answers."""
    for request in asked:
        snapshot.answers.clear()
        yield _placed(snapshot, request, report)


def _repeated(snapshot: Snapshot, asked: Sequence[PlacementRequest]) -> Timed:
    """Time requests that were answered before."""
    for request in asked:
        place(snapshot, request, explains=False)
        yield _placed(snapshot, request)


def _started(snapshot: Snapshot, asked: Sequence[PlacementRequest]) -> Timed:
    """Time requests each on the snapshot on which the gang before runs; starting it counts."""
    for number, request in enumerate(asked):
        begun = _now()
        found = place(snapshot, request, explains=False)
        snapshot = with_running(
            snapshot, as_running_gang(replace(request, gang=f"g{number}"), found)
        )
        yield _now() - begun, found.is_proved


def _reference(nodes: int, calls: int) -> Figure:
    cluster = SlotCluster(build_tree_of_shape(SHAPES[nodes]), SLOTS)

    def timed() -> Timed:
        for number in range(calls):
            begun = _now()
            best_fit(cluster, UniformPods(3 + number % 40, 2))
            yield _now() - begun, False

    return _timed(REFERENCE, nodes, timed())


def _timed(name: str, nodes: int, timed: Timed) -> Figure:
    rows = list(timed)
    times = sorted(seconds for seconds, _ in rows)
    proved = sum(is_proved for _, is_proved in rows) / len(rows)
    p99 = times[min(len(times) - 1, len(times) * 99 // 100)]
    return Figure(name, nodes, statistics.median(times), p99, proved)


def render(figures: Sequence[Figure]) -> dict[str, Any]:
    """Return the figures as a document."""
    base = {row.nodes: row.p50_s for row in figures if row.name == REFERENCE}
    return {
        "figures": [
            row._asdict() | {"bar_s": row.bar_s, "of_reference": row.p50_s / base[row.nodes]}
            for row in figures
        ]
    }


def text(figures: Sequence[Figure]) -> str:
    """Return a line per figure with its bar."""
    base = {row.nodes: row.p50_s for row in figures if row.name == REFERENCE}
    rows = [
        (
            str(row.nodes),
            row.name,
            f"{row.p50_s * 1e3:.3f} ms",
            f"{row.p99_s * 1e3:.3f} ms",
            "-" if row.bar_s is None else f"{row.bar_s * 1e3:g} ms",
            "-" if row.bar_s is None else ("holds" if row.p50_s <= row.bar_s else "missed"),
            f"{row.p50_s / base[row.nodes]:.2f}",
            "-" if row.name == REFERENCE else f"{row.proved:.0%}",
        )
        for row in figures
    ]
    heads = ("NODES", "PLACEMENT", "P50", "P99", "BAR", "", "OF REFERENCE", "PROVED")
    return render_table(heads, rows)


@click.command()
@click.option(
    "--nodes",
    multiple=True,
    type=click.Choice([str(nodes) for nodes in SHAPES]),
    default=[str(nodes) for nodes in SHAPES],
    help="Sizes of clusters; may be repeated.",
)
@click.option("--calls", type=click.IntRange(min=1), default=CALLS, show_default=True)
@click.option(
    "--output", "-o", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def main(nodes: Sequence[str], calls: int, output: str) -> None:
    """Print medians beside their bars."""
    figures = [row for size in nodes for row in measure(int(size), calls)]
    click.echo(json.dumps(render(figures), indent=2) if output == "json" else text(figures))


if __name__ == "__main__":
    collect_garbage_rarely()
    main()
