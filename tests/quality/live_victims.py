"""The workloads that the real Kueue evicts for a gang, against the fewest pods that are enough.

kube-scheduler 1.36 evicts no pod for a gang with a topology; 1.37 does
(https://github.com/kubernetes/kubernetes/pull/140683), and is not run here. vc-scheduler evicts
only with actions that no installation enables by default.
"""

from __future__ import annotations

import random  # noqa: TID251 - seeded: the same clusters in every run
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from generator.placement import NodeSpec, Snapshot, parse_request, place
from generator.placement.cluster.nodes import RunningGang, RunningPods
from tests.generator.scenes import run
from tests.live.gang_days import GangDay, scene_of
from tests.live.gangs import NODE_MILLICORES, Gang
from tests.live.kueue_cluster import KueueCluster, kueue_cluster
from topology.model.tree import API_VERSION, TopologyTree, parse_tree

NUM_NODES: Final = 32
_POD: Final = NODE_MILLICORES // 8
_SIZES: Final = (1, 2, 4, 8, 16, 32)
_NEW_SIZES: Final = (2, 4, 6)
_NEW_POD: Final = 4 * _POD


class LiveVictims(NamedTuple):
    """The pods that Kueue evicts."""

    num_cases: int
    num_placed: int
    num_victims: int
    least_victims: int
    """Proved by `optimal`, which evicts whole gangs as Kueue does."""


def measure_live_victims(num_cases: int) -> LiveVictims:
    """Fill a cluster anew for each case, and admit one gang of a higher priority."""
    num = num_placed = num_victims = least_victims = 0
    with tempfile.TemporaryDirectory() as folder, kueue_cluster(Path(folder)) as cluster:
        scene = scene_of(Path(folder) / "scene", NUM_NODES)
        GangDay(cluster, scene)  # adds the nodes, and opens the queue
        sources = (scene.sweep(), "--nodes", scene.nodes())
        tree = parse_tree(run("tree", *sources, "-o", "json").document)
        for seed in range(num_cases):
            rng = random.Random(seed)  # noqa: S311 - the same clusters in every run
            running = _fill(cluster, rng)
            size = rng.choice(_NEW_SIZES)
            fewest = _find_fewest(tree, running, size)
            gang = Gang((_NEW_POD,) * size)
            new, evicted, is_placed = cluster.preempt(gang, tier=1, priority=9)
            for name in {new, *(row.gang for row in running)} - evicted:
                cluster.remove(name)
            if fewest is None:
                continue
            num += 1
            if is_placed:
                num_placed += 1
                least_victims += fewest
                pods = {row.gang: sum(part.count for part in row.pods) for row in running}
                num_victims += sum(pods[name] for name in evicted)
    return LiveVictims(num, num_placed, num_victims, least_victims)


def _fill(cluster: KueueCluster, rng: random.Random) -> Sequence[RunningGang]:
    """Admit gangs of priority 0 to 2 until one does not fit; return those that run."""
    running: list[RunningGang] = []
    while True:
        gang, priority = Gang((_POD,) * rng.choice(_SIZES)), rng.randrange(3)
        name, nodes = cluster.submit(gang, priority=priority)
        if nodes is None:
            cluster.remove(name)
            return running
        pods = tuple(
            RunningPods(node, {"cpu": _POD}, count) for node, count in Counter(nodes).items()
        )
        running.append(RunningGang(name, pods, priority=priority, min_pods=len(nodes)))


def _find_fewest(tree: TopologyTree, running: Sequence[RunningGang], size: int) -> int | None:
    """Return the fewest pods to evict for a gang in one leaf; None if there is no proof."""
    nodes = [NodeSpec(name, {"cpu": NODE_MILLICORES}) for name in tree.nodes]
    group = {"name": "main", "count": size, "request": {"cpu": f"{_NEW_POD}m"}}
    spec = {
        "gang": "new",
        "priority": 9,
        "required": "leaf",
        "preemption": "fewestVictims",
        "groups": [group],
    }
    document = {"apiVersion": API_VERSION, "kind": "PlacementRequest", "spec": spec}
    found = place(Snapshot.from_tree(tree, nodes, running), parse_request(document))
    pods = found.objective.get("victim_pods", 0)
    return int(str(pods)) if found.is_feasible and found.is_proved else None
