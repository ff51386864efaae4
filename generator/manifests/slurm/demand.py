"""What a component of a job asks for: nodes, tasks, CPUs, GPUs and memory, as sbatch joins them.

Options that give one number twice must agree, and some numbers follow from others. The rules are
those of src/sbatch/opt.c, src/common/slurm_opt.c and src/interfaces/gres.c of Slurm 25.11.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from generator.manifests.fields import Relevance
from generator.manifests.slurm.command_line import YES
from generator.manifests.slurm.component import (
    Component,
    Memory,
    NodeCount,
    build_error,
    parse_node_count,
    take_gpus,
    take_gres,
    take_memory,
    take_tres_per_task,
)
from topology.model.errors import PlacementRequestError


@dataclass(frozen=True, slots=True)
class NodeMask:
    """The nodes that a component may use, by the names that its options give."""

    listed: tuple[str, ...] = ()
    """The listed nodes, each of which is used."""
    excluded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Demand:
    """What a component asks for. Totals are of the whole component."""

    nodes: NodeCount
    tasks: int | None
    """None: `tasks_per_node` on each node."""
    tasks_per_node: int | None
    """None: one, or any number beside `tasks`."""
    gpus: int | None
    """None: `gpus_per_node`, or those of tasks."""
    gpus_per_node: int | None
    gpus_per_task: int | None
    tasks_per_gpu: int | None
    cpus_per_task: int | None
    """None: one, if tasks are counted."""
    cpus_per_gpu: int | None
    min_cpus: int
    """CPUs of each node, at least."""
    memory: Memory | None
    counts_tasks: bool
    """Whether an option is about tasks or their CPUs."""
    is_exclusive: bool
    mask: NodeMask = field(default_factory=NodeMask)


@dataclass(slots=True)
class _Numbers:
    """The numbers of the options, which the rules complete one after the other."""

    nodes: NodeCount | None
    tasks: int | None
    tasks_per_node: int | None
    cpus_per_task: int | None
    gpus: int | None
    gpus_per_node: int | None
    gpus_per_task: int | None
    tasks_per_gpu: int | None
    cpus_per_gpu: int | None
    are_nodes_of_gpus: bool = False
    """Whether the number of nodes follows from the GPUs; there may then be fewer tasks."""

    @property
    def exact_nodes(self) -> int | None:
        return None if self.nodes is None else self.nodes.exact


def resolve_demand(component: Component, mask: NodeMask) -> Demand:
    """Return the tasks, CPUs, GPUs and memory that a component asks for.

    Raises:
        PlacementRequestError: an option is malformed, or options contradict each other.
    """
    component.refuse_together("--cpus-per-task", "--cpus-per-gpu")
    component.refuse_together("--ntasks-per-gpu", "--gpus-per-task")
    component.refuse_together("--ntasks-per-gpu", "--gpus-per-socket")
    component.refuse_together("--ntasks-per-gpu", "--ntasks-per-node")
    component.refuse_together("--exclusive", "--oversubscribe")
    numbers = _read_numbers(component)
    counts_tasks = any(
        (numbers.tasks, numbers.tasks_per_node, numbers.tasks_per_gpu, numbers.cpus_per_task)
    )
    _drop_overcommitted(component, numbers)
    _derive_tasks_per_gpu(component, numbers)
    _require_gpus(component, numbers)
    _derive_nodes_of_gpus(numbers)
    _derive_gpus_per_task(numbers)
    _derive_nodes_of_tasks(numbers)
    _bound_nodes_by_gpus(numbers)
    nodes = _count_nodes(component, numbers, mask)
    demand = Demand(
        nodes=nodes,
        tasks=numbers.tasks,
        tasks_per_node=numbers.tasks_per_node,
        gpus=numbers.gpus,
        gpus_per_node=numbers.gpus_per_node,
        gpus_per_task=numbers.gpus_per_task,
        tasks_per_gpu=numbers.tasks_per_gpu,
        cpus_per_task=numbers.cpus_per_task,
        cpus_per_gpu=numbers.cpus_per_gpu,
        min_cpus=_take_min_cpus(component, numbers),
        memory=take_memory(component),
        counts_tasks=counts_tasks,
        is_exclusive=_take_exclusive(component),
        mask=replace(mask, listed=mask.listed[: nodes.most]),
    )
    return _fix_shares(demand)


def _read_numbers(component: Component) -> _Numbers:
    tres = take_tres_per_task(component)
    text = component.take("--nodes")
    gpus_per_node = take_gpus(component, "--gpus-per-node")
    gres = take_gres(component)
    if gpus_per_node is not None and gres is not None:
        component.ignore(f"--gres={component.values['--gres']}: beside --gpus-per-node")
    numbers = _Numbers(
        nodes=None if text is None else parse_node_count("--nodes", text),
        tasks=component.take_number("--ntasks"),
        tasks_per_node=component.take_number("--ntasks-per-node"),
        cpus_per_task=_agree(
            "--cpus-per-task", component.take_number("--cpus-per-task"), tres.get("cpu")
        ),
        gpus=take_gpus(component, "--gpus") or None,
        gpus_per_node=(gres if gpus_per_node is None else gpus_per_node) or None,
        gpus_per_task=_agree(
            "--gpus-per-task", take_gpus(component, "--gpus-per-task"), tres.get("gpu")
        )
        or None,
        tasks_per_gpu=component.take_number("--ntasks-per-gpu"),
        cpus_per_gpu=component.take_number("--cpus-per-gpu"),
    )
    _add_gpus_per_socket(component, numbers)
    return numbers


def _agree(name: str, given: int | None, derived: int | None) -> int | None:
    """Return the number that two options give, or that only one of them gives.

    Raises:
        PlacementRequestError: they differ.
    """
    if given is None or derived is None or given == derived:
        return derived if given is None else given
    raise PlacementRequestError(name, f"expected {derived}, which follows from the other options")


def _add_gpus_per_socket(component: Component, numbers: _Numbers) -> None:
    per_socket = take_gpus(component, "--gpus-per-socket")
    sockets = component.take_number("--sockets-per-node")
    if component.has("--sockets-per-node"):
        component.ignore(f"--sockets-per-node={component.values['--sockets-per-node']}")
    if not per_socket:
        return
    if sockets is None and numbers.gpus_per_node is None:
        raise PlacementRequestError("--gpus-per-socket", "expected --sockets-per-node beside it")
    if sockets is not None:
        numbers.gpus_per_node = _agree(
            "--gpus-per-node", numbers.gpus_per_node, per_socket * sockets
        )
    component.ignore(f"--gpus-per-socket={component.values['--gpus-per-socket']}: the sockets")


def _drop_overcommitted(component: Component, numbers: _Numbers) -> None:
    """With --overcommit, count one task a node."""
    if not component.take_flag("--overcommit"):
        return
    component.note("--overcommit", "the resources of one task on each node, however many tasks")
    if numbers.cpus_per_task is not None:
        component.ignore("--overcommit: with CPUs per task, Slurm may count all tasks")
    if numbers.nodes is None and numbers.tasks_per_node and numbers.tasks:
        numbers.nodes = NodeCount(-(-numbers.tasks // numbers.tasks_per_node))
    numbers.tasks = numbers.tasks_per_node = None


def _derive_tasks_per_gpu(component: Component, numbers: _Numbers) -> None:
    """Derive tasks from GPUs, whatever --ntasks says; without GPUs, derive GPUs from tasks."""
    per_gpu, num_nodes = numbers.tasks_per_gpu, numbers.exact_nodes
    if per_gpu is None:
        return
    gpus = numbers.gpus or numbers.gpus_per_node
    if gpus and numbers.tasks is not None:
        component.note("--ntasks", "as many as --ntasks-per-gpu and the GPUs give")
        numbers.tasks = None
    if numbers.gpus is not None:
        numbers.tasks = numbers.gpus * per_gpu
    elif numbers.gpus_per_node is not None:
        numbers.tasks_per_node = numbers.gpus_per_node * per_gpu
    elif numbers.tasks is not None:
        numbers.gpus, rest = divmod(numbers.tasks, per_gpu)
        if rest or not numbers.gpus:
            raise PlacementRequestError("--ntasks", f"expected a multiple of {per_gpu}, per GPU")
    elif num_nodes is not None:
        numbers.gpus_per_node, numbers.tasks_per_node = 1, per_gpu
    else:
        raise PlacementRequestError("--ntasks-per-gpu", "expected tasks, GPUs or nodes beside it")


def _derive_gpus_per_task(numbers: _Numbers) -> None:
    per_task = numbers.gpus_per_task
    if per_task is None:
        return
    num_nodes = None if numbers.are_nodes_of_gpus else numbers.exact_nodes
    is_counted = numbers.tasks_per_node is not None or numbers.cpus_per_task is None
    if numbers.tasks is None and num_nodes is not None and is_counted:
        numbers.tasks = num_nodes * (numbers.tasks_per_node or 1)
    if numbers.gpus is not None:
        if numbers.gpus % per_task:
            raise PlacementRequestError("--gpus", f"expected a multiple of {per_task} per task")
        numbers.tasks = _agree("--ntasks", numbers.tasks, numbers.gpus // per_task)
        numbers.gpus = None
    if numbers.gpus_per_node is not None:
        if numbers.gpus_per_node % per_task:
            raise PlacementRequestError(
                "--gpus-per-node", f"expected a multiple of {per_task} per task"
            )
        numbers.tasks_per_node = _agree(
            "--ntasks-per-node", numbers.tasks_per_node, numbers.gpus_per_node // per_task
        )
    if numbers.tasks is None:
        raise PlacementRequestError("--gpus-per-task", "expected --ntasks or --gpus beside it")


def _derive_nodes_of_gpus(numbers: _Numbers) -> None:
    if numbers.gpus is None or numbers.gpus_per_node is None:
        return
    num_nodes, rest = divmod(numbers.gpus, numbers.gpus_per_node)
    if rest:
        problem = f"expected a multiple of {numbers.gpus_per_node}, the GPUs of each node"
        raise PlacementRequestError("--gpus", problem)
    wanted = numbers.nodes or NodeCount(1)
    if not wanted.least <= num_nodes <= (wanted.most or num_nodes):
        raise PlacementRequestError("--nodes", f"expected {num_nodes}, which the GPUs need")
    numbers.nodes = NodeCount(num_nodes, num_nodes)
    numbers.are_nodes_of_gpus = True
    if numbers.gpus_per_task is None:
        numbers.gpus = None


def _derive_nodes_of_tasks(numbers: _Numbers) -> None:
    """Give each node all tasks of a node: slurmctld counts as many, even where fewer are left.

    Raises:
        PlacementRequestError: the nodes have room for fewer tasks.
    """
    tasks, per_node = numbers.tasks, numbers.tasks_per_node
    if tasks is None or per_node is None:
        return
    fewest = -(-tasks // per_node)
    wanted = numbers.nodes
    if wanted is None:
        numbers.nodes = NodeCount(fewest)
    elif wanted.most is not None and wanted.most < fewest:
        raise PlacementRequestError(
            "--ntasks", f"expected at most {wanted.most * per_node}: {per_node} on each node"
        )
    else:
        numbers.nodes = wanted.at_least(fewest).at_most(tasks)
    numbers.tasks = None


def _bound_nodes_by_gpus(numbers: _Numbers) -> None:
    """Give each node at least one GPU of the total.

    Raises:
        PlacementRequestError: there are fewer GPUs than nodes.
    """
    gpus, nodes = numbers.gpus, numbers.nodes
    if gpus is None or nodes is None:
        return
    if gpus < nodes.least:
        raise PlacementRequestError("--gpus", f"expected at least {nodes.least}, one for each node")
    numbers.nodes = nodes.at_most(gpus)


def _require_gpus(component: Component, numbers: _Numbers) -> None:
    """Refuse options that set a number per GPU if no GPU is requested."""
    if numbers.gpus or numbers.gpus_per_node or numbers.gpus_per_task:
        return
    for name in ("--cpus-per-gpu", "--mem-per-gpu"):
        if component.has(name):
            raise PlacementRequestError(name, "expected GPUs beside it")


def _count_nodes(component: Component, numbers: _Numbers, mask: NodeMask) -> NodeCount:
    """Return the number of nodes: as requested, else as tasks, GPUs and listed nodes need."""
    nodes, tasks, num_listed = numbers.nodes, numbers.tasks, len(mask.listed)
    has_total = tasks is not None or numbers.gpus is not None
    if num_listed and not component.has("--nodes"):
        nodes = (nodes or NodeCount(num_listed)).at_least(num_listed)
    if nodes is not None and tasks is not None and not numbers.are_nodes_of_gpus:
        if tasks < nodes.least and not component.has("--ntasks"):
            raise PlacementRequestError("--nodes", f"expected at most {tasks}, one for each task")
        if tasks < nodes.least:
            component.note("--nodes", f"{tasks}, as many as tasks")
            nodes = NodeCount(tasks, tasks)
        nodes = nodes.at_most(tasks)
    if nodes is None:
        nodes = NodeCount(1, tasks if numbers.gpus is None else None)
    if nodes.most is None and not has_total:
        nodes = NodeCount(nodes.least, nodes.least)
    if component.take_flag("--use-min-nodes"):
        if has_total or nodes.exact is not None:
            component.ignore("--use-min-nodes", Relevance.NONE)
        else:
            nodes = NodeCount(nodes.least, nodes.least)
    if nodes.most is not None and nodes.most < num_listed:
        component.note("--nodelist", f"the first {nodes.most} of {num_listed} nodes")
    return nodes


def _take_min_cpus(component: Component, numbers: _Numbers) -> int:
    """Return the fewest CPUs of each node. slurmctld gives tasks of a node no more than theirs."""
    number = component.take_number("--mincpus", 0) or 0
    has_gpus = any((numbers.gpus, numbers.gpus_per_node, numbers.gpus_per_task))
    others = (numbers.tasks_per_node, numbers.cpus_per_task, numbers.cpus_per_gpu)
    if number and (any(others) or (has_gpus and numbers.tasks)):
        component.ignore(f"--mincpus={number}: beside other CPUs")
    return number


def _take_exclusive(component: Component) -> bool:
    value = component.take("--exclusive")
    if value is None or value in (YES, "exclusive"):
        return value is not None
    if value not in ("user", "mcs", "topo", "oversubscribe"):
        raise build_error("--exclusive", value, "expected user, mcs or topo")
    component.ignore(f"--exclusive={value}")
    return False


def _fix_shares(demand: Demand) -> Demand:
    """Return the demand with tasks per node instead of a total that leaves no choice."""
    if demand.tasks is None or demand.nodes.exact not in (1, demand.tasks):
        return demand
    return replace(demand, tasks=None, tasks_per_node=demand.tasks // demand.nodes.exact)
