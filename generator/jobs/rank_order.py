"""The ranks of a running gang in the tree, and the order of ranks with the fewest crossings. Pure.

NCCL and MPI build their rings in the order of ranks and do not look at the network. Each pair of
neighbors in this order that is in different domains loads the links above both domains. A ring that
enters each domain only once has the fewest such pairs: as many as the gang has domains in a tier.
The order of the tree is such a ring in every tier. Trees and all-to-all have other best orders, and
this module says nothing about them.

A *world* is what one launcher numbers: the pods of one role, or of one group of a
LeaderWorkerSet. Ranks come from what the pods say, never from the names of nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from generator.jobs.cluster import SlotCluster, Tier
from generator.jobs.running_jobs import JobPod
from generator.objects.pod_ranks import RANK_VARIABLES, UNKNOWN_INDEX, UNRANKED, PodRank
from generator.objects.pods import BoundPod
from topology.model.errors import ConfigError
from topology.model.ids import natural_key
from topology.model.tree import TopologyTree

_LABELS: Final = "the indices of the pods"
_FIRST_ROLES: Final = ("master", "chief")
"""Roles of Kubeflow whose pod has rank 0 before the workers."""

Pod = TypeVar("Pod", bound=JobPod | BoundPod)


class RankedPods(NamedTuple, Generic[Pod]):
    """The pods of one world."""

    name: str
    pods: tuple[Pod, ...]
    """The pods in the order of their ranks; by name if the ranks are unknown."""
    source: str
    """Where the ranks come from, such as a label; empty if the ranks are unknown."""


class TierCrossings(NamedTuple):
    """How often a ring leaves a domain of one tier."""

    tier: str
    now: int
    """The crossings with today's ranks: neighbors in the ring that are in different domains."""
    fewest: int
    """The least for the same nodes, whatever the order is."""


class ParallelSizes(NamedTuple):
    """Sizes of the groups into which a framework splits its ranks, by kind of parallelism.

    Ranks of one tensor group are consecutive.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    expert: int = 1
    """Groups of so many data-parallel ranks, next to each other."""


class GroupCrossings(NamedTuple):
    """The rings of the groups of one kind of parallelism, in the lowest tier."""

    kind: str
    num_groups: int
    size: int
    now: int
    """Neighbors in the rings of all groups that are in different domains."""
    in_tree_order: int
    """The same, if the pods had ranks in the order of the tree."""


class RankAudit(NamedTuple, Generic[Pod]):
    """The ranks of one world in the tree."""

    world: RankedPods[Pod]
    tiers: tuple[TierCrossings, ...]
    """Lowest first; empty if the ranks are unknown."""
    order: tuple[Pod, ...]
    """The pods in the best order."""
    unknown_nodes: tuple[str, ...]
    """Nodes that are not in the tree; each counts as a domain of its own."""
    groups: tuple[GroupCrossings, ...] = ()

    @property
    def is_best(self) -> bool:
        """Whether no other order has fewer crossings in any tier."""
        return all(tier.now == tier.fewest for tier in self.tiers)


class TreePlaces:
    """The place of each node in a tree, for many audits."""

    def __init__(self, tree: TopologyTree) -> None:
        """Cost: O(nodes × tiers)."""
        self.positions: Mapping[str, int] = {name: at for at, name in enumerate(tree.nodes)}
        self.tiers = SlotCluster(tree, 1).tiers

    def sort_pods(self, pods: Iterable[Pod]) -> tuple[Pod, ...]:
        """Return pods in the order of the tree, those of a node as given; unknown nodes last."""
        last = len(self.positions)
        return tuple(
            sorted(
                pods, key=lambda pod: (self.positions.get(pod.node, last), natural_key(pod.node))
            )
        )

    def find_domains(self, tier: Tier, pods: Iterable[Pod]) -> list[tuple[int, str]]:
        """Return the domain of each pod; a node without one is a domain of its own."""
        at = self.positions
        domains = [
            (int(tier.domain_of[at[pod.node]]) if pod.node in at else -1, pod) for pod in pods
        ]
        return [(domain, "" if domain >= 0 else pod.node) for domain, pod in domains]


def list_worlds(pods: Iterable[Pod]) -> Iterator[RankedPods[Pod]]:
    """Yield the worlds of a job's pods by name; pods without a node are left out.

    The first role of Kubeflow and its workers are one world.
    """
    roles: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.node:
            roles.setdefault(pod.rank.role, []).append(pod)
    first = next((role for role in sorted(roles) if role.lower() in _FIRST_ROLES), None)
    worker = next((role for role in sorted(roles) if role.lower() == "worker"), None)
    if first is not None and worker is not None:
        roles[worker] = [*roles.pop(first), *roles[worker]]
    for role in sorted(roles, key=natural_key):
        yield _rank_pods(role, roles[role])


def _rank_pods(name: str, pods: Sequence[Pod]) -> RankedPods[Pod]:
    by_name = tuple(sorted(pods, key=lambda pod: natural_key(pod.name)))
    if len(pods) == 1:
        return RankedPods(name, by_name, "its only pod")
    if all(pod.rank.address for pod in pods):
        by_address = sorted(pods, key=lambda pod: pod.rank.address)
        return RankedPods(name, tuple(by_address), "the text order of host names, as torchrun's")
    values = [pod.rank.variables or (None,) * len(RANK_VARIABLES) for pod in pods]
    for variable, numbers in zip(RANK_VARIABLES, zip(*values, strict=True), strict=True):
        if len(set(numbers)) == len(pods) and None not in numbers:
            ranked = sorted(zip(numbers, pods, strict=True), key=lambda row: row[0] or 0)
            return RankedPods(name, tuple(pod for _, pod in ranked), f"the variable {variable}")
    ranks = [_order_by_role(pod.rank) for pod in pods]
    is_ranked = all(set(pod.rank.indices) - {UNKNOWN_INDEX} for pod in pods)
    # A row of --running may stand for several pods on one node.
    ranked_pods = {(rank, pod.name, pod.node) for rank, pod in zip(ranks, pods, strict=True)}
    if is_ranked and len(set(ranks)) == len(ranked_pods):
        ordered = sorted(zip(ranks, pods, strict=True), key=lambda row: row[0])
        return RankedPods(name, tuple(pod for _, pod in ordered), _LABELS)
    return RankedPods(name, by_name, "")


def _order_by_role(rank: PodRank) -> tuple[int, ...]:
    return (int(rank.role.lower() not in _FIRST_ROLES), *rank.indices)


def audit_ranks(
    places: TreePlaces,
    world: RankedPods[Pod],
    sizes: ParallelSizes | None = None,
    *,
    per_pod: int = 1,
) -> RankAudit[Pod]:
    """Compare the ranks of a world with the best order for its nodes; O(pods log pods).

    Args:
        places: where each node is in the tree.
        world: the world.
        sizes: how its processes are cut; None: not known.
        per_pod: processes of each pod.

    Raises:
        ConfigError: the sizes do not give the number of processes.
    """
    ordered = places.sort_pods(world.pods)
    domains = [
        [places.find_domains(tier, pods) for pods in (world.pods, ordered)] for tier in places.tiers
    ]
    crossings = tuple(
        TierCrossings(tier.name, *map(_count_ring, rows))
        for tier, rows in zip(places.tiers, domains, strict=True)
    )
    groups: tuple[GroupCrossings, ...] = ()
    if sizes is not None:
        of_processes = [[domain for domain in row for _ in range(per_pod)] for row in domains[0]]
        groups = tuple(_list_groups(sizes, *of_processes))
    unknown = tuple(sorted({pod.node for pod in world.pods} - places.positions.keys()))
    return RankAudit(world, crossings if world.source else (), ordered, unknown, groups)


def rank_hosts(names: Sequence[str]) -> RankedPods[JobPod]:
    """Return the world of a list of nodes, in its order."""
    pods = [JobPod("", name, name, UNRANKED, {}, frozenset(), {}) for name in names]
    return RankedPods("hosts", tuple(pods), "the order of the list")


def _count_ring(places: Sequence[object]) -> int:
    """Return how many neighbors in a ring differ; the last and the first are neighbors too."""
    return sum(place != places[index - 1] for index, place in enumerate(places))


def _list_groups(
    sizes: ParallelSizes, now: Sequence[object], best: Sequence[object]
) -> Iterator[GroupCrossings]:
    """Yield the crossings of each kind of group with several processes.

    Ranks count tensor, data and pipeline from the inside out, as Megatron-LM's default order does.
    """
    num = len(now)
    tensor, pipeline, data, expert = sizes
    if tensor * pipeline * data != num:
        raise ConfigError(
            f"tensor {tensor} x data {data} x pipeline {pipeline} is {tensor * pipeline * data}, "
            f"but the gang has {num} processes"
        )
    if data % expert:
        raise ConfigError(f"expert: expected a divisor of data {data}, got {expert}")
    steps = {
        "tensor": (tensor, 1),
        "data": (data, tensor),
        "expert": (expert, tensor),
        "pipeline": (pipeline, tensor * data),
    }
    for kind, (size, step) in steps.items():
        if size > 1:
            groups = [
                [*range(first + offset, first + offset + size * step, step)]
                for first in range(0, num, size * step)
                for offset in range(step)
            ]
            counts = [
                sum(_count_ring([places[rank] for rank in group]) for group in groups)
                for places in (now, best)
            ]
            yield GroupCrossings(kind, len(groups), size, *counts)
