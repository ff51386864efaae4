"""The groups of pods that a component of a job becomes, on given nodes.

A pod is a node's share of the component if all nodes have the same share. If only a total is given,
a pod is one of its tasks or GPUs, so that each node takes as many as it holds. A total over a given
number of nodes is shared evenly, unless the nodes show that uneven shares may fit better.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from generator.manifests.slurm.component import MemoryBasis, NodeCount
from generator.manifests.slurm.demand import Demand
from generator.manifests.slurm.loads import (
    MILLI,
    NVIDIA_GPU,
    SLOTS,
    ComponentLoads,
    Load,
    NodeCapacity,
    Unit,
)
from generator.placement.cluster.nodes import PODS
from generator.placement.quantities import render_quantity
from topology.model.errors import PlacementRequestError

GroupRow = dict[str, Any]
"""A group of a PlacementRequest."""
NODE_TIER: Final = "node"
_MAX_NESTED: Final = 6
"""Numbers of nodes without a common step; each one nests groups deeper."""


@dataclass(slots=True)
class ComponentSize:
    """The groups of one component."""

    groups: list[GroupRow]
    units: tuple[Unit, ...] = ()
    """The units for which one pod stands; empty if a pod is the share of a node."""
    most_nodes: int | None = None
    """The most nodes of all groups together; None if the groups bound them."""
    of_each_node: dict[str, int | str] = field(default_factory=dict)
    """The least load of each node, if a pod is a task or a GPU."""
    unlisted: list[str] = field(default_factory=list)
    """Resources of a pod that no node lists."""
    unchecked: list[str] = field(default_factory=list)
    """Options that the groups do not express."""


class ComponentSizer:
    """Divides one component of a job into groups."""

    def __init__(
        self, demand: Demand, name: str, capacity: NodeCapacity | None, segment: GroupRow | None
    ) -> None:
        """Store what decides the groups.

        Args:
            demand: the demand of the component; its mask has names of nodes.
            name: the name of the first group.
            capacity: the nodes; None if they are not known.
            segment: the slice layer of segments; then each pod is a node.
        """
        self._demand, self._name, self._capacity, self._segment = demand, name, capacity, segment
        self._excluded = (*demand.mask.excluded, *_find_too_small(demand, capacity))
        free = () if capacity is None else capacity.distinct(frozenset(self._excluded))
        self._loads = ComponentLoads(demand, free)
        self._size = ComponentSize([])

    def size(self) -> ComponentSize:
        """Return the groups.

        Raises:
            PlacementRequestError: there are too many numbers of nodes to choose from.
        """
        self._size.groups = deepcopy(self._build_groups())
        return self._size

    def _build_groups(self) -> list[GroupRow]:
        demand, nodes = self._demand, self._demand.nodes
        if demand.tasks is None and demand.gpus is None:
            return self._build_shares(nodes)
        units, is_segmented = self._loads.choose_units(), self._segment is not None
        if is_segmented and nodes.exact is None and self._capacity is not None:
            nodes = self._loads.fewest_nodes(units[0])
        if nodes.exact is not None and (
            is_segmented or self._loads.may_share_evenly(units, nodes.exact)
        ):
            return self._build_shares(nodes)
        return self._build_units(units)

    def _build_shares(self, nodes: NodeCount) -> list[GroupRow]:
        """Return the groups in which a pod is a node's share."""
        most = nodes.most or nodes.least
        load, slots = self._loads.of_share(most), 1
        if load == Load() and self._capacity is not None:  # a whole node
            slots = self._capacity.slots[0]
        request = self._render_request(load) or {SLOTS: slots}
        row: GroupRow = {"name": self._name, "count": most, "request": request}
        if most > 1:
            row["max_per_node"] = 1
        if self._segment is not None:
            row["slices"] = [self._segment]
        listed = self._demand.mask.listed
        if nodes.choices:
            if listed:
                self._size.unchecked.append("--nodelist")
            return [self._masked(group) for group in _choose_counts(row, nodes.choices)]
        if not listed or len(listed) == most:
            return [self._masked(_with_count(row, nodes.least, most), listed)]
        if self._segment is not None:
            self._size.unchecked.append("--segment")
        num_more, num_needed = most - len(listed), max(nodes.least - len(listed), 0)
        rest = row | {"name": f"{self._name}-more"}
        return [
            self._masked(_with_count(row, len(listed), len(listed)), listed),
            self._masked(_with_count(rest, num_needed, num_more), beside=listed),
        ]

    def _build_units(self, units: tuple[Unit, ...]) -> list[GroupRow]:
        """Return the groups in which a pod is a task or a GPU."""
        self._size.units, nodes = units, self._demand.nodes
        if nodes.choices:
            self._size.unchecked.append("--nodes")
        if self._segment is not None:
            self._size.unchecked.append("--segment")
        unfit = self._unfit_nodes(units)
        rows = [self._build_unit_row(unit) for unit in units]
        beyond = self._loads.of_each_node().beyond(_join(map(self._loads.of_unit, units)))
        self._size.of_each_node = self._render_request(beyond)
        listed, num_pods = self._demand.mask.listed, max(unit.num_pods for unit in units)
        most = min(nodes.most or num_pods, num_pods)
        if listed and len(listed) < most:
            if most < num_pods or nodes.least > len(listed):
                self._size.unchecked.append("--nodes")
            first = rows[0] | {"count": len(listed), "max_per_node": 1}
            rest = {"name": f"{first['name']}-more", "count": units[0].num_pods - len(listed)}
            rows[0] |= rest
            return [self._masked(first, listed), *(self._masked(row, beside=unfit) for row in rows)]
        if most < num_pods or nodes.least > 1:
            rows[-1]["spread"] = {NODE_TIER: {"min": nodes.least, "max": most}}
            self._size.most_nodes = most if len(units) > 1 else None
        return [self._masked(row, listed, beside=unfit) for row in rows]

    def _build_unit_row(self, unit: Unit) -> GroupRow:
        is_alone = self._name == "nodes"
        name = f"{unit.name.lower()}s" if is_alone else f"{self._name}-{unit.name.lower()}s"
        request = self._render_request(self._loads.of_unit(unit))
        if not request:
            self._size.unchecked.append("--gpus" if unit.name == "GPU" else "--ntasks")
            request[SLOTS] = 1
        if self._capacity is None or self._capacity.limits_pods:
            request[PODS] = 0
        row: GroupRow = {"name": name, "count": unit.num_pods, "request": request}
        most_tasks = self._loads.most_tasks
        return row if most_tasks is None else row | {"max_per_node": most_tasks}

    def _unfit_nodes(self, units: tuple[Unit, ...]) -> tuple[str, ...]:
        """Return the nodes that hold a unit, but lack what every node must have."""
        loads = [self._loads.of_unit(unit) for unit in units]
        joined = _join(loads)
        if self._loads.of_each_node().beyond(joined) == Load() and len(units) == 1:
            return ()
        if self._capacity is None:
            self._size.unchecked.extend(self._options_of_each_node())
            return ()
        return tuple(
            name
            for name, free in self._capacity.free.items()
            if any(load.count_in(free) != 0 for load in loads)
            and not any(self._loads.count_in(unit, free) for unit in units)
        )

    def _options_of_each_node(self) -> Iterator[str]:
        demand = self._demand
        if demand.gpus_per_node:
            yield "--gpus-per-node"
        if demand.memory is not None and demand.memory.basis is not MemoryBasis.CPU:
            yield demand.memory.basis
        if demand.min_cpus:
            yield "--mincpus"
        if demand.tasks is None and demand.counts_tasks:
            yield "--cpus-per-task"

    def _render_request(self, load: Load) -> dict[str, int | str]:
        """Return a load as a request for resources that nodes list."""
        capacity = self._capacity
        gpu = NVIDIA_GPU if capacity is None else capacity.gpu
        rows = (
            (gpu, "GPUs", load.gpus),
            ("cpu" if capacity is None or capacity.lists_cpus else None, "CPUs", load.millicores),
            (
                "memory" if capacity is None or capacity.lists_memory else None,
                "memory",
                load.num_bytes,
            ),
        )
        self._size.unlisted += [title for name, title, num in rows if num and name is None]
        return {name: render_quantity(name, num) for name, _, num in rows if num and name}

    def _masked(
        self, row: GroupRow, only: Sequence[str] = (), *, beside: Sequence[str] = ()
    ) -> GroupRow:
        """Return a group that is limited to these nodes, or to all nodes but the excluded ones."""
        if "children" in row:
            children = [self._masked(child, only, beside=beside) for child in row["children"]]
            return row | {"children": children}
        excluded = tuple(dict.fromkeys((*self._excluded, *beside)))
        requirements = [
            {"field": "metadata.name", "operator": operator, "values": list(names)}
            for operator, names in (("In", only), ("NotIn", excluded))
            if names
        ]
        return row | {"node_affinity": [requirements]} if requirements else row


def _join(loads: Iterator[Load] | Sequence[Load]) -> Load:
    joined = Load()
    for load in loads:
        joined = joined.joined(load)
    return joined


def _find_too_small(demand: Demand, capacity: NodeCapacity | None) -> tuple[str, ...]:
    """Return the nodes that an exclusive job cannot take whole.

    It takes all CPUs and GPUs of a node, so the node needs memory and CPUs for all of them.
    """
    if capacity is None or not demand.is_exclusive:
        return ()
    cpus_per_gpu = (demand.cpus_per_gpu or 0) if capacity.gpu and capacity.lists_cpus else 0
    per_cpu = per_gpu = 0
    if demand.memory is not None and capacity.lists_memory:
        basis, num_bytes = demand.memory.basis, demand.memory.num_bytes
        per_cpu = num_bytes if basis is MemoryBasis.CPU and capacity.lists_cpus else 0
        per_gpu = num_bytes if basis is MemoryBasis.GPU and capacity.gpu else 0
    return tuple(
        name
        for name, free in capacity.free.items()
        if free.gpus * cpus_per_gpu * MILLI > free.millicores
        or free.millicores * per_cpu > free.num_bytes * MILLI
        or free.gpus * per_gpu > free.num_bytes
    )


def _with_count(row: GroupRow, least: int, most: int) -> GroupRow:
    return row | {"count": most} | ({"min": least} if least < most else {})


def _choose_counts(row: GroupRow, choices: Sequence[int]) -> list[GroupRow]:
    """Return groups that have one of several numbers of pods together, the most if possible.

    Raises:
        PlacementRequestError: there are too many numbers without a common step.
    """
    steps = [after - before for before, after in pairwise(choices)]
    rest = row | {"name": f"{row['name']}-more"}
    groups = [row | {"count": choices[0]}]
    if len(set(steps)) == 1:
        layers = [{"size": steps[0]}, *row.get("slices", ())]
        return [*groups, rest | {"count": sum(steps), "min": 0, "slices": layers}]
    if len(steps) > _MAX_NESTED:
        problem = f"expected at most {_MAX_NESTED + 1} numbers, or numbers in equal steps"
        raise PlacementRequestError("--nodes", problem)
    inner: list[GroupRow] = []
    for number, step in reversed(list(enumerate(steps, 1))):
        name = f"{row['name']}-{number}"
        members = [row | {"name": name, "count": step}, *inner]
        both = {"name": f"{name}-and-more", "children": members}
        inner = [{"name": f"{name}-or-none", "min": 0, "children": [both]}]
    return [*groups, *inner]
