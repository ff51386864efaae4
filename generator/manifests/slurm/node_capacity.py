"""What the nodes of a cluster have free for a job of Slurm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

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
        return Load(*(own if own > one else 0 for own, one in zip(self, other, strict=True)))

    def count_in(self, free: Load) -> int | None:
        """Return how many such loads fit; None if it takes nothing."""
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
        """Return how many usable nodes have what free, without some nodes."""
        return Counter(free for name, free in self.free.items() if name not in excluded)


def build_node_capacity(specs: Iterable[NodeSpec], names: Iterable[str]) -> NodeCapacity:
    """Return what nodes have free.

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
