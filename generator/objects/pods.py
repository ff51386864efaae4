"""Running pods: what they use, the gangs and the nodes they run on, which agents are ready. Pure.

A pod uses what the scheduler counts: the sum of its containers' requests, or the peak of its init
containers if that is higher. Requests at pod level replace both, and the overhead of the runtime
is added. Source: k8s.io/component-helpers, resource/helpers.go.

A gang is recognised by the labels and annotations that schedulers and batch systems put on its
pods, else by the controller of the pods. Their own object kinds are not read, since they may be
absent. Pods of a Deployment, StatefulSet or DaemonSet work independently and are not a gang.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from generator.objects.document import condition_of, mapping_at, rows_at
from generator.objects.inventory import SLOTS, Inventory, ListedNode
from generator.objects.pod_ranks import UNRANKED, PodRank, parse_pod_rank
from generator.placement.cluster.nodes import PODS
from generator.placement.quantities import count_units, parse_amount
from topology.model.errors import ConfigError, show
from topology.reports.observed_time import parse_observed_at

ENDED_PHASES: Final = frozenset({"Succeeded", "Failed"})
Amounts = dict[str, Decimal]
Units = Mapping[str, int]
_NO_UNITS: Final[Units] = MappingProxyType({})


def has_ended(pod: object) -> bool:
    """Return whether a decoded Pod has ended, so that it needs no node any more."""
    return mapping_at(pod, "status").get("phase") in ENDED_PHASES


class PodUsage(NamedTuple):
    """The resources that one pod uses on its node."""

    node: str
    units: Units
    """By resource, rounded up to units of `quantities`; pods with devices use one slot each."""


def parse_pod_usage(pod: Mapping[str, Any]) -> PodUsage | None:
    """Return the resources that a decoded Pod uses; None if it has no node or has ended.

    Raises:
        ConfigError: a field that is read is malformed.
    """
    spec = mapping_at(pod, "spec")
    node = spec.get("nodeName")
    if not isinstance(node, str) or not node or has_ended(pod):
        return None
    request = _compute_pod_request(spec)
    units = {name: count_units(name, amount) for name, amount in request.items()}
    units[PODS] = 1
    if any("/" in name and num for name, num in units.items()):
        # A slot is a job's share of a node. Pods without devices, such as those of DaemonSets,
        # use none.
        units[SLOTS] = 1
    return PodUsage(node, _intern_units(tuple(sorted(units.items()))))


@lru_cache(maxsize=4096)
def _intern_units(units: tuple[tuple[str, int], ...]) -> Units:
    """Return one shared mapping for equal units: most pods of a cluster are alike."""
    return dict(units)


class _NodeUsage(NamedTuple):
    """The usage and the free capacity of one node."""

    node: ListedNode
    used: Units
    free_node: ListedNode
    """The node with its free capacity."""


class FreeInventory:
    """Computes the free capacity of nodes; nodes whose usage did not change are not recomputed."""

    def __init__(self) -> None:
        """Start empty."""
        self._known: dict[str, _NodeUsage] = {}
        self._last_inventory: Inventory | None = None

    def subtract(self, inventory: Inventory, usages: Iterable[PodUsage | None]) -> Inventory:
        """Return the inventory with the capacity that pods leave free, clamped at zero.

        An unchanged result is the identical object. Cost: O(pods + nodes), and O(resources) for
        each node that changed.
        """
        used: dict[str, Counter[str]] = {}
        for usage in usages:
            if usage is not None:
                used.setdefault(usage.node, Counter()).update(usage.units)
        previous = self._known
        node_usages = [
            _compute_free(node, used.get(node.name, _NO_UNITS), previous.get(node.name))
            for node in inventory.nodes
        ]
        self._known = {node_usage.node.name: node_usage for node_usage in node_usages}
        free = inventory._replace(nodes=tuple(node_usage.free_node for node_usage in node_usages))
        if self._last_inventory != free:
            self._last_inventory = free
        return self._last_inventory


def subtract_usage(inventory: Inventory, usages: Iterable[PodUsage | None]) -> Inventory:
    """Return the inventory with its free capacity, as `FreeInventory` does, for one call."""
    return FreeInventory().subtract(inventory, usages)


def _compute_free(node: ListedNode, used: Units, last: _NodeUsage | None) -> _NodeUsage:
    if last is not None and last.node is node and last.used == used:
        return last
    return _NodeUsage(node, used, _subtract_units(node, used))


def _subtract_units(node: ListedNode, used: Units) -> ListedNode:
    free = {name: max(0, num - used.get(name, 0)) for name, num in node.spec.initial_free.items()}
    return replace(node, spec=replace(node.spec, free=free))


def _compute_pod_request(spec: Mapping[str, Any]) -> Amounts:
    init = rows_at(spec, "initContainers")
    return combine_requests(
        map(_parse_container_request, rows_at(spec, "containers")),
        [(_parse_container_request(row), row.get("restartPolicy") == "Always") for row in init],
        pod=_parse_container_request(spec),
        overhead=_parse_amounts(mapping_at(spec, "overhead")),
    )


def combine_requests(
    containers: Iterable[Amounts],
    init_containers: Iterable[tuple[Amounts, bool]],
    *,
    pod: Amounts,
    overhead: Amounts,
) -> Amounts:
    """Return the amounts that the scheduler counts for a pod.

    Args:
        containers: the requests of each.
        init_containers: the requests of each, and whether it is a sidecar, which keeps running.
        pod: the requests at pod level, which replace those of containers.
        overhead: the amounts that the container runtime adds to each pod.
    """
    sidecars: Amounts = {}
    peak: Amounts = {}
    for request, is_sidecar in init_containers:
        at_once = _sum_amounts((sidecars, request))
        sidecars = at_once if is_sidecar else sidecars
        peak = _find_peak(peak, at_once)
    total = _find_peak(_sum_amounts((*containers, sidecars)), peak)
    return _sum_amounts((total | pod, overhead))


def _parse_container_request(holder: Mapping[str, Any]) -> Amounts:
    return _parse_amounts(mapping_at(holder, "resources", "requests"))


def _parse_amounts(quantities: Mapping[str, Any]) -> Amounts:
    try:
        return {str(name): parse_amount(value) for name, value in quantities.items()}
    except ValueError as error:
        raise ConfigError(f"requests: {show(str(error))}") from error


def _sum_amounts(rows: Iterable[Mapping[str, Decimal]]) -> Amounts:
    total: Amounts = {}
    for row in rows:
        for name, amount in row.items():
            total[name] = total.get(name, Decimal(0)) + amount
    return total


def _find_peak(first: Amounts, second: Amounts) -> Amounts:
    zero = Decimal(0)
    return {name: max(first.get(name, zero), second.get(name, zero)) for name in first | second}


class BoundPod(NamedTuple):
    """A pod of a gang that has a node and has not ended."""

    gang: str
    """`NAMESPACE/NAME`."""
    node: str
    bound_at: datetime | None
    """When the pod was bound to the node; None: unknown."""
    requests: Mapping[str, int]
    """The resources that it uses there, in units of `quantities`."""
    name: str = ""
    rank: PodRank = UNRANKED


class Gang(NamedTuple):
    """Pods that run together, on more than one node."""

    name: str
    """`NAMESPACE/NAME` of its group."""
    nodes: frozenset[str]


GANG_KEYS: Final = (
    "scheduling.k8s.io/group-name",  # Volcano, on every pod that it schedules
    "pod-group.scheduling.sigs.k8s.io",
    "scheduling.x-k8s.io/pod-group",  # coscheduling
    "kueue.x-k8s.io/pod-group-name",
    "pod-group-name",  # KAI
)
"""Annotations or labels with the name of the pod's group, in the pod's namespace."""
_INDEPENDENT_OWNER_GROUPS: Final = frozenset({"apps", "v1"})
"""API groups of owners whose pods are not a gang; `v1` is for a static pod's Node."""
_NAME: Final = "app.kubernetes.io/name"
_COMPONENT: Final = "app.kubernetes.io/component"


class RunningPod(NamedTuple):
    """A pod of a gang, or of a Toponaut agent."""

    node: str
    gang: str = ""
    """`NAMESPACE/NAME`, empty if it is in no gang."""
    agent_namespace: str = ""
    """The namespace of a pod with the labels of a Toponaut agent; empty for other pods."""
    is_ready: bool = True
    """The Ready condition of an agent; always True for other pods."""


class FollowedPod(NamedTuple):
    """The facts about a pod that is on a node and has not ended."""

    running: RunningPod | None
    """The running pod; None if it does not run yet, or is neither in a gang nor an agent."""
    resource_usage: PodUsage | None
    bound: BoundPod | None = None
    """The bound pod of a gang; None if the pod is in no gang."""


def parse_followed_pod(pod: Mapping[str, Any]) -> FollowedPod | None:
    """Return the facts about a decoded Pod, None if it has no node or has ended.

    Raises:
        ConfigError: its requests are malformed.
    """
    usage = parse_pod_usage(pod)
    if usage is None:
        return None
    is_running = mapping_at(pod, "status").get("phase") == "Running"
    running = parse_gang_pod(pod)
    bound = None
    if running is not None and running.gang:
        bound = BoundPod(
            *(running.gang, running.node, _parse_bound_at(pod), usage.units),
            name=str(mapping_at(pod, "metadata").get("name")),
            rank=parse_pod_rank(pod),
        )
    return FollowedPod(running if is_running else None, usage, bound)


def parse_bound_pod(pod: Mapping[str, Any]) -> BoundPod | None:
    """Return a decoded Pod as a bound pod of a gang; None for any other pod.

    Raises:
        ConfigError: its requests are malformed.
    """
    followed = parse_followed_pod(pod)
    return None if followed is None else followed.bound


def parse_gang_pod(pod: Mapping[str, Any]) -> RunningPod | None:
    """Return a decoded Pod if it is in a gang or is an agent, else None."""
    metadata, spec = mapping_at(pod, "metadata"), mapping_at(pod, "spec")
    node = spec.get("nodeName")
    if not isinstance(node, str) or not node:
        return None
    labels, namespace = mapping_at(metadata, "labels"), str(metadata.get("namespace"))
    group = _find_gang_name(metadata) or _find_controller(metadata)
    gang = f"{namespace}/{group}" if group else ""
    if (labels.get(_NAME), labels.get(_COMPONENT)) == ("toponaut", "agent"):
        is_ready = condition_of(pod, "Ready").get("status") == "True"
        return RunningPod(node, gang, agent_namespace=namespace, is_ready=is_ready)
    return RunningPod(node, gang) if gang else None


def find_gangs(pods: Iterable[RunningPod]) -> tuple[Gang, ...]:
    """Return the gangs that run on two nodes or more, sorted by name. Cost: O(pods)."""
    nodes = list_gang_nodes(pods)
    return tuple(
        Gang(name, frozenset(nodes[name])) for name in sorted(nodes) if len(nodes[name]) > 1
    )


def list_gang_nodes(pods: Iterable[RunningPod | BoundPod]) -> dict[str, set[str]]:
    """Return the nodes of each gang."""
    nodes: dict[str, set[str]] = defaultdict(set)
    for pod in pods:
        if pod.gang:
            nodes[pod.gang].add(pod.node)
    return nodes


def find_unready_agents(pods: Iterable[RunningPod], namespace: str) -> frozenset[str]:
    """Return the nodes that have a running agent but no ready one.

    Args:
        pods: the pods of all namespaces. Pods outside `namespace` do not count, whatever their
            labels: otherwise any user who may create a pod could hide that an agent is not ready,
            and keep its node elected to sweep.
        namespace: the namespace of the agents.
    """
    agents = [pod for pod in pods if pod.agent_namespace == namespace]
    ready_nodes = {pod.node for pod in agents if pod.is_ready}
    return frozenset(pod.node for pod in agents if pod.node not in ready_nodes)


def _parse_bound_at(pod: Mapping[str, Any]) -> datetime | None:
    """Return when a pod was scheduled; without that condition, when it was created."""
    bound, created = condition_of(pod, "PodScheduled"), mapping_at(pod, "metadata")
    is_bound = bound.get("status") == "True"
    at = bound.get("lastTransitionTime") if is_bound else created.get("creationTimestamp")
    return parse_observed_at(str(at))


def _find_gang_name(metadata: Mapping[str, Any]) -> str:
    labels = {**mapping_at(metadata, "labels"), **mapping_at(metadata, "annotations")}
    names = (labels.get(key) for key in GANG_KEYS)
    return next((name for name in names if isinstance(name, str) and name), "")


def _find_controller(metadata: Mapping[str, Any]) -> str:
    """Return the controller of a pod, empty if the controller's pods work independently."""
    for owner in rows_at(metadata, "ownerReferences"):
        if owner.get("controller") is not True:
            continue
        group = str(owner.get("apiVersion")).partition("/")[0]
        return (
            "" if group in _INDEPENDENT_OWNER_GROUPS else f"{owner.get('kind')}.{owner.get('name')}"
        )
    return ""
