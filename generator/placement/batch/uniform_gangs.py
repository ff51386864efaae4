"""Place plain gangs with equal requests by one rank per leaf, without a snapshot for each gang.

A plain gang is one group of equal pods that only tiers, and slices in a leaf, bound. For it the
rules of `optimal` need only a few comparisons: the lowest tier that fits, the fewest nodes, the
fewest slots in the domain and in those around it, the fewest slots left on the nodes used, the
first name. The answers equal those of the engine on the snapshot that the earlier gangs leave. The
engine serves any gang, but takes five times as long. With it, `PlaceBatch` would miss its goal:
three times the time of single calls.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from generator.placement.answer import NO_DETAILS, Placement
from generator.placement.batch.members import NO_GANG
from generator.placement.cluster.free_capacity import FreeCapacity, NodeUse
from generator.placement.cluster.gang_view import view_for
from generator.placement.cluster.levels import LEAF_TIER, IntArray, TreeLevels, units_with_min
from generator.placement.cluster.min_cover import choose_fewest_bins, fill_in_order
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.explain import find_refusal
from generator.placement.presets import Preset
from generator.placement.problem.constraints import has_allowed_counts, satisfies_rules
from generator.placement.problem.problem import Problem, build_problem
from generator.placement.problem.request_parts import build_parts
from generator.placement.request import PlacementRequest
from generator.placement.solve.homogeneous import cut_parts, is_solved_by_counting
from topology.model.errors import InvariantError

MIN_REPEATS = 4
"""A request that fewer gangs of a batch share gets no ranks."""
MAX_RANKED_REQUESTS = 32
"""Each takes one number per leaf."""
NODE_COUNT_OFFSET = 1 << 62
"""Added to a number of nodes, so that leaves with one sufficient node rank before all others."""
NO_FIT = int(np.iinfo(np.int64).max)


@dataclass(slots=True)
class _RankedLeaves:
    """How well each leaf holds the gangs that share a request: lower is better."""

    problem: Problem
    """The problem of one of the gangs, on the snapshot before the batch."""
    shape: int
    ranks: IntArray
    num_seen: int = 0
    """Changes of the free capacity that the ranks know."""

    @property
    def num_pods(self) -> int:
        """The number of pods of each gang."""
        return self.problem.request.groups[0].count

    @property
    def max_tier(self) -> int:
        """Highest tier in a domain of which the gang may lie."""
        return self.problem.job_cap


class UniformGangs:
    """The free capacity that placed gangs leave, as plain gangs need it."""

    def __init__(self, snapshot: Snapshot, requests: Sequence[PlacementRequest]) -> None:
        """Rank the leaves for repeated requests, before any gang is placed."""
        nominated = {nomination.gang for nomination in snapshot.nominated.values()}
        self._known = snapshot.running.keys() | nominated
        """Gangs with running or nominated pods, which see another cluster than equal requests."""
        priority = requests[0].priority if requests else 0
        self._view = view_for(snapshot, NO_GANG, priority)
        self._free = FreeCapacity(self._view)
        starts = self._free.levels.starts[LEAF_TIER]
        self._num_leaves = int(np.searchsorted(starts, snapshot.num_tree_nodes))
        """A node outside the tree is a leaf by itself; these are the last ones."""
        self._shape_indexes: dict[tuple[object, ...], int] = {}
        plain = [row for row in requests if row.gang not in self._known]
        examples = {row.cache_key: row for row in plain if row.priority == priority}
        counts = Counter(row.cache_key for row in plain)
        self._ranked = {}
        for key, count in counts.most_common(MAX_RANKED_REQUESTS):
            if count >= MIN_REPEATS and key in examples:
                ranked = self._rank_leaves(examples[key])
                if ranked:
                    self._ranked[key] = ranked

    def _rank_leaves(self, request: PlacementRequest) -> _RankedLeaves | None:
        view = self._view
        if not view.num_nodes or request.limits_nodes or find_refusal(view, request) is not None:
            return None
        problem = build_problem(view, request)
        if not _is_uniform_gang(problem):
            return None
        (shape,) = problem.shapes
        key = (tuple(sorted(shape.request.items())), shape.allowed.tobytes())
        if key not in self._shape_indexes:
            self._shape_indexes[key] = self._free.add_shape(shape)
        ranked = _RankedLeaves(problem, self._shape_indexes[key], np.empty(0, dtype=np.int64))
        leaves = range(len(self._free.levels.starts[LEAF_TIER]))
        ranked.ranks = np.array([self._rank(ranked, leaf) for leaf in leaves], dtype=np.int64)
        return ranked

    def place(self, request: PlacementRequest) -> Placement | None:
        """Place a gang on the best nodes, and return the answer without an explanation.

        None: nothing is placed, and the full engine must answer.
        """
        ranked = None if request.gang in self._known else self._ranked.get(request.cache_key)
        pods = None if ranked is None else self._best_pods(ranked)
        if ranked is None or pods is None:
            return None
        for node, count in pods.items():
            self._free.take(ranked.shape, node, count)
        nodes = tuple(node for node, count in pods.items() for _ in range(count))
        slices = request.groups[0].slices
        if slices and len(pods) > 1:
            parts = sorted(cut_parts(self._free.levels, pods, slices[-1].size))
            nodes = tuple(node for part in parts for node in part)
        self._require_allowed(ranked.problem, nodes)
        names = tuple([self._view.specs[node].name for node in nodes])
        tier = self._free.levels.common_tier(min(pods), max(pods))
        return Placement(
            is_feasible=True,
            assignment=MappingProxyType({request.groups[0].name: names}),
            tier=self._free.levels.tiers[tier],
            objective=NO_DETAILS,
            is_proved=True,
        )

    def _require_allowed(self, problem: Problem, nodes: Sequence[int]) -> None:
        """Check that a placement obeys its rules and that no node is overbooked.

        Raises:
            InvariantError: the placement breaks a rule, or overbooks a node.
        """
        need = self._free.pod_need(dict(problem.request.groups[0].request))
        is_overbooked = any(
            self._free.free_quantities(node)[row] < 0 for node in set(nodes) for row, _ in need
        )
        is_whole = has_allowed_counts(problem, [len(nodes)])
        if is_overbooked or not is_whole or not satisfies_rules(problem, [nodes]):
            raise InvariantError("the placement of a gang of a batch breaks a rule")

    def follow(self, before: Snapshot, after: Snapshot) -> None:
        """Apply what the full engine has changed to the free capacity."""
        if before is after or not self._ranked:
            return
        used = before.free - after.free
        for node in np.flatnonzero(used.any(axis=0)).tolist():
            self._free.change(NodeUse(node, tuple(enumerate(used[:, node].tolist())), 1))

    def _best_pods(self, ranked: _RankedLeaves) -> dict[int, int] | None:
        """Return the pods of a gang per node, in tree order; None if no leaf holds it."""
        levels, count = self._free.levels, ranked.num_pods
        leaf_of = levels.unit_of_node[LEAF_TIER]
        for leaf in {leaf_of.item(use.node) for use in self._free.changes[ranked.num_seen :]}:
            ranked.ranks[leaf] = self._rank(ranked, leaf)
        ranked.num_seen = len(self._free.changes)
        ranks = ranked.ranks[: self._num_leaves]
        if not len(ranks) or ranks.min() > NODE_COUNT_OFFSET:
            ranks = ranked.ranks  # no node of the tree holds the gang
        best = int(ranks.min())
        is_spread = best > NODE_COUNT_OFFSET
        if best == NO_FIT or (is_spread and ranked.max_tier < LEAF_TIER):
            return None
        leaves = tightest_units(
            levels,
            self._free.slots_by_tier(ranked.shape),
            LEAF_TIER,
            (ranks == best).nonzero()[0],
        )
        distinct: dict[tuple[int, ...], int] = {}
        for leaf in leaves.tolist() if is_spread else leaves[:1].tolist():
            distinct.setdefault(tuple(self._leaf_slots(ranked, leaf)), leaf)
        firsts = {slots: levels.starts[LEAF_TIER].item(leaf) for slots, leaf in distinct.items()}
        if not is_spread:
            ((slots, first),) = firsts.items()
            return {first + slots.index(best): count}
        return fill_tightest(((first, slots) for slots, first in firsts.items()), count)

    def _leaf_slots(self, ranked: _RankedLeaves, leaf: int) -> list[int]:
        levels = self._free.levels
        start, stop = levels.starts[LEAF_TIER].item(leaf), levels.stops[LEAF_TIER].item(leaf)
        slots: list[int] = self._free.slots_by_tier(ranked.shape)[0][start:stop].tolist()
        return slots

    def _rank(self, ranked: _RankedLeaves, leaf: int) -> int:
        """Return the slots of the tightest node that holds the gang, or the fewest nodes."""
        num_pods = ranked.num_pods
        if self._free.slots_by_tier(ranked.shape)[LEAF_TIER].item(leaf) < num_pods:
            return NO_FIT
        slots, total = sorted(self._leaf_slots(ranked, leaf)), 0
        if slots[-1] >= num_pods:
            return slots[bisect_left(slots, num_pods)]
        for num_nodes, node_slots in enumerate(reversed(slots), NODE_COUNT_OFFSET + 1):
            total += node_slots
            if total >= num_pods:
                return num_nodes
        return NO_FIT


def _is_uniform_gang(problem: Problem) -> bool:
    """Return whether only tiers bound the gang, apart from slices that may lie in a leaf.

    A slice that must lie on a node bounds more than the gang's own tier.
    """
    request = problem.request
    is_sorted = bool(request.sort or request.strategies) or problem.spares_islands
    if request.preset is not Preset.OPTIMAL or is_sorted or problem.root <= LEAF_TIER:
        return False
    parts = build_parts(problem, tuple(group.count for group in request.groups), problem.root)
    part_type, gang_tier = parts[0].part_type, min(problem.job_cap, LEAF_TIER)
    is_within_leaf = len(parts) == 1 or part_type.histogram_floor >= LEAF_TIER
    if not is_within_leaf or part_type.max_tier < gang_tier:
        return False
    return is_solved_by_counting(problem, parts)


def tightest_units(
    levels: TreeLevels, slots_by_tier: Sequence[IntArray], tier: int, units: IntArray
) -> IntArray:
    """Return the units with the fewest slots, then with the fewest around, nearest tier first."""
    units = units_with_min(units, slots_by_tier[tier][units])
    for outer in range(tier + 1, levels.root):
        if len(units) > 1:
            around = levels.unit_of_node[outer][levels.starts[tier][units]]
            units = units_with_min(units, slots_by_tier[outer][around])
    return units


def fill_tightest(
    units: Iterable[tuple[int, Sequence[int]]], num_pods: int
) -> dict[int, int] | None:
    """Return pods per child in the first unit where the fewest children leave the fewest slots.

    In tree order. None if the full engine must decide.

    Args:
        units: (first child, slots per child) of units that hold the pods.
        num_pods: pods of the gang.
    """
    best: dict[int, int] = {}
    least_left = -1
    for first, child_slots in units:
        chosen = choose_fewest_bins(child_slots, num_pods, is_tight=True)
        if chosen is None:
            return None
        num_left = sum([child_slots[index] for index in chosen]) - num_pods
        if not best or num_left < least_left:
            pods = fill_in_order(child_slots, chosen, num_pods)
            best, least_left = {first + index: count for index, count in pods.items()}, num_left
        if not num_left:
            break
    return best
