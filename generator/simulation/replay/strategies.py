"""Strategies to place a job: the engine with a preset, and two simple rules as a baseline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, Protocol

import numpy as np

from generator.jobs.cluster import Ints, SlotCluster, UniformPods, sum_by_domain
from generator.placement.answer import Placement
from generator.placement.batch.joint import BatchOptions, place_batch
from generator.placement.cluster.nodes import NodeSpec, RunningGang, RunningPods
from generator.placement.cluster.snapshot import (
    Snapshot,
    build_snapshot,
    with_running,
    without_running,
)
from generator.placement.engine import place
from generator.placement.presets import Preset
from generator.placement.request import PlacementRequest, parse_request
from generator.simulation.replay.run_names import BEST_FIT, FIRST_FIT
from topology.model.tree import API_VERSION

BATCH_OPTIONS: Final = BatchOptions(steps=1000, keeps_tiers=True, explains=False)
"""For the gangs of one instant: the step limit keeps joint planning far cheaper than placing."""


class OptimalOptions(NamedTuple):
    """Options of the preset `optimal`."""

    is_joint: bool = True
    """Whether to plan gangs that start at one instant together."""
    spares_islands: bool = True
    """Whether filling the tightest top domains has priority over using fewer leaves."""


DEFAULT_OPTIONS: Final = OptimalOptions()


class Strategy(Protocol):
    """Chooses nodes for a job that has room in the cluster."""

    def choose(self, gang: str, pods: UniformPods) -> Ints | None:
        """Return the node of each pod; None if there is no placement."""

    def start(self, gang: str, pods: UniformPods, nodes: Ints) -> None:
        """Record that a job runs on its chosen nodes."""

    def rearrange(self, gangs: Sequence[str]) -> Mapping[str, Ints]:
        """Place jobs that just started again, together; return the nodes of jobs that move."""

    def end(self, gang: str) -> None:
        """Record that a job has ended."""


def make_strategy(
    name: str,
    cluster: SlotCluster,
    *,
    preferred_tier: str | None = None,
    options: OptimalOptions = DEFAULT_OPTIONS,
) -> Strategy:
    """Return the strategy with a name in `STRATEGY_NAMES`, on an empty cluster.

    Args:
        name: the name of a preset, or `best-fit` or `first-fit`.
        cluster: the cluster, with all slots free.
        preferred_tier: the tier that every gang prefers, for presets; some presets keep a gang
            together only if it prefers a tier.
        options: the options of `optimal`.

    Raises:
        PlacementRequestError: the engine does not support the preset.
    """
    if name == FIRST_FIT:
        return RuleStrategy(cluster, first_fit)
    if name == BEST_FIT:
        return RuleStrategy(cluster, best_fit)
    return EngineStrategy(cluster, Preset(name), preferred_tier, options=options)


class RuleStrategy:
    """A rule that depends on the free slots only."""

    def __init__(
        self, cluster: SlotCluster, rule: Callable[[SlotCluster, UniformPods], Ints]
    ) -> None:
        """Apply a rule to a cluster."""
        self._cluster = cluster
        self._rule = rule

    def choose(self, gang: str, pods: UniformPods) -> Ints | None:
        """Return the nodes that the rule chooses."""
        del gang
        return self._rule(self._cluster, pods)

    def start(self, gang: str, pods: UniformPods, nodes: Ints) -> None:
        """Do nothing: the cluster has the state."""

    def rearrange(self, gangs: Sequence[str]) -> Mapping[str, Ints]:
        """Move no job."""
        del gangs
        return {}

    def end(self, gang: str) -> None:
        """Do nothing: the cluster has the state."""


class EngineStrategy:
    """The placement engine: places each gang on the snapshot that the previous gangs left.

    Gangs may cross islands, as with the two rules.
    """

    def __init__(
        self,
        cluster: SlotCluster,
        preset: Preset,
        preferred_tier: str | None = None,
        *,
        options: OptimalOptions,
    ) -> None:
        """Start with an empty cluster; every gang prefers `preferred_tier`."""
        self._options = options if preset is Preset.OPTIMAL else OptimalOptions(is_joint=False)
        self._pods: dict[str, UniformPods] = {}
        slots = {"slots": cluster.slots}
        specs = {name: NodeSpec(name, slots) for name in cluster.tree.nodes}
        self._snapshot: Snapshot = build_snapshot(cluster.tree, specs)
        self._preset = preset
        self._preferred = [] if preferred_tier is None else [preferred_tier]
        self._requests: dict[UniformPods, PlacementRequest] = {}
        self._build_request(UniformPods(1, 1))

    def choose(self, gang: str, pods: UniformPods) -> Ints | None:
        """Return the nodes of the best placement."""
        request = replace(self._build_request(pods), gang=gang)
        placement = place(self._snapshot, request, explains=False)
        if not placement.is_feasible:
            return None
        return self._find_nodes(placement)

    def start(self, gang: str, pods: UniformPods, nodes: Ints) -> None:
        """Take the slots in the snapshot."""
        self._pods[gang] = pods
        specs, request = self._snapshot.specs, {"slots": pods.slots}
        running_pods = [
            RunningPods(specs[position].name, request, num, "pods")
            for position, num in zip(*np.unique(nodes, return_counts=True), strict=True)
        ]
        self._snapshot = with_running(self._snapshot, RunningGang(gang, tuple(running_pods)))

    def rearrange(self, gangs: Sequence[str]) -> Mapping[str, Ints]:
        """Plan gangs jointly, if the options say so."""
        if not self._options.is_joint:
            return {}
        before = self._snapshot
        for gang in gangs:
            before = without_running(before, gang)
        requests = [replace(self._build_request(self._pods[gang]), gang=gang) for gang in gangs]
        batch = place_batch(before, requests, options=BATCH_OPTIONS)
        if not batch.num_moved:
            return {}
        running_before = {gang: self._snapshot.running[gang] for gang in gangs}
        self._snapshot = batch.snapshot
        return {
            gang: self._find_nodes(placement)
            for gang, placement in zip(gangs, batch.placements, strict=True)
            if batch.snapshot.running[gang] != running_before[gang]
        }

    def _find_nodes(self, placement: Placement) -> Ints:
        position = self._snapshot.position_of
        names = (name for name in placement.assignment["pods"] if name is not None)
        return np.array([position[name] for name in names], dtype=np.int64)

    def end(self, gang: str) -> None:
        """Return the slots to the snapshot."""
        self._pods.pop(gang, None)
        self._snapshot = without_running(self._snapshot, gang)

    def _build_request(self, pods: UniformPods) -> PlacementRequest:
        """Return the request for some pods; equal requests are parsed once."""
        if pods not in self._requests:
            group = {
                "name": "pods",
                "count": pods.num,
                "request": {"slots": pods.slots},
                "preferred": self._preferred,
            }
            spec = {
                "preset": self._preset.value,
                "groups": [group],
                "across_islands": True,
                "options": {"spare_islands": self._options.spares_islands},
            }
            document = {"apiVersion": API_VERSION, "kind": "PlacementRequest", "spec": spec}
            self._requests[pods] = parse_request(document)
        return self._requests[pods]


def first_fit(cluster: SlotCluster, pods: UniformPods) -> Ints:
    """Return the first nodes in tree order with room; the cluster must have enough."""
    return _fill_nodes(cluster.count_fitting(pods.slots), np.arange(len(cluster.free)), pods.num)


def best_fit(cluster: SlotCluster, pods: UniformPods) -> Ints:
    """Return nodes of the tightest domain in the lowest tier with room.

    In the domain, leaves with most room come first; the last leaf is the tightest one with room for
    the remaining pods. Nodes of a leaf are filled in tree order. A single pod gets the node with
    the fewest free slots.
    """
    fits = cluster.count_fitting(pods.slots)
    low, high = _find_tightest_domain(cluster, fits, pods.num)
    order = np.arange(low, high)
    if pods.num == 1:
        inside = fits[low:high]
        with_room = np.flatnonzero(inside > 0)
        best = with_room[np.argmin(cluster.free[low:high][with_room])]
        return np.array([low + best], dtype=np.int64)
    return _fill_nodes(fits, _fill_by_leaf(cluster, fits, order, pods.num), pods.num)


def _find_tightest_domain(cluster: SlotCluster, fits: Ints, count: int) -> tuple[int, int]:
    """Return the range of the tightest domain in the lowest tier with room."""
    for tier in cluster.tiers:
        room = sum_by_domain(tier, fits)
        enough = np.flatnonzero(room >= count)
        if len(enough):
            best = enough[np.argmin(room[enough])]
            return int(tier.starts[best]), int(tier.stops[best])
    return 0, len(fits)


def _fill_by_leaf(cluster: SlotCluster, fits: Ints, nodes: Ints, count: int) -> Ints:
    """Return nodes leaf by leaf, in the order in which best fit fills the leaves."""
    leaf_of = cluster.tiers[0].domain_of[nodes]
    room = np.bincount(leaf_of + 1, weights=fits[nodes]).astype(np.int64)
    order = [int(leaf) for leaf in np.argsort(-room, kind="stable") if room[leaf]]
    num_remaining, chosen = count, []
    while num_remaining > 0:
        enough = [leaf for leaf in order if room[leaf] >= num_remaining]
        leaf = min(enough, key=lambda leaf: (room[leaf], leaf)) if enough else order[0]
        order.remove(leaf)
        chosen.append(leaf)
        num_remaining -= int(room[leaf])
    return np.concatenate([nodes[leaf_of + 1 == leaf] for leaf in chosen])


def _fill_nodes(fits: Ints, order: Ints, count: int) -> Ints:
    """Return the node of each pod, filling the nodes in the given order."""
    nodes = np.repeat(order, fits[order])[:count]
    return nodes.astype(np.int64)
