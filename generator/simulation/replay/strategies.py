"""Ways to place a job: the engine with a preset, and the two that others are measured by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np

from generator.jobs.cluster import SlotCluster, Ints, UniformPods, sum_by_domain
from generator.placement.answer import Placement
from generator.placement.batch.joint import place_batch
from generator.placement.cluster.snapshot import (
    NodeSpec,
    RunningGang,
    RunningPods,
    Snapshot,
    build_snapshot,
    with_running,
    without_running,
)
from generator.placement.engine import place
from generator.placement.presets import Preset
from generator.placement.request import PlacementRequest, parse_request
from topology.model.tree import API_VERSION

FIRST_FIT: Final = "first-fit"
BEST_FIT: Final = "best-fit"
MAX_JOINT_STEPS: Final = 1000
"""Budget of planning what starts at one instant: far less than it takes to place it."""
STRATEGY_NAMES: Final = (*(preset.value for preset in Preset), BEST_FIT, FIRST_FIT)


class OptimalOptions(NamedTuple):
    """How `optimal` goes about a mix of jobs."""

    is_joint: bool = True
    """Whether gangs that start at one instant are planned together."""
    spares_islands: bool = True
    """Whether the tightest top domains come before fewer leaves in them."""


DEFAULT_OPTIONS: Final = OptimalOptions()


class Strategy(Protocol):
    """Chooses nodes for a job that has room in the cluster."""

    def choose(self, gang: str, pods: UniformPods) -> Ints | None:
        """Return the node of each pod; None where it finds no place."""

    def start(self, gang: str, pods: UniformPods, nodes: Ints) -> None:
        """Learn that a job runs where it was placed."""

    def rearrange(self, gangs: Sequence[str]) -> Mapping[str, Ints]:
        """Place jobs that have just started anew, together; return the nodes of those that move."""

    def end(self, gang: str) -> None:
        """Learn that a job has gone."""


def make_strategy(
    name: str,
    cluster: SlotCluster,
    *,
    preferred_tier: str | None = None,
    options: OptimalOptions = DEFAULT_OPTIONS,
) -> Strategy:
    """Return the strategy of a name of `NAMES` on a cluster that is empty yet.

    Args:
        name: of a preset, or one of the two others.
        cluster: all free.
        wish: tier that every gang prefers, for presets; some keep near only what wishes it.
        ways: of `optimal`.

    Raises:
        PlacementRequestError: the engine does not know the preset yet.
    """
    if name == FIRST_FIT:
        return RuleStrategy(cluster, first_fit)
    if name == BEST_FIT:
        return RuleStrategy(cluster, best_fit)
    return EngineStrategy(cluster, Preset(name), preferred_tier, options=options)


class RuleStrategy:
    """A rule on the free slots alone."""

    def __init__(
        self, cluster: SlotCluster, rule: Callable[[SlotCluster, UniformPods], Ints]
    ) -> None:
        """Look at a cluster with a rule."""
        self._cluster = cluster
        self._rule = rule

    def choose(self, gang: str, pods: UniformPods) -> Ints | None:
        """Return the nodes that the rule takes."""
        del gang
        return self._rule(self._cluster, pods)

    def start(self, gang: str, pods: UniformPods, nodes: Ints) -> None:
        """Keep nothing: the cluster knows."""

    def rearrange(self, gangs: Sequence[str]) -> Mapping[str, Ints]:
        """Leave all where they are."""
        del gangs
        return {}

    def end(self, gang: str) -> None:
        """Keep nothing: the cluster knows."""


class EngineStrategy:
    """The placement engine, gang after gang, on the snapshot that each one leaves.

    Gangs may cross islands, as the two others do.
    """

    def __init__(
        self,
        cluster: SlotCluster,
        preset: Preset,
        wish: str | None = None,
        *,
        options: OptimalOptions,
    ) -> None:
        """Begin with an empty cluster; gangs prefer the tier that is wished."""
        self._options = options if preset is Preset.OPTIMAL else OptimalOptions(is_joint=False)
        self._pods: dict[str, UniformPods] = {}
        slots = {"slots": cluster.slots}
        specs = {name: NodeSpec(name, slots) for name in cluster.tree.nodes}
        self._snapshot: Snapshot = build_snapshot(cluster.tree, specs)
        self._preset = preset
        self._preferred = [] if wish is None else [wish]
        self._requests: dict[UniformPods, PlacementRequest] = {}
        self._build_request(UniformPods(1, 1))

    def choose(self, gang: str, pods: UniformPods) -> Ints | None:
        """Return the nodes of the best placement."""
        request = self._build_request(pods).with_gang(gang)
        found = place(self._snapshot, request)
        if not found.is_feasible:
            return None
        return self._find_nodes(found)

    def start(self, gang: str, pods: UniformPods, nodes: Ints) -> None:
        """Take the slots off the snapshot."""
        self._pods[gang] = pods
        specs, request = self._snapshot.specs, {"slots": pods.slots}
        held = [
            RunningPods(specs[at].name, request, num, "pods")
            for at, num in zip(*np.unique(nodes, return_counts=True), strict=True)
        ]
        self._snapshot = with_running(self._snapshot, RunningGang(gang, tuple(held)))

    def rearrange(self, gangs: Sequence[str]) -> Mapping[str, Ints]:
        """Plan gangs jointly, where the preset does."""
        if not self._options.is_joint:
            return {}
        before = self._snapshot
        for gang in gangs:
            before = without_running(before, gang)
        requests = [self._build_request(self._pods[gang]).with_gang(gang) for gang in gangs]
        found = place_batch(before, requests, steps=MAX_JOINT_STEPS, keeps_tiers=True)
        if not found.num_moved:
            return {}
        now = {gang: self._snapshot.running[gang] for gang in gangs}
        self._snapshot = found.snapshot
        return {
            gang: self._find_nodes(placement)
            for gang, placement in zip(gangs, found.placements, strict=True)
            if found.snapshot.running[gang] != now[gang]
        }

    def _find_nodes(self, found: Placement) -> Ints:
        position = self._snapshot.position_of
        names = (name for name in found.assignment["pods"] if name is not None)
        return np.array([position[name] for name in names], dtype=np.int64)

    def end(self, gang: str) -> None:
        """Give them back."""
        self._pods.pop(gang, None)
        self._snapshot = without_running(self._snapshot, gang)

    def _build_request(self, pods: UniformPods) -> PlacementRequest:
        """Return the request for so many pods; equal ones are parsed once."""
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
    """Return the first nodes in tree order that have room, which there must be."""
    return _fill_nodes(cluster.count_fitting(pods.slots), np.arange(len(cluster.free)), pods.num)


def best_fit(cluster: SlotCluster, pods: UniformPods) -> Ints:
    """Return nodes of the tightest domain of the lowest tier that has room.

    Inside it the leaves with most room come first, and the last one is the tightest that holds
    the rest; nodes are filled in tree order, those with least room first.
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
    """Return the range of the lowest domain with room, the tightest among equals in tier."""
    for tier in cluster.tiers:
        room = sum_by_domain(tier, fits)
        enough = np.flatnonzero(room >= count)
        if len(enough):
            best = enough[np.argmin(room[enough])]
            return int(tier.starts[best]), int(tier.stops[best])
    return 0, len(fits)


def _fill_by_leaf(cluster: SlotCluster, fits: Ints, nodes: Ints, count: int) -> Ints:
    """Return nodes leaf by leaf, in the order in which best fit fills leaves."""
    leaf_of = cluster.tiers[0].domain_of[nodes]
    room = np.bincount(leaf_of + 1, weights=fits[nodes]).astype(np.int64)
    order = [int(leaf) for leaf in np.argsort(-room, kind="stable") if room[leaf]]
    rest, chosen = count, []
    while rest > 0:
        enough = [leaf for leaf in order if room[leaf] >= rest]
        leaf = min(enough, key=lambda leaf: (room[leaf], leaf)) if enough else order[0]
        order.remove(leaf)
        chosen.append(leaf)
        rest -= int(room[leaf])
    return np.concatenate([nodes[leaf_of + 1 == leaf] for leaf in chosen])


def _fill_nodes(fits: Ints, order: Ints, count: int) -> Ints:
    """Return the nodes of pods that fill nodes in an order."""
    nodes = np.repeat(order, fits[order])[:count]
    return nodes.astype(np.int64)
