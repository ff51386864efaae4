"""A request resolved against a snapshot: tiers as heights, groups as parts, running pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import lcm
from typing import NamedTuple

import numpy as np

from generator.placement.budget import Budget
from generator.placement.cluster.gang_view import limit_nodes
from generator.placement.cluster.levels import CLUSTER_TIER, IntArray
from generator.placement.cluster.shapes import (
    PodShape,
    build_shapes,
    max_pods_in_one,
    traffic_pairs,
)
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.presets import (
    FEWEST_VICTIMS_TERMS,
    PRESETS,
    VICTIM_TERMS,
    ObjectiveKey,
    ObjectiveTerm,
)
from generator.placement.problem.pod_counts import (
    GangMember,
    GroupCounts,
    build_gang_members,
    pod_count_choices,
)
from generator.placement.problem.preemption import EvictablePods
from generator.placement.problem.rules import (
    DomainRules,
    OwnPods,
    SlicePods,
    build_rules,
    build_unit_rules,
    cut_slices,
    find_own_pods,
    innermost_slices,
)
from generator.placement.request import EvictionPolicy, PlacementRequest, SortRule

DEFAULT_SORT_RULE = SortRule("cpu", counts_free=False, is_descending=False)
"""The rule of a preset that always sorts domains by a rule."""
NO_UNITS: IntArray = np.empty(0, dtype=np.int64)


class NodeWeights(NamedTuple):
    """Weights of nodes; lighter nodes are preferred."""

    distinct_weights: tuple[int, ...]
    """The heaviest first."""
    weight_index: IntArray
    """Per node: index of its weight."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A request with everything that the engine needs from the snapshot."""

    snapshot: Snapshot
    request: PlacementRequest
    shapes: tuple[PodShape, ...]
    shape_of: tuple[int, ...]
    """Per group: index of its shape."""
    scarcest_shape: int
    """Index of the shape of which the cluster holds the fewest pods; surplus is counted in it."""
    job_cap: int
    """Highest tier of the job."""
    preferred: tuple[int, ...]
    """Preferred tiers of the whole job."""
    own_pods: OwnPods
    """Where pods of the gang run already."""
    rules: DomainRules
    strategies: tuple[tuple[int, int], ...]
    """(highest tier of the job, of every part), in order; one entry if none is listed."""
    traffic_pairs: tuple[tuple[int, int, int], ...]
    """(shape, shape, weight) of groups that communicate with, or repel, each other."""
    sort_columns: tuple[tuple[IntArray, ...], ...]
    """Per sort rule and tier: the value of each unit, negated if more is better."""
    node_weights: NodeWeights | None
    """Node weights of the request, if the preset compares them."""
    evictable: EvictablePods | None
    """The pods that may be evicted; `snapshot` is then the cluster without them."""
    is_growth: bool
    """Whether the gang already runs, so that new pods may complete running slices."""
    budget: Budget
    """The steps and the time that the query may still use, in whatever it does."""

    @property
    def root(self) -> int:
        """Height of `cluster`."""
        return self.snapshot.levels.root

    @property
    def has_domain_rules(self) -> bool:
        """Whether more than tiers bounds the pods per domain."""
        return any(self.rules)

    @property
    def spares_islands(self) -> bool:
        """Whether a job spares whole islands before it spares the domains in them."""
        return self.request.options.spares_islands and self.root > 1

    @property
    def objective_order(self) -> tuple[ObjectiveTerm, ...]:
        """The terms to compare, the most important first."""
        rules = PRESETS[self.request.preset]
        order = rules.order
        if self.evictable is None:
            return order
        if self.evictable.policy is EvictionPolicy.FEWEST_VICTIMS:
            return (order[0], *FEWEST_VICTIMS_TERMS, *order[1:])
        if self.evictable.policy is EvictionPolicy.PER_DOMAIN:
            return (*order, *VICTIM_TERMS)
        if rules.eviction_order:
            return rules.eviction_order
        return (*order[:-1], *VICTIM_TERMS, order[-1])

    @cached_property
    def gang(self) -> GangMember:
        """All members of the gang as one set of which none may be left out."""
        rows = [
            GroupCounts(
                self._count_range(index),
                self._group_kind(index),
                bool(self.own_pods.positions_of[index]),
            )
            for index in range(len(self.request.groups))
        ]
        return build_gang_members(self.request, rows, self.budget)

    @cached_property
    def totals(self) -> int:
        """Possible totals of pods, as bits: allowed by members and minimums, within one domain."""
        totals = self.gang.totals
        if self.own_pods.stray_tier is not None:
            return 0
        if len(self.request.groups) > 1 and totals & (totals - 1):
            shapes = [self.shapes[shape] for shape in self.shape_of]
            tier = self.highest_job_tier
            most = max_pods_in_one(self.snapshot, self.request.groups, shapes, tier)
            totals &= (1 << most + 1) - 1
        return totals >> self.min_pods << self.min_pods

    def pod_counts(self, budget: Budget) -> Iterator[tuple[int, ...]]:
        """Yield the numbers of pods per group to try, most pods first; the budget may end."""
        return pod_count_choices(self.gang, self.totals, len(self.request.groups), budget)

    @property
    def min_pods(self) -> int:
        """The fewest new pods of the whole gang."""
        needed = sum(group.least for group in self.request.groups if not group.is_optional)
        return max(self.request.least, needed, 1)

    @property
    def highest_job_tier(self) -> int:
        """Highest tier at which the job may lie."""
        return min(self.job_cap, max(job for job, _ in self.strategies))

    def pod_count_step(self, group: int) -> int:
        """Return the pods of a group that are placed or left out together: those of its slices."""
        sizes = [layer.size for layer in self.request.groups[group].slices if not layer.has_short]
        return 1 if self.is_growth else lcm(*sizes)

    def _count_range(self, index: int) -> range:
        """Return the allowed numbers of pods of a group: whole slices, unless the gang grows."""
        group, step = self.request.groups[index], self.pod_count_step(index)
        tier = min(self.highest_job_tier, self.group_cap(index))
        most_slots = self.shapes[self.shape_of[index]].max_slots[tier]
        in_slices = max((layer.least * layer.size for layer in group.slices), default=0)
        # Running pods already count towards the fewest slices.
        fewest = max(group.least, in_slices - len(self.own_pods.positions_of[index]))
        return range(-(-fewest // step) * step, min(group.count, most_slots) + 1, step)

    def _group_kind(self, index: int) -> tuple[object, ...]:
        """Return a key that is equal for groups that may be exchanged for each other."""
        request = self.request
        if len(request.groups) == 1:
            return (self.shape_of[index],)
        is_alike = not (
            self.own_pods.positions_of[index]
            or request.traffic
            or any(request.roles)
            or request.options.node_weights
        )
        group = request.groups[index]
        return self.shape_of[index], replace(group, name="") if is_alike else index

    @property
    def uses_buckets(self) -> bool:
        """Whether pods are placed by buckets of roles."""
        is_open = self.evictable is None and not self.request.strategies
        return PRESETS[self.request.preset].uses_task_buckets and is_open

    @property
    def lowest_job_tier(self) -> int:
        """Lowest tier at which the job's domain is chosen; at most the highest allowed tier."""
        caps = [self.job_cap, *(job for job, _ in self.strategies)]
        return min(PRESETS[self.request.preset].lowest_job_tier, *caps)

    @property
    def compares_tiers_first(self) -> bool:
        """Whether strategies and tiers are compared before all keys but the number of pods."""
        earlier_keys = {ObjectiveKey.PLACED, ObjectiveKey.STRATEGY, ObjectiveKey.EXISTING}
        earlier_keys |= {ObjectiveKey.NODE_WEIGHTS} if self.node_weights is None else set()
        first = next(term.key for term in self.objective_order if term.key not in earlier_keys)
        return first is ObjectiveKey.JOB_TIER

    def resources_used(self, pods: Sequence[Sequence[int]]) -> dict[int, Counter[str]]:
        """Return what placed pods use per node, given their positions per group."""
        used: dict[int, Counter[str]] = {}
        for shape, positions in zip(self.shape_of, pods, strict=True):
            for node, num_pods in Counter(positions).items():
                of_node = used.setdefault(node, Counter())
                for name, need in self.shapes[shape].request.items():
                    of_node[name] += need * num_pods
        return used

    def candidate_units(self, counts: Sequence[int], tier: int) -> IntArray:
        """Return the units of a tier that hold the pods of every shape and all running pods."""
        needs = [0] * len(self.shapes)
        for num_pods, shape_index in zip(counts, self.shape_of, strict=True):
            needs[shape_index] += num_pods
        shape_needs = list(zip(self.shapes, needs, strict=True))
        if any(shape.max_slots[tier] < need for shape, need in shape_needs):
            return NO_UNITS
        is_sufficient = self.shapes[0].slots_by_tier[tier] >= needs[0]
        for shape, need in shape_needs[1:]:
            is_sufficient &= shape.slots_by_tier[tier] >= need
        if self.own_pods.positions:
            # Positions are sorted, and a unit is a range: the first and the last node decide.
            unit_of, units = self.snapshot.levels.unit_of_node[tier], np.arange(len(is_sufficient))
            for node in (self.own_pods.positions[0], self.own_pods.positions[-1]):
                is_sufficient &= units == unit_of[node]
        return np.flatnonzero(is_sufficient)

    def indexed_slices(self, group: int, count: int) -> tuple[SlicePods, ...]:
        """Return the slices of this many new pods if they are cut by index, else nothing.

        If all pods are new, their order is enough, except for coarse layers with a short slice.
        """
        layers = self.request.groups[group].slices
        coarse = any(layer.is_indexed and layer.has_short for layer in layers[:-1])
        if not (coarse or (self.own_pods.positions and any(layer.is_indexed for layer in layers))):
            return ()
        return cut_slices(layers, self.own_pods.indexed[group], count)

    def split_group(self, group: int, count: int) -> list[tuple[int, tuple[int, ...]]]:
        """Return the parts of a group when `count` new pods are placed.

        Each part is its number of new pods, and the positions of its running pods.
        """
        slices = self.indexed_slices(group, count)
        if slices:
            return [(piece.size, piece.running_positions) for piece in innermost_slices(slices)]
        layers = self.request.groups[group].slices
        running = () if layers else self.own_pods.positions_of[group]
        size = layers[-1].size if layers else count
        whole, short = divmod(count, size) if count else (0, 0)
        return [(size, running)] * whole + ([(short, running)] if short else [])

    def running_in_set(self, set_index: int) -> list[int]:
        """Return the positions of the running pods of a set, sorted."""
        return sorted(
            node
            for group in self.request.groups_in_set(set_index)
            for node in self.own_pods.positions_of[group]
        )

    def group_cap(self, index: int) -> int:
        """Return the highest tier at which the pods of a group may lie."""
        required = self.request.groups[index].required
        return self.snapshot.levels.height_of(required) if required else self.root

    def slice_tier_of(self, group: int) -> int:
        """Return the tier that the slices of a group must stay within; 0 if there is none.

        A slice within this tier satisfies the request: placing it closer is not worth another
        domain.
        """
        layers = self.request.groups[group].slices
        return self.snapshot.levels.height_of(layers[-1].tier) if layers and layers[-1].tier else 0

    def preferred_tiers_of(self, group: int) -> tuple[int, ...]:
        """Return the preferred tiers of a group; those of a single group belong to the job."""
        if len(self.request.groups) == 1:
            return ()
        return tuple(
            self.snapshot.levels.height_of(tier) for tier in self.request.groups[group].preferred
        )


def build_problem(
    snapshot: Snapshot,
    request: PlacementRequest,
    evictable: EvictablePods | None = None,
    *,
    budget: Budget | None = None,
) -> Problem:
    """Resolve a request against a snapshot; O(shapes × resources × nodes).

    Args:
        snapshot: the cluster, without the pods that may be evicted.
        request: the request.
        evictable: the pods that may be evicted; None: no pods.
        budget: the budget of the query; unlimited by default.

    Raises:
        BudgetExhausted: the budget ended.
        UnknownTierError: the request names a tier that the tree lacks.
    """
    budget = budget or Budget()
    if request.limits_nodes:
        snapshot, request = limit_nodes(snapshot, request)
    job_cap, preferred = _job_cap(snapshot, request), _job_preferred(snapshot, request)
    strategies = _strategies(snapshot, request)
    node_weights = _build_node_weights(snapshot, request)
    sort_columns = _build_sort_columns(snapshot, request)
    own_pods = find_own_pods(snapshot, request)
    rules = build_rules(snapshot, request, is_growth=bool(own_pods.positions))
    shapes, shape_of = build_shapes(snapshot, request, budget)
    total_slots = [shape.total_slots for shape in shapes]
    return Problem(
        snapshot=snapshot,
        request=request,
        shapes=shapes,
        shape_of=shape_of,
        scarcest_shape=total_slots.index(min(total_slots)),
        job_cap=job_cap,
        preferred=preferred,
        own_pods=own_pods,
        rules=rules,
        strategies=strategies,
        traffic_pairs=traffic_pairs(request, shape_of),
        sort_columns=sort_columns,
        node_weights=node_weights,
        evictable=evictable,
        is_growth=bool(own_pods.positions),
        budget=budget,
    )


def without_running_pods(problem: Problem) -> Problem:
    """Return the problem as if no pod of the gang ran and slices began with the new pods.

    The new pods alone need not make up whole slices.
    """
    rows: tuple[tuple[()], ...] = ((),) * len(problem.request.groups)
    unit_rules = build_unit_rules(
        problem.snapshot, problem.request, is_growth=True, are_slices_whole=False
    )
    rules = problem.rules._replace(unit_rules=unit_rules, short_slice_rules=())
    return replace(problem, own_pods=OwnPods((), rows, rows), rules=rules)


def _job_cap(snapshot: Snapshot, request: PlacementRequest) -> int:
    """Return the highest tier of the job that its required tiers and islands allow.

    The trees of a forest share only the virtual root `cluster`: a job is placed across them only if
    the request allows it (docs/adr), or if the source of the tree does not show cables.
    """
    root = snapshot.levels.root
    named = {request.required, *(job for job, _ in request.strategies)}
    spans = request.across_islands or CLUSTER_TIER in named or not snapshot.tree.origin.has_islands
    caps = [root if spans else max(root - 1, 0)]
    single_group_tiers = [request.groups[0].required] if len(request.groups) == 1 else []
    tiers = filter(None, (request.required, *single_group_tiers))
    return min([*caps, *map(snapshot.levels.height_of, tiers)])


def _job_preferred(snapshot: Snapshot, request: PlacementRequest) -> tuple[int, ...]:
    """Return the preferred tiers of the job, including those of a single group."""
    single_group_tiers = request.groups[0].preferred if len(request.groups) == 1 else ()
    return tuple(map(snapshot.levels.height_of, (*request.preferred, *single_group_tiers)))


def _strategies(snapshot: Snapshot, request: PlacementRequest) -> tuple[tuple[int, int], ...]:
    root, height_of = snapshot.levels.root, snapshot.levels.height_of
    pairs = ((height_of(job), height_of(part)) for job, part in request.strategies)
    return tuple(pairs) or ((root, root),)


def _build_node_weights(snapshot: Snapshot, request: PlacementRequest) -> NodeWeights | None:
    """Return the node weights of a request; None if it has none or the preset ignores them."""
    weight_of_node = dict(request.options.node_weights)
    if not weight_of_node or all(
        term.key is not ObjectiveKey.NODE_WEIGHTS for term in PRESETS[request.preset].order
    ):
        return None
    weight_by_node = np.array(
        [weight_of_node.get(spec.name, 0) for spec in snapshot.specs], dtype=np.int64
    )
    distinct, weight_index = np.unique(-weight_by_node, return_inverse=True)
    return NodeWeights(tuple((-distinct).tolist()), weight_index)


def _build_sort_columns(
    snapshot: Snapshot, request: PlacementRequest
) -> tuple[tuple[IntArray, ...], ...]:
    """Return per rule and tier the values by which units are sorted.

    An unknown resource counts 0.
    """
    columns = []
    default = (DEFAULT_SORT_RULE,) if PRESETS[request.preset].always_sorts else ()
    for rule in request.sort or default:
        quantities = snapshot.quantities(rule.resource, counts_free=rule.counts_free)
        sign = -1 if rule.is_descending else 1
        sums = (sign * np.add.reduceat(quantities, starts) for starts in snapshot.levels.starts)
        columns.append(tuple(sums))
    return tuple(columns)
