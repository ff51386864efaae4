"""What a component of a job takes of nodes, and how many of its tasks and GPUs they hold.

A total of tasks or GPUs is cut into equal units: tasks, or GPUs with their share of the tasks. If
both are totals, slurmctld counts them on a node independently. The unit is then the one that nodes
run out of first, because the other one never limits the placement.
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from typing import Final, NamedTuple

from generator.manifests.slurm.component import MemoryBasis, NodeCount
from generator.manifests.slurm.demand import Demand
from generator.manifests.slurm.node_capacity import Load

MILLI: Final = 1000


class Unit(NamedTuple):
    """One of the equal pods into which a total is cut."""

    name: str
    """`task` or `GPU`."""
    num_pods: int
    tasks: Fraction
    gpus: int


class ComponentLoads:
    """The loads of one component, and how many of them nodes hold."""

    def __init__(self, demand: Demand, free: Collection[Load]) -> None:
        """Store what a component asks for.

        Args:
            demand: what it asks for.
            free: what the nodes that it may use have free, each amount once; empty if unknown.
        """
        self._demand, self._free = demand, free

    def of_pods(self, tasks: Fraction, gpus: int) -> Load:
        """Return what tasks and GPUs take on one node."""
        demand, memory = self._demand, self._demand.memory
        millicores = 0
        if demand.counts_tasks:
            millicores = int(tasks * (demand.cpus_per_task or 1) * MILLI)
        millicores = max(millicores, gpus * (demand.cpus_per_gpu or 0) * MILLI)
        num_bytes = 0
        if memory is not None and memory.basis is MemoryBasis.CPU:
            num_bytes = int((Fraction(millicores, MILLI) or tasks) * memory.num_bytes)
        elif memory is not None and memory.basis is MemoryBasis.GPU:
            num_bytes = gpus * memory.num_bytes
        return Load(millicores, gpus, num_bytes)

    def of_unit(self, unit: Unit) -> Load:
        """Return what one unit takes."""
        return self.of_pods(unit.tasks, unit.gpus)

    def of_each_node(self) -> Load:
        """Return what every node of the component has at least, whatever it holds of a total.

        CPUs per task are a minimum of each node, also if it holds no task.
        """
        demand, memory = self._demand, self._demand.memory
        tasks = Fraction(1 if demand.cpus_per_task else 0)
        if demand.tasks is None:
            tasks = Fraction(demand.tasks_per_node or 1)
        num_bytes = 0
        if memory is not None and memory.basis is MemoryBasis.NODE:
            num_bytes = memory.num_bytes
        elif memory is not None and memory.basis is MemoryBasis.CPU:
            num_bytes = memory.num_bytes * demand.min_cpus
        least = Load(demand.min_cpus * MILLI, 1 if demand.gpus is not None else 0, num_bytes)
        return self.of_pods(tasks, demand.gpus_per_node or 0).joined(least)

    def of_share(self, num_nodes: int) -> Load:
        """Return what each of this many nodes holds if totals are shared evenly."""
        demand = self._demand
        tasks = demand.tasks_per_node or 1
        if demand.tasks is not None:
            tasks = -(-demand.tasks // num_nodes)
        gpus = demand.gpus_per_node or (demand.gpus_per_task or 0) * tasks
        if demand.gpus is not None:
            gpus = -(-demand.gpus // num_nodes)
        return self.of_pods(Fraction(tasks), gpus).joined(self.of_each_node())

    def choose_units(self) -> tuple[Unit, ...]:
        """Return the unit of the totals; both units if nodes run out of different ones."""
        demand = self._demand
        tasks, gpus = demand.tasks, demand.gpus
        if gpus is None:
            return (Unit("task", tasks or 1, Fraction(1), demand.gpus_per_task or 0),)
        if tasks is None:
            return (Unit("GPU", gpus, Fraction(0), 1),)
        mixed = Unit("GPU", gpus, Fraction(tasks, gpus), 1)
        if demand.tasks_per_gpu is not None:
            return (mixed,)
        lone_task, lone_gpu = (
            Unit("task", tasks, Fraction(1), 0),
            Unit("GPU", gpus, Fraction(0), 1),
        )
        tasks_are_short = {
            self.count_in(lone_task, free) * gpus < self.count_in(lone_gpu, free) * tasks
            for free in self._free
            if self.count_in(lone_gpu, free)
        }
        if tasks_are_short == {True}:
            return (lone_task._replace(gpus=gpus // tasks),)
        return (lone_task, lone_gpu) if len(tasks_are_short) > 1 else (mixed,)

    def fits(self, load: Load, free: Load) -> bool:
        """Return whether free resources hold a load, and the minimum of every node."""
        wanted = load.joined(self.of_each_node())
        return all(need <= room for need, room in zip(wanted, free, strict=True))

    def count_in(self, unit: Unit, free: Load) -> int:
        """Return how many units a node holds; none if it lacks what every node must have."""
        load = self.of_unit(unit)
        if not self.fits(load, free):
            return 0
        limits = (load.count_in(free), self.most_tasks)
        return min((limit for limit in limits if limit is not None), default=unit.num_pods)

    @property
    def most_tasks(self) -> int | None:
        """The most tasks of a node: each takes one of the CPUs that its GPUs have."""
        demand = self._demand
        if demand.tasks is None or not (demand.cpus_per_gpu and demand.gpus_per_node):
            return None
        return demand.cpus_per_gpu * demand.gpus_per_node

    def may_share_evenly(self, units: tuple[Unit, ...], num_nodes: int) -> bool:
        """Return whether even shares fit this many nodes whenever any shares do.

        They do in two cases: each node that holds a unit holds an even share; or no node holds more
        than an even share, and every node must hold one.
        """
        shares = [-(-unit.num_pods // num_nodes) for unit in units]
        if self.most_tasks is not None and shares[0] > self.most_tasks:
            return False
        if num_nodes == 1 or not self._free:
            return True
        counts = [[self.count_in(unit, free) for unit in units] for free in self._free]
        load = self.of_share(num_nodes)
        usable = [row for row in zip(self._free, counts, strict=True) if all(row[1])]
        if all(load.count_in(free) for free, _ in usable):
            return True
        is_full = len(units) == 1 and shares[0] * num_nodes == units[0].num_pods
        return is_full and all(count[0] <= shares[0] for _, count in usable)

    def fewest_nodes(self, unit: Unit) -> NodeCount:
        """Return the fewest nodes that hold a total, if all are as large as the largest."""
        largest = max((self.count_in(unit, free) for free in self._free), default=0)
        fewest = max(-(-unit.num_pods // max(largest, 1)), self._demand.nodes.least)
        return NodeCount(fewest, fewest)
