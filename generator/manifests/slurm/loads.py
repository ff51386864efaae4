"""What a component takes of nodes, what these have free, and how many tasks and GPUs they hold.

A total of tasks or GPUs is cut into equal units: tasks, or GPUs with their share of the tasks. If
both are totals, slurmctld counts them on a node independently. The unit is then the one that nodes
run out of first, because the other one never limits the placement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from typing import Final, NamedTuple

from generator.manifests.slurm.component import MemoryBasis, NodeCount
from generator.manifests.slurm.demand import Demand
from generator.placement.cluster.nodes import PODS, NodeSpec

NVIDIA_GPU: Final = "nvidia.com/gpu"
SLOTS: Final = "slots"
_GPU_SUFFIXES: Final = ("/gpu", ".gpu")
_BARE_GPU: Final = "gpu"
_SOFT: Final = ":PreferNoSchedule"


class Load(NamedTuple):
    """What pods take of a node."""

    millicores: int = 0
    gpus: int = 0
    num_bytes: int = 0

    def joined(self, other: Load) -> Load:
        """Return the larger quantity of each resource."""
        return Load(*map(max, self, other))

    def beyond(self, other: Load) -> Load:
        """Return the quantities that are larger than those of another load."""
        return Load(*(own if own > theirs else 0 for own, theirs in zip(self, other, strict=True)))

    def count_in(self, free: Load) -> int | None:
        """Return how often this load fits free resources; None if the load takes nothing."""
        fits = [room // need for need, room in zip(self, free, strict=True) if need]
        return min(fits) if fits else None


UNLIMITED: Final = 1 << 62


class NodeCapacity(NamedTuple):
    """The nodes on which pods may be placed, and the resources that nodes list."""

    names: tuple[str, ...]
    """All nodes, usable or not."""
    free: Mapping[str, Load]
    """By usable node: a resource that no node lists is unlimited."""
    gpu: str | None
    """The resource that GPUs are; None if no node lists GPUs, nor several slots."""
    lists_cpus: bool
    lists_memory: bool
    limits_pods: bool
    """Whether nodes list how many pods they may run, which does not bind Slurm."""
    slots: tuple[int, int]
    """The fewest and the most slots of a node."""

    def distinct(self, excluded: frozenset[str]) -> Counter[Load]:
        """Return the number of usable nodes with each free amount, without the excluded nodes."""
        return Counter(free for name, free in self.free.items() if name not in excluded)


def build_node_capacity(specs: Iterable[NodeSpec], names: Iterable[str]) -> NodeCapacity:
    """Return the names of the nodes, and the free amounts of the usable ones.

    Args:
        specs: all listed nodes.
        names: the nodes of the tree.
    """
    listed = list(specs)
    resources = {name for spec in listed for name, quantity in spec.capacity.items() if quantity}
    slots = [spec.capacity.get(SLOTS, 1) for spec in listed] or [1]
    gpu = _find_gpu(resources, has_several_slots=max(slots) > 1)
    lists_cpus, lists_memory = "cpu" in resources, "memory" in resources

    def read_free(spec: NodeSpec) -> Load:
        free = spec.initial_free
        return Load(
            free.get("cpu", 0) if lists_cpus else UNLIMITED,
            free.get(gpu, 0) if gpu else UNLIMITED,
            free.get("memory", 0) if lists_memory else UNLIMITED,
        )

    return NodeCapacity(
        names=tuple(dict.fromkeys((*(spec.name for spec in listed), *names))),
        free={spec.name: read_free(spec) for spec in listed if _is_open(spec)},
        gpu=gpu,
        lists_cpus=lists_cpus,
        lists_memory=lists_memory,
        limits_pods=PODS in resources,
        slots=(min(slots), max(slots)),
    )


def _find_gpu(resources: set[str], *, has_several_slots: bool) -> str | None:
    """Return the resource that GPUs are: a device, or slots of nodes that list several of them."""
    if NVIDIA_GPU in resources:
        return NVIDIA_GPU
    devices = [name for name in resources if name.endswith(_GPU_SUFFIXES) or name == _BARE_GPU]
    if devices:
        return min(devices)
    if has_several_slots:
        return SLOTS
    return NVIDIA_GPU if resources - {SLOTS, PODS} else None


def _is_open(spec: NodeSpec) -> bool:
    return spec.exclusion is None and all(taint.endswith(_SOFT) for taint in spec.taints)


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
        """Store the demand of a component.

        Args:
            demand: the demand of the component.
            free: free amounts of the nodes it may use, each amount once; empty if unknown.
        """
        self._demand, self._free = demand, free

    def of_pods(self, tasks: Fraction, gpus: int) -> Load:
        """Return the load of these tasks and GPUs on one node."""
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
        """Return the load of one unit."""
        return self.of_pods(unit.tasks, unit.gpus)

    def of_each_node(self) -> Load:
        """Return the least load of each node of the component, whatever its share of a total.

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
        """Return the load of each node if this many nodes share the totals evenly."""
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
        """Return how many units a node holds; 0 if it lacks what each node must have at least."""
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
        """Return the fewest nodes that hold a total, if all nodes are as large as the largest."""
        largest = max((self.count_in(unit, free) for free in self._free), default=0)
        fewest = max(-(-unit.num_pods // max(largest, 1)), self._demand.nodes.least)
        return NodeCount(fewest, fewest)
