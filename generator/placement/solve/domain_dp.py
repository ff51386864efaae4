"""Share the pods of a job among the units of one domain: few units, with few slots left in them.

Exact: a dynamic program over the children of a unit. Costs are vectors, packed into integers. Of
equal shares, the one with more pods in earlier children is chosen. If the work exceeds the budget,
the children with the most slots are filled first, and the answer is not proved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from generator.placement.budget import Budget
from generator.placement.cluster.levels import BoolArray, IntArray, TreeLevels
from generator.placement.cluster.min_cover import (
    fewest_bins_candidates,
)

WORD_BITS = 60
"""Wider costs are Python integers in an object array: equally exact, but slower."""
OBJECT_SLOWDOWN = 50
"""Slowdown of numpy on Python integers against machine words, measured."""
MAX_CELLS = 1 << 20
"""Sums that are compared in one block."""
ADDITIONS_PER_STEP = 100
"""Elements that numpy adds and compares in the time of one search step."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds per unit, one array for every tier below that of the domain."""

    low: tuple[IntArray | None, ...]
    """Fewest pods; None: no unit of the tier must hold any."""
    high: tuple[IntArray, ...]
    slots: tuple[IntArray, ...]
    worst_tier: int
    """Units of this tier and above hold a multiple of `part_size` pods."""
    part_size: int

    def lower_bounds(self, tier: int, span: range) -> IntArray:
        """Return the fewest pods of each unit in a range."""
        low = self.low[tier]
        if low is None:
            return np.zeros(len(span), dtype=np.int64)
        return low[span.start : span.stop]


@dataclass(frozen=True, eq=False)
class NodeBounds:
    """The nodes of a tier-1 unit that may hold pods."""

    positions: IntArray
    low: IntArray
    high: IntArray
    slots: IntArray
    is_forced: BoolArray
    """Whether the bounds require that a node holds pods."""

    @classmethod
    def build(cls, span: range, bounds: Bounds) -> NodeBounds:
        """Return the nodes of a range that may hold pods."""
        kept = np.flatnonzero(bounds.high[0][span.start : span.stop]) + span.start
        low = bounds.lower_bounds(0, span)[kept - span.start]
        return cls(kept, low, bounds.high[0][kept], bounds.slots[0][kept], low > 0)

    @property
    def forced_pods(self) -> int:
        """Pods that the bounds require on nodes."""
        return int(self.low.sum())

    @property
    def spare_slots(self) -> int:
        """Further pods that the same nodes hold."""
        return int((self.high - self.low)[self.is_forced].sum())


@dataclass(frozen=True, eq=False)
class FillContext:
    """The context that all domains of a tier share."""

    levels: TreeLevels
    bounds: Bounds
    budget: Budget
    counts_fragmentation: bool
    """Whether slots left in used units are compared."""
    counts_islands: bool
    """Whether islands are compared."""


class DomainTables:
    """The tables of one domain: per unit the lowest cost of every number of pods."""

    def __init__(self, context: FillContext, tier: int, unit: int, num_pods: int) -> None:
        """Prepare the costs of units; no table is built yet."""
        self._levels, self._bounds = context.levels, context.bounds
        self._budget, self._num_pods = context.budget, num_pods
        self._unit_costs, self._slot_costs = [0] * tier, [0] * tier
        self._island_slot_cost = 0
        bits = num_pods.bit_length() + 1
        size = int(self._bounds.slots[tier][unit]).bit_length() + 1
        slot_bits = size if context.counts_fragmentation else 0
        for inner_tier in range(tier):
            self._unit_costs[inner_tier] = 1 << (slot_bits * tier + bits * inner_tier)
            self._slot_costs[inner_tier] = (
                1 << (slot_bits * (tier - 1 - inner_tier)) if context.counts_fragmentation else 0
            )
        total = (bits + slot_bits) * tier
        if context.counts_islands and tier == context.levels.root:
            self._island_slot_cost = self._unit_costs[tier - 1]
            self._unit_costs[tier - 1] <<= size
            total += size
        self._dtype: type = np.int64 if total < WORD_BITS else object
        slower = 1 if self._dtype is np.int64 else OBJECT_SLOWDOWN
        self._cells_per_step = ADDITIONS_PER_STEP // slower
        self._infinite_cost = 1 << max(total + 1, 1)
        self._costs: dict[bytes, IntArray] = {}
        self._sums: dict[bytes, list[IntArray]] = {}

    def pods_per_node(self, tier: int, unit: int, num_pods: int) -> dict[int, int]:
        """Return pods per node for pods in a unit; nodes without pods are left out."""
        if num_pods == 0:
            return {}
        if tier == 1:
            return self._pods_per_leaf_node(unit, num_pods)
        pods: dict[int, int] = {}
        children: Sequence[int] = self._levels.children(tier, unit)
        highs = self._bounds.high[tier - 1][children[0] : children[-1] + 1].tolist()
        if sum(highs) == num_pods:
            for child, high in zip(children, highs, strict=True):
                pods |= self.pods_per_node(tier - 1, child, high)
            return pods
        if num_pods == self._num_pods and self._bounds.low[tier - 1] is None:
            children, min_pods = self._useful_children(tier, unit, highs)
            suffix_costs = self._suffix_costs_of(tier - 1, children, min_pods)
        else:
            suffix_costs = self._suffix_costs(tier, unit)
        for index, child in enumerate(children):
            costs, later = self._unit_cost(tier - 1, child), suffix_costs[index + 1]
            first, last = max(0, num_pods - len(later) + 1), min(len(costs) - 1, num_pods)
            total = costs[first : last + 1] + later[num_pods - last : num_pods - first + 1][::-1]
            share = first + int(np.flatnonzero(total == suffix_costs[index][num_pods])[-1])
            pods |= self.pods_per_node(tier - 1, child, share)
            num_pods -= share
        return pods

    def _useful_children(self, tier: int, unit: int, highs: Sequence[int]) -> tuple[list[int], int]:
        """Return the children that may be among the fewest that hold all pods of the job.

        Also return the fewest pods that each of them holds if used. The number of used children is
        compared first, so the fewest children are used; of equal children, only the first ones
        matter.
        """
        children = self._levels.children(tier, unit)
        class_keys = [self._class_of(tier - 1, child) for child in children]
        kept, fewest = fewest_bins_candidates(highs, self._num_pods, class_keys)
        min_pods = self._num_pods - sum(sorted(highs, reverse=True)[: fewest - 1])
        return [children[index] for index in kept], min_pods

    def _suffix_costs(self, tier: int, unit: int) -> list[IntArray]:
        """Return per child the lowest cost of x pods in it and all later children."""
        class_key = self._class_of(tier, unit)
        if class_key not in self._sums:
            children = self._levels.children(tier, unit)
            self._sums[class_key] = self._suffix_costs_of(tier - 1, children, 1)
        return self._sums[class_key]

    def _suffix_costs_of(self, tier: int, units: Sequence[int], min_pods: int) -> list[IntArray]:
        """Return per unit the lowest cost of x pods in it and all later ones, as `_suffix_costs`.

        Each unit holds no pods or at least `min_pods`.
        """
        sums: list[IntArray] = [np.zeros(1, dtype=self._dtype)]
        for unit in reversed(units):
            sums.append(self._combine(self._unit_cost(tier, unit), sums[-1], min_pods))
        return sums[::-1]

    def _class_of(self, tier: int, unit: int) -> bytes:
        """Return a key that is equal for units with equal tables."""
        return bytes([tier]) + self._levels.content_key(self._bounds.slots[0], tier, unit)

    def _combine(self, unit_costs: IntArray, other_costs: IntArray, min_pods: int) -> IntArray:
        """Return the lowest cost of x pods in both, for every x up to all pods.

        Args:
            unit_costs: the costs of a unit.
            other_costs: the costs of all other units.
            min_pods: fewest pods of the unit if it holds any.
        """
        length = min(len(unit_costs) + len(other_costs) - 1, self._num_pods + 1)
        sums: IntArray = np.full(length, self._infinite_cost, dtype=self._dtype)
        sums[: len(other_costs)] = other_costs[:length] + unit_costs[0]
        used = unit_costs[min_pods:length]
        if not len(used):
            return np.minimum(sums, self._infinite_cost)
        self._budget.spend(1 + length * len(used) // self._cells_per_step)
        best = _min_plus_convolution(used, other_costs[: length - min_pods], self._infinite_cost)[
            : length - min_pods
        ]
        np.minimum(
            sums[min_pods : min_pods + len(best)], best, out=sums[min_pods : min_pods + len(best)]
        )
        return np.minimum(sums, self._infinite_cost)

    def _unit_cost(self, tier: int, unit: int) -> IntArray:
        """Return the lowest cost of x pods in a unit, for every x that it may hold."""
        class_key = self._class_of(tier, unit)
        if class_key not in self._costs:
            max_pods = min(int(self._bounds.high[tier][unit]), self._num_pods)
            inner_costs = (
                self._nodes_cost(unit, max_pods) if tier == 1 else self._suffix_costs(tier, unit)[0]
            )
            cost: IntArray = np.full(max_pods + 1, self._infinite_cost, dtype=self._dtype)
            inner_costs = inner_costs[: max_pods + 1]
            cost[: len(inner_costs)] = inner_costs
            slots = int(self._bounds.slots[tier][unit])
            cost[1:] += self._unit_costs[tier] + self._slot_costs[tier] * slots
            if tier == self._levels.root - 1:
                cost[1:] += self._island_slot_cost * slots
            if tier >= self._bounds.worst_tier:
                cost[np.arange(max_pods + 1) % self._bounds.part_size > 0] = self._infinite_cost
            low = self._bounds.low[tier]
            cost[: 0 if low is None else int(low[unit])] = self._infinite_cost
            self._costs[class_key] = np.minimum(cost, self._infinite_cost)
        return self._costs[class_key]

    def _nodes_cost(self, unit: int, max_pods: int) -> IntArray:
        """Return the lowest cost of x pods on the nodes of a tier-1 unit, for x up to `max_pods`.

        The cost of the unit itself is not included.
        """
        nodes = NodeBounds.build(self._levels.children(1, unit), self._bounds)
        cost: IntArray = np.full(max_pods + 1, self._infinite_cost, dtype=self._dtype)
        fixed = sum(self._node_cost(int(slots)) for slots in nodes.slots[nodes.is_forced])
        free = min(nodes.forced_pods + nodes.spare_slots, max_pods)
        cost[nodes.forced_pods : free + 1] = fixed
        if max_pods > free:
            values, slots = nodes.high[~nodes.is_forced], nodes.slots[~nodes.is_forced]
            cost[free + 1 :] = fixed + self._cover_costs(values, slots, max_pods - free)[1:]
        return cost

    def _node_cost(self, slots: int) -> int:
        return self._unit_costs[0] + self._slot_costs[0] * slots

    def _cover_costs(self, values: IntArray, slots: IntArray, max_pods: int) -> IntArray:
        """Return the lowest cost to hold y pods, for y from 0 to `max_pods`.

        Equal nodes are added in groups of one, two, four and so on: some of these make up any
        number.
        """
        table = self._empty_table(max_pods)
        for (value, node_slots), count in Counter(
            zip(values.tolist(), slots.tolist(), strict=True)
        ).items():
            remaining, group_size = min(count, -(-max_pods // value)), 1
            while remaining:
                group_size = min(group_size, remaining)
                table_with_nodes = self._shift(
                    table, group_size * value, group_size * self._node_cost(node_slots)
                )
                table = np.minimum(table, table_with_nodes)
                remaining, group_size = remaining - group_size, group_size * 2
        return table

    def _choices_per_node(
        self, values: IntArray, slots: IntArray, max_pods: int
    ) -> list[NDArray[np.uint8]]:
        """Return per node, one bit per y, whether it is used if it and later nodes hold y pods."""
        table, choices = self._empty_table(max_pods), list[NDArray[np.uint8]]()
        for value, node_slots in zip(values[::-1].tolist(), slots[::-1].tolist(), strict=True):
            table_with_node = self._shift(table, value, self._node_cost(node_slots))
            choices.append(np.packbits(table_with_node <= table))
            table = np.minimum(table, table_with_node)
        return choices[::-1]

    def _empty_table(self, max_pods: int) -> IntArray:
        """Return the cost to hold y pods on no nodes."""
        table: IntArray = np.full(max_pods + 1, self._infinite_cost, dtype=self._dtype)
        table[0] = 0
        return table

    def _shift(self, table: IntArray, num_pods: int, cost: int) -> IntArray:
        """Return the cost to hold y pods if nodes for `num_pods` of them are added."""
        self._budget.spend(1 + len(table) // self._cells_per_step)
        shifted = np.full_like(table, cost)
        shifted[0] = self._infinite_cost
        shifted[num_pods:] += table[: max(len(table) - num_pods, 0)]
        return shifted

    def _pods_per_leaf_node(self, unit: int, num_pods: int) -> dict[int, int]:
        """Return pods per node of a tier-1 unit: required nodes first, then the fewest others."""
        span = self._levels.children(1, unit)
        nodes = NodeBounds.build(span, self._bounds)
        pods = dict(zip(nodes.positions.tolist(), nodes.low.tolist(), strict=True))
        missing_pods = _fill_nodes(
            pods,
            nodes.positions[nodes.is_forced],
            nodes.high[nodes.is_forced],
            num_pods - nodes.forced_pods,
        )
        if missing_pods:
            chosen = self._choose_nodes(nodes, missing_pods)
            _fill_nodes(pods, nodes.positions[chosen], nodes.high[chosen], missing_pods)
        return {node: count for node, count in pods.items() if count}

    def _choose_nodes(self, nodes: NodeBounds, num_pods: int) -> IntArray:
        """Return the indices of further nodes that hold the pods at the lowest cost."""
        free = np.flatnonzero(~nodes.is_forced)
        values, slots = nodes.high[free], nodes.slots[free]
        if is_constant(values) and is_constant(slots):  # else a step per node of an empty leaf
            return free[: -(-num_pods // int(values[0]))]
        highs = values.tolist()
        classes = list(zip(highs, slots.tolist(), strict=True))
        candidates, _ = fewest_bins_candidates(highs, num_pods, classes)
        free, values, slots = free[candidates], values[candidates], slots[candidates]
        chosen: list[int] = []
        rows = zip(
            free.tolist(),
            values.tolist(),
            self._choices_per_node(values, slots, num_pods),
            strict=True,
        )
        for index, value, takes in rows:
            if num_pods and np.unpackbits(takes)[num_pods]:
                chosen.append(index)
                num_pods = max(num_pods - value, 0)
        return np.array(chosen, dtype=np.int64)


def _min_plus_convolution(first_costs: IntArray, second_costs: IntArray, infinite: int) -> IntArray:
    """Return the minimum of `first_costs[x] + second_costs[y - x]` for every y.

    Row x of an array holds `first_costs[x] + second_costs`, followed by one empty cell. Read as
    rows that are one cell shorter, each row is shifted x cells to the right.
    """
    best: IntArray = np.full(
        len(first_costs) + len(second_costs) - 1, infinite, dtype=first_costs.dtype
    )
    num_rows = max(MAX_CELLS // len(best), 1)
    for first in range(0, len(first_costs), num_rows):
        block = first_costs[first : first + num_rows]
        width = len(block) + len(second_costs)
        sums: IntArray = np.full((len(block), width), infinite, dtype=first_costs.dtype)
        np.add(block[:, np.newaxis], second_costs, out=sums[:, : len(second_costs)])
        shifted = sums.ravel()[: len(block) * (width - 1)].reshape(len(block), width - 1)
        window = best[first : first + width - 1]
        np.minimum(window, shifted.min(axis=0), out=window)
    return best


def is_constant(values: IntArray) -> bool:
    """Return whether there are values, and all are equal."""
    return bool(len(values)) and bool((values == values[0]).all())


def _fill_nodes(pods: dict[int, int], nodes: IntArray, highs: IntArray, num_pods: int) -> int:
    """Fill nodes in order; return the pods that are left over."""
    for node, high in zip(nodes.tolist(), highs.tolist(), strict=True):
        more = min(high - pods[node], num_pods)
        pods[node] += more
        num_pods -= more
    return num_pods
