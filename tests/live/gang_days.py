"""Gangs that come and go on one cluster, each placed by the real scheduler and by the engine.

The scheduler is asked for one domain of each tier in turn, from the lowest, as a user would who
looks for the lowest tier that is possible. The engine sees the same free capacity.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import yaml

from generator.outputs.node_labels import build_tier_keys
from generator.placement import NodeSpec, Placement, Snapshot, parse_request, place
from generator.placement.presets import Preset
from tests.generator.scenes import Scene, run
from tests.live.gangs import HOST_LABEL, NODE_BYTES, NODE_MILLICORES, Gang, GangCluster
from topology.model.tree import TopologyTree, parse_tree
from topology.synthetic import FabricKind, SyntheticSpec

PREFIX = "topology.toponaut.io"
NODE_TIER = "node"
_MAX_GANGS = 8
"""More gangs than these are not kept, unless a load is given: the oldest ones end."""
_SIZES = (2, 4, 7, 8, 12, 16, 24, 32, 48, 96, 192)
_MAX_PODS = 192
_PARTS = (4_000, 7_900, 8_000, 15_500, 16_000, 24_000, 32_000, 60_000, NODE_MILLICORES)
"""Millicores of a pod."""


class Comparison(NamedTuple):
    """One gang, placed by both."""

    gang: Gang
    engine_tier: int | None
    """The lowest tier with a domain that has room, by the engine, 0 for one node; None if the gang
    does not fit."""
    is_proved: bool
    scheduler_tier: int | None
    """The lowest tier at which the scheduler placed the gang."""
    is_accepted: bool | None
    """Whether the scheduler takes the nodes of the engine; None without an answer."""
    num_leaves: int | None
    """Leaves that the scheduler uses; None if it refuses the gang."""
    least_leaves: int | None
    """Leaves that the engine uses."""
    is_predicted: bool | None
    """Whether the preset of the scheduler predicts its choice: for `kueue` each node's number of
    pods, else the score of the domain, since these schedulers take any of equal nodes.

    None for pods of several sizes, whose order differs from try to try, if the scheduler refuses
    the gang, and under `kubernetes` for one node.
    """


class GangDay:
    """A cluster with the labels of a fabric, and its gangs."""

    def __init__(self, cluster: GangCluster, scene: Scene, *, load: float | None = None) -> None:
        """Add the hosts of a fabric as nodes, with the labels of `toponaut export labels`.

        Args:
            cluster: without nodes.
            scene: the fabric.
            load: share of the cluster that running gangs may use; the oldest ones end before.
        """
        self._cluster = cluster
        self._load = load
        self._used = dict.fromkeys(scene.hosts, 0)
        self._gangs: dict[str, tuple[Gang, Sequence[str]]] = {}
        """The gangs that run, by name, and the node of each pod."""
        sources = (scene.sweep(), "--nodes", scene.nodes())
        self._tree: TopologyTree = parse_tree(run("tree", *sources, "-o", "json").document)
        self._tiers = (NODE_TIER, *self._tree.tiers)
        self.keys = (HOST_LABEL, *build_tier_keys(self._tree.tiers, PREFIX))
        """By tier, from the node itself: the label key."""
        self._leaf_of = {
            node: domain.name
            for domain in self._tree.domains
            if domain.tier == 1
            for node in self._tree.nodes_of(domain)
        }
        exported = run("export", "labels", *sources).out
        for document in yaml.safe_load_all(exported):
            cluster.add_node(document["metadata"]["name"], document["metadata"]["labels"])
        read = run("export", *cluster.exports, *sources).out if cluster.exports else ""
        cluster.install(read, self.keys)

    def compare(self, gang: Gang) -> Comparison:
        """Place a gang by both; the gang stays where the engine has placed it."""
        self._make_room(gang)
        found = self._place(gang)
        tier = None
        if found.tier is not None:
            tier = max(self._tiers.index(found.tier), self._cluster.lowest_tier)
        scheduled, where = self._schedule(gang)
        predicted = None if scheduled is None else self._predict(gang, scheduled, where)
        accepted: bool | None = None
        nodes: tuple[str, ...] = ()
        if found.is_feasible:
            nodes = _order_nodes(gang, found)
            name, bound = self._cluster.submit(gang, tier=tier, nodes=nodes)
            accepted = bound is not None and set(bound) <= set(nodes)
            self._keep(name, gang, bound or ())
        leaves, least = self._count_leaves(where), self._count_leaves(nodes)
        return Comparison(
            gang, tier, found.is_proved, scheduled, accepted, leaves, least, predicted
        )

    def _count_leaves(self, nodes: Sequence[str]) -> int | None:
        return len({self._leaf_of[node] for node in nodes}) or None

    def _make_room(self, gang: Gang) -> None:
        """End the oldest gangs until the cluster has the load with this gang."""
        if self._load is None:
            return
        limit = self._load * NODE_MILLICORES * len(self._used) - sum(gang.millicores)
        while self._gangs and sum(self._used.values()) > limit:
            self._end(next(iter(self._gangs)))

    def _place(self, gang: Gang, **spec: str) -> Placement:
        nodes = [
            NodeSpec(
                name,
                capacity={"cpu": NODE_MILLICORES, "memory": NODE_BYTES},
                free={"cpu": NODE_MILLICORES - used, "memory": NODE_BYTES},
            )
            for name, used in self._used.items()
        ]
        groups = [
            {"name": str(size), "count": num, "request": {"cpu": f"{size}m"}}
            for size, num in sorted(Counter(gang.millicores).items())
        ]
        document = {
            "apiVersion": "toponaut.io/v1alpha1",
            "kind": "PlacementRequest",
            "spec": {"gang": "gang", "groups": groups, **spec},
        }
        return place(Snapshot.from_tree(self._tree, nodes), parse_request(document))

    def _schedule(self, gang: Gang) -> tuple[int | None, Sequence[str]]:
        """Return the lowest tier at which the scheduler places the gang, and the nodes.

        The gang is removed again.
        """
        for tier in range(self._cluster.lowest_tier, len(self.keys)):
            name, bound = self._cluster.submit(gang, tier=tier)
            self._cluster.remove(name)
            if bound is not None:
                return tier, bound
        return None, ()

    def _predict(self, gang: Gang, tier: int, nodes: Sequence[str]) -> bool | None:
        """Return whether the preset of the scheduler predicts its choice."""
        preset = self._cluster.preset
        if len(set(gang.millicores)) > 1 or (preset is Preset.KUBERNETES and tier == 0):
            return None
        placement = self._place(gang, preset=preset, required=self._tiers[tier])
        ours = [node for pods in placement.assignment.values() for node in pods if node]
        if preset is Preset.KUEUE:
            return Counter(ours) == Counter(nodes)
        return self._score(gang, tier, ours[0]) == self._score(gang, tier, nodes[0])

    def _score(self, gang: Gang, tier: int, node: str) -> int:
        """Return the score of the domain of a node with the gang: its CPU in use, 0 to 50.

        No memory is in use, and CPU and memory count the same.
        """
        domains = (row for row in self._tree.domains if row.tier == tier)
        nodes = next(found for row in domains if node in (found := self._tree.nodes_of(row)))
        used = sum(self._used[one] for one in nodes) + sum(gang.millicores)
        return used * 100 // (len(nodes) * NODE_MILLICORES) // 2

    def _keep(self, name: str, gang: Gang, nodes: Sequence[str]) -> None:
        self._gangs[name] = gang, nodes
        for node, millicores in zip(nodes, gang.millicores, strict=bool(nodes)):
            self._used[node] += millicores
        while self._load is None and len(self._gangs) > _MAX_GANGS:
            self._end(next(iter(self._gangs)))

    def _end(self, name: str) -> None:
        gang, nodes = self._gangs.pop(name)
        self._cluster.remove(name)
        for node, millicores in zip(nodes, gang.millicores, strict=bool(nodes)):
            self._used[node] -= millicores


def _order_nodes(gang: Gang, placement: Placement) -> tuple[str, ...]:
    """Return the node of each pod, in the order of the gang."""
    left = {size: iter(nodes) for size, nodes in placement.assignment.items()}
    found = [next(left[str(size)]) for size in gang.millicores]
    return tuple(node or "" for node in found)


def draw_gangs(
    num: int, num_nodes: int, *, seed: int, num_kinds: Sequence[int] = (1, 1, 2, 3)
) -> Sequence[Gang]:
    """Return random gangs; together, some of them need more than the cluster has.

    Args:
        num: of gangs.
        num_nodes: of the cluster.
        seed: of the random numbers.
        num_kinds: how many sizes of pods a gang may have.
    """
    source = random.Random(seed)  # noqa: S311 - the same gangs each time
    sizes = [size for size in (*_SIZES, num_nodes // 2, num_nodes + 1) if size <= _MAX_PODS]
    gangs = []
    for _ in range(num):
        num_pods = source.choice(sizes)
        kinds = source.sample(_PARTS, source.choice(num_kinds))
        gangs.append(Gang(tuple(source.choice(kinds) for _ in range(num_pods))))
    return gangs


def run_day(
    cluster: GangCluster, scene: Scene, gangs: Sequence[Gang], *, load: float | None = None
) -> list[Comparison]:
    """Return the comparison of each gang, in order."""
    day = GangDay(cluster, scene, load=load)
    return [day.compare(gang) for gang in gangs]


def find_faults(rows: Sequence[Comparison], *, is_predictable: bool = True) -> list[str]:
    """Return what contradicts the engine: each must be explained or mended.

    Args:
        rows: of a day.
        is_predictable: whether the preset of the scheduler must predict every choice.
    """
    faults = []
    for number, row in enumerate(rows):
        if row.engine_tier is None and row.scheduler_tier is not None and row.is_proved:
            faults.append(f"{number}: the scheduler places {row.gang}, the engine does not")
        lower = row.engine_tier is not None and row.scheduler_tier is not None
        if lower and (row.scheduler_tier or 0) < (row.engine_tier or 0):
            faults.append(f"{number}: the scheduler finds a lower tier for {row.gang}: {row}")
        if row.is_accepted is False:
            faults.append(f"{number}: the scheduler refuses the nodes of the engine: {row}")
        if row.is_predicted is False and is_predictable:
            faults.append(f"{number}: the scheduler takes another domain than the preset: {row}")
    return faults


def scene_of(root: Path, num_nodes: int) -> Scene:
    """Return a fat tree with three tiers of switches."""
    radix = next(size for size in range(4, 64, 2) if size**3 // 4 >= num_nodes)
    spec = SyntheticSpec(FabricKind.FAT_TREE, num_nodes, radix=radix, tiers=3)
    return Scene.of(root, spec)
