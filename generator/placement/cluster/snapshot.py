"""The snapshot of a cluster: nodes, free capacity, running gangs and nominations.

A snapshot is immutable and dense: one row of free quantities per resource; nodes in tree order,
then nodes outside the tree. `with_running` and `without_running` return a new snapshot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from generator.placement.cluster.levels import BoolArray, IntArray, TreeLevels, build_levels
from generator.placement.cluster.nodes import (
    PODS,
    UNLIMITED_PODS,
    Exclusion,
    NodeSpec,
    RunningGang,
    RunningPods,
)
from generator.placement.groups import GangGroup
from generator.placement.node_selection import (
    NodeOperator,
    NodeRequirement,
    Taint,
    TaintEffect,
    Toleration,
    parse_taint,
)
from topology.model.ids import HOSTNAME_LABEL, natural_key
from topology.model.tree import TopologyTree

NOTHING_USED: Mapping[str, int] = MappingProxyType({})


def fit_pods(free: Sequence[int], needs: Iterable[tuple[int, int]], most: int) -> int:
    """Return how many pods fit one node, from its free quantities by row.

    Args:
        free: per row; below 0 if the node is overcommitted.
        needs: (row, quantity above 0) of a pod; at least one.
        most: the count is at most this.
    """
    return max(min([*[free[row] // need for row, need in needs], most]), 0)


MAX_TOTAL_SLOTS = (1 << 62) - 1
"""Slots of a cluster are counted up to this number: a sum of 64-bit integers must hold them."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The state of a cluster at one generation."""

    tree: TopologyTree
    levels: TreeLevels
    specs: tuple[NodeSpec, ...]
    """One per node: tree nodes in tree order, then the others in natural order."""
    resources: tuple[str, ...]
    """Sorted names; row r of `free` belongs to `resources[r]`."""
    free: IntArray
    """Shape (resources, nodes); below 0 if a node is overcommitted."""
    running: Mapping[str, RunningGang]
    """By gang name."""
    exclusive_gangs: frozenset[str]
    """Running gangs that have domains for themselves."""
    nominated: Mapping[str, RunningGang]
    """Reserved for gangs whose pods do not run yet, by any key; not subtracted from `free`."""
    position_of: Mapping[str, int]
    """Column of a node by name."""
    schedulable: BoolArray
    """Per node: whether it takes pods; see `Exclusion`."""
    closed: BoolArray | None
    """Per node: whether one gang may not use it, because a domain is exclusive; None: no node."""
    taint_sets: tuple[frozenset[Taint], ...]
    """The distinct sets of taints that exclude pods."""
    taint_set_of: IntArray
    """Per node: index into `taint_sets`."""
    _labels: dict[tuple[str, bool], tuple[IntArray, dict[str, int]]] = field(
        default_factory=dict, repr=False
    )
    """Columns of labels and fields read so far; a cache of `specs`."""
    _capacities: dict[str, IntArray] = field(default_factory=dict, repr=False)
    """Capacities of nodes per resource read so far; a cache of `specs`."""
    name_ranks: dict[int, IntArray] = field(default_factory=dict, repr=False)
    """Ranks of units by name per tier, read so far; a cache of `levels`."""
    answers: dict[object, object] = field(default_factory=dict, init=False, repr=False)
    """Proved answers by request; a cache of the whole snapshot, not copied to changed ones."""
    views: dict[object, Snapshot] = field(default_factory=dict, init=False, repr=False)
    """Views of the snapshot by what decides them; a cache."""

    @classmethod
    def from_tree(
        cls,
        tree: TopologyTree,
        nodes: Iterable[NodeSpec] = (),
        running: Sequence[RunningGang] = (),
        nominated: Sequence[RunningGang] = (),
    ) -> Snapshot:
        """Return the cluster of a tree; the order of nodes and gangs has no effect.

        Cost: O(nodes × resources + pods).

        Args:
            tree: domains and their nodes.
            nodes: what nodes have, and which pods they accept; a node that it lacks has one slot.
            running: gangs whose pods are subtracted from what is free.
            nominated: gangs for which capacity is reserved, but which do not run yet.
        """
        return build_snapshot(tree, {spec.name: spec for spec in nodes}, running, nominated)

    @property
    def num_nodes(self) -> int:
        """Number of nodes, in the tree and outside."""
        return len(self.specs)

    @property
    def num_tree_nodes(self) -> int:
        """Number of tree nodes; nodes before this position are in the tree."""
        return len(self.tree.nodes)

    @property
    def max_node_slots(self) -> int:
        """Slots of one node are counted up to this number, so that all nodes fit 64 bits."""
        return MAX_TOTAL_SLOTS // max(self.num_nodes, 1)

    def pod_needs(self, request: Mapping[str, int]) -> dict[str, int]:
        """Return the amounts that a pod needs; also one of `pods`, if any node limits its pods."""
        if PODS in self.resources:
            return {PODS: 1, **request}
        return {name: need for name, need in request.items() if name != PODS}

    def count_slots(
        self,
        request: Mapping[str, int],
        *,
        unbounded: int,
        nodes: IntArray | slice = slice(None),
        used: Mapping[str, int] = NOTHING_USED,
    ) -> IntArray:
        """Return how many pods with these needs fit each node; `unbounded` without any need.

        A resource that no node has never fits.

        Args:
            request: resources of each pod.
            unbounded: the count for pods that request nothing.
            nodes: positions to count; all by default.
            used: quantities that other pods use on each of these nodes.

        Cost: O(resources × nodes).
        """
        slots: IntArray | None = None
        for name, need in request.items():
            if need == 0:
                continue
            if name not in self.resources:
                return np.zeros_like(self.taint_set_of[nodes])
            row = self.free[self.resources.index(name), nodes]
            row = row - used[name] if used.get(name) else row
            fits = row if need == 1 else row // need
            slots = fits if slots is None else np.minimum(slots, fits)
        if slots is None:
            return np.full_like(self.taint_set_of[nodes], unbounded)
        return np.asarray(np.minimum(np.maximum(slots, 0), self.max_node_slots))

    def quantities(self, resource: str, *, counts_free: bool) -> IntArray:
        """Return how much of a resource each node has free, or has in total."""
        if counts_free:
            if resource not in self.resources:
                return np.zeros(self.num_nodes, dtype=np.int64)
            free: IntArray = self.free[self.resources.index(resource)]
            return free
        if resource not in self._capacities:
            absent = _absent_quantity(resource)
            capacities = [spec.capacity.get(resource, absent) for spec in self.specs]
            self._capacities[resource] = np.array(capacities, dtype=np.int64)
        return self._capacities[resource]

    def allowed_by_cause(self, group: GangGroup) -> dict[str, BoolArray]:
        """Return, for each cause, which nodes it does not exclude from the pods of a group.

        The order decides under which cause a node is counted.
        """
        masks = {"unschedulable": self.schedulable}
        if self.closed is not None:
            masks["exclusive"] = ~self.closed
        masks["taint"] = self._has_tolerated_taints(group.tolerations)
        every = np.ones(self.num_nodes, dtype=np.bool_)
        selected = [self.has_label(key, values) for key, values in group.selector]
        masks["selector"] = np.logical_and.reduce([every, *selected])
        terms = [np.logical_and.reduce([*map(self._meets, term)]) for term in group.affinity]
        masks["affinity"] = np.logical_or.reduce(terms) if terms else every
        return masks

    def count_unschedulable(self) -> dict[str, int]:
        """Return the number of nodes that take no pods, by cause."""
        return Counter(
            str(spec.exclusion or Exclusion.UNSCHEDULABLE)
            for spec, is_open in zip(self.specs, self.schedulable.tolist(), strict=True)
            if not is_open
        )

    def has_label(self, key: str, values: Iterable[str]) -> BoolArray:
        """Return which nodes carry the label with one of the values."""
        return self._meets(NodeRequirement(key, NodeOperator.IN, tuple(values)))

    def _meets(self, requirement: NodeRequirement) -> BoolArray:
        codes_of, code_of = self._column(requirement.key, is_field=requirement.is_field)
        accepted = np.array(requirement.accepted_values(code_of), dtype=np.bool_)
        return np.asarray(accepted[codes_of])  # the last one is for nodes without the label

    def _column(self, key: str, *, is_field: bool) -> tuple[IntArray, dict[str, int]]:
        """Return the number of each node's value of a label or field, -1 for none; cached."""
        if (key, is_field) not in self._labels:
            code_of: dict[str, int] = {}
            codes = []
            for spec in self.specs:
                value = spec.name if is_field else spec.labels.get(key)
                # Plain lists of nodes lack this label.
                if value is None and key == HOSTNAME_LABEL:
                    value = spec.name
                codes.append(-1 if value is None else code_of.setdefault(value, len(code_of)))
            self._labels[key, is_field] = (np.array(codes, dtype=np.int64), code_of)
        return self._labels[key, is_field]

    def _has_tolerated_taints(self, tolerations: frozenset[Toleration]) -> BoolArray:
        """Return which nodes have no taint that excludes pods with these tolerations."""
        allowed = [
            all(any(row.tolerates(taint) for row in tolerations) for taint in taints)
            for taints in self.taint_sets
        ]
        return np.array(allowed, dtype=np.bool_)[self.taint_set_of]


def build_snapshot(
    tree: TopologyTree,
    nodes: Mapping[str, NodeSpec],
    running: Sequence[RunningGang] = (),
    nominated: Sequence[RunningGang] = (),
) -> Snapshot:
    """Order the nodes and subtract running pods; the order of the inputs does not matter.

    A tree node that `nodes` lacks has one slot. Pods on unknown nodes stay in `running` and take no
    capacity. Cost: O(nodes × resources + pods).
    """
    outside = sorted(nodes.keys() - set(tree.nodes), key=natural_key)
    specs = tuple(nodes.get(name) or NodeSpec(name) for name in (*tree.nodes, *outside))
    position = {spec.name: index for index, spec in enumerate(specs)}
    resources = sorted({name for spec in specs for name in spec.initial_free})
    free = np.array(
        [
            [spec.initial_free.get(name, _absent_quantity(name)) for spec in specs]
            for name in resources
        ],
        dtype=np.int64,
    ).reshape(len(resources), len(specs))
    index_of_taints: dict[frozenset[Taint], int] = {}
    taint_set_of = [
        index_of_taints.setdefault(_hard_taints(spec), len(index_of_taints)) for spec in specs
    ]
    empty = Snapshot(
        tree=tree,
        levels=build_levels(tree, [spec.labels for spec in specs]),
        specs=specs,
        resources=tuple(resources),
        free=free,
        running=MappingProxyType({}),
        exclusive_gangs=frozenset(),
        nominated=MappingProxyType({gang.gang: gang for gang in nominated}),
        position_of=MappingProxyType(position),
        schedulable=np.array([spec.exclusion is None for spec in specs], dtype=np.bool_),
        closed=None,
        taint_sets=tuple(index_of_taints),
        taint_set_of=np.array(taint_set_of, dtype=np.int64),
    )
    return _change_running(empty, running, sign=-1)


def with_running(snapshot: Snapshot, *gangs: RunningGang) -> Snapshot:
    """Return the snapshot with more running gangs or pods; O(resources × nodes + pods)."""
    return _change_running(snapshot, gangs, sign=-1)


def with_counted(snapshot: Snapshot, gang: RunningGang) -> Snapshot:
    """Return the snapshot with a gang whose pods the free capacity excludes already."""
    return replace(snapshot, running=MappingProxyType({**snapshot.running, gang.gang: gang}))


def without_running(snapshot: Snapshot, *gangs: str) -> Snapshot:
    """Return the snapshot without these gangs; the same snapshot if none of them runs."""
    running = tuple([snapshot.running[gang] for gang in gangs if gang in snapshot.running])
    return _change_running(snapshot, running, sign=1) if running else snapshot


def with_nominated(snapshot: Snapshot, nominated: Mapping[str, RunningGang]) -> Snapshot:
    """Return the snapshot with these nominations."""
    return replace(snapshot, nominated=MappingProxyType(dict(nominated)))


def free_after(snapshot: Snapshot, gangs: Iterable[RunningGang], *, sign: int) -> IntArray:
    """Return the free quantities after adding `sign` times the gangs' pods.

    Cost: O(resources × nodes) to copy, O(pods) to change.
    """
    free = snapshot.free.copy()
    row_of_resource = {name: row for row, name in enumerate(snapshot.resources)}
    for pods in (pods for gang in gangs for pods in gang.pods):
        position = snapshot.position_of.get(pods.node)
        if position is None:
            continue
        for name, need in {PODS: 1, **pods.request}.items():
            if name in row_of_resource:
                free[row_of_resource[name], position] += sign * need * pods.count
    free.setflags(write=False)
    return free


def _change_running(snapshot: Snapshot, gangs: Sequence[RunningGang], *, sign: int) -> Snapshot:
    running = dict(snapshot.running)
    exclusive_gangs = snapshot.exclusive_gangs
    if changed := {gang.gang for gang in gangs if gang.exclusive is not None}:
        exclusive_gangs = exclusive_gangs | changed if sign < 0 else exclusive_gangs - changed
    for gang in gangs:
        if sign > 0:
            del running[gang.gang]
        elif gang.gang in running:
            before = running[gang.gang]
            running[gang.gang] = replace(before, pods=_sorted_pods(before.pods + gang.pods))
        else:
            running[gang.gang] = replace(gang, pods=_sorted_pods(gang.pods))
    return replace(
        snapshot,
        free=free_after(snapshot, gangs, sign=sign),
        running=MappingProxyType(running),
        exclusive_gangs=exclusive_gangs,
    )


def _sorted_pods(pods: Iterable[RunningPods]) -> tuple[RunningPods, ...]:
    return tuple(
        sorted(
            pods,
            key=lambda entry: (
                entry.node,
                entry.group or "",
                sorted(entry.request.items()),
                entry.indices,
            ),
        )
    )


def _absent_quantity(resource: str) -> int:
    """Return the quantity of a resource on a node that does not list the resource."""
    return UNLIMITED_PODS if resource == PODS else 0


def _hard_taints(spec: NodeSpec) -> frozenset[Taint]:
    taints = map(parse_taint, spec.taints)
    return frozenset(row for row in taints if row.effect != TaintEffect.PREFER_NO_SCHEDULE)
