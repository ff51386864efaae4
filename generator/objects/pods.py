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

from generator.objects.document import mapping_at
from generator.objects.inventory import SLOTS, Inventory, ListedNode
from generator.placement.cluster.nodes import PODS
from generator.placement.quantities import count_units, parse_amount
from topology.model.errors import ConfigError, show
from topology.reports.observed_time import parse_observed_at

_ENDED_PHASES: Final = frozenset({"Succeeded", "Failed"})
Amounts = dict[str, Decimal]
Units = Mapping[str, int]
_NO_UNITS: Final[Units] = MappingProxyType({})


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
    spec, status = mapping_at(pod, "spec"), mapping_at(pod, "status")
    node = spec.get("nodeName")
    if not isinstance(node, str) or not node or status.get("phase") in _ENDED_PHASES:
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
    total: Amounts = {}
    for container in _get_list(spec, "containers"):
        _add_amounts(total, _parse_container_request(container))
    sidecars: Amounts = {}
    """Of sidecars: init containers that keep running."""
    init_peak: Amounts = {}
    for container in _get_list(spec, "initContainers"):
        own = _parse_container_request(container)
        if container.get("restartPolicy") == "Always":
            _add_amounts(sidecars, own)
            own = {}
        for name, amount in _sum_amounts(own, sidecars).items():
            init_peak[name] = max(init_peak.get(name, Decimal(0)), amount)
    total = _sum_amounts(total, sidecars)
    request = {
        name: max(total.get(name, Decimal(0)), init_peak.get(name, Decimal(0)))
        for name in {*total, *init_peak}
    }
    return _sum_amounts(
        request | _parse_container_request(spec), _parse_amounts(mapping_at(spec, "overhead"))
    )


def _parse_container_request(holder: Mapping[str, Any]) -> Amounts:
    return _parse_amounts(mapping_at(mapping_at(holder, "resources"), "requests"))


def _parse_amounts(quantities: Mapping[str, Any]) -> Amounts:
    try:
        return {str(name): parse_amount(value) for name, value in quantities.items()}
    except ValueError as error:
        raise ConfigError(f"requests: {show(str(error))}") from error


def _add_amounts(total: Amounts, more: Mapping[str, Decimal]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, Decimal(0)) + amount


def _sum_amounts(first: Mapping[str, Decimal], second: Mapping[str, Decimal]) -> Amounts:
    total = dict(first)
    _add_amounts(total, second)
    return total


def _get_list(parent: Mapping[str, Any], key: str) -> Iterable[Mapping[str, Any]]:
    rows = parent.get(key)
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else ()


class BoundPod(NamedTuple):
    """A pod of a gang that has a node and has not ended."""

    gang: str
    """`NAMESPACE/NAME`."""
    node: str
    bound_at: datetime | None
    """When it was bound to the node; None: unknown."""
    requests: Mapping[str, int]
    """The resources that it uses there, in units of `quantities`."""


class Gang(NamedTuple):
    """Pods that run together, on more than one node."""

    name: str
    """`NAMESPACE/NAME` of its group."""
    nodes: frozenset[str]


_GANG_KEYS: Final = (
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
    """None if it does not run yet, or is neither in a gang nor an agent."""
    resource_usage: PodUsage | None
    bound: BoundPod | None = None
    """None if it is in no gang."""


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
        bound = BoundPod(running.gang, running.node, _parse_bound_at(pod), usage.units)
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
        return RunningPod(node, gang, agent_namespace=namespace, is_ready=_is_ready(pod))
    return RunningPod(node, gang) if gang else None


def find_gangs(pods: Iterable[RunningPod]) -> tuple[Gang, ...]:
    """Return the gangs that run on two nodes or more, sorted by name. Cost: O(pods)."""
    nodes: dict[str, set[str]] = defaultdict(set)
    for pod in pods:
        if pod.gang:
            nodes[pod.gang].add(pod.node)
    return tuple(
        Gang(name, frozenset(nodes[name])) for name in sorted(nodes) if len(nodes[name]) > 1
    )


def find_unready_agents(pods: Iterable[RunningPod], namespace: str) -> frozenset[str]:
    """Return the nodes that have a running agent but no ready one.

    Args:
        pods: of all namespaces. Labels alone make no agent: who may create a pod anywhere could
            otherwise hide that an agent is not ready, and keep its node elected to sweep.
        namespace: of the agents.
    """
    agents = [pod for pod in pods if pod.agent_namespace == namespace]
    ready_nodes = {pod.node for pod in agents if pod.is_ready}
    return frozenset(pod.node for pod in agents if pod.node not in ready_nodes)


def _parse_bound_at(pod: Mapping[str, Any]) -> datetime | None:
    """Return when a pod was scheduled; without that condition, when it was created."""
    rows = mapping_at(pod, "status").get("conditions")
    times = [
        row.get("lastTransitionTime")
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, Mapping)
        and (row.get("type"), row.get("status")) == ("PodScheduled", "True")
    ]
    return parse_observed_at(str((*times, mapping_at(pod, "metadata").get("creationTimestamp"))[0]))


def _is_ready(pod: Mapping[str, Any]) -> bool:
    rows = mapping_at(pod, "status").get("conditions")
    return any(
        isinstance(row, Mapping) and (row.get("type"), row.get("status")) == ("Ready", "True")
        for row in (rows if isinstance(rows, list) else ())
    )


def _find_gang_name(metadata: Mapping[str, Any]) -> str:
    labels = {**mapping_at(metadata, "labels"), **mapping_at(metadata, "annotations")}
    names = (labels.get(key) for key in _GANG_KEYS)
    return next((name for name in names if isinstance(name, str) and name), "")


def _find_controller(metadata: Mapping[str, Any]) -> str:
    """Return the controller of a pod, empty if the controller's pods work independently."""
    owners = metadata.get("ownerReferences")
    for owner in owners if isinstance(owners, list) else ():
        if not isinstance(owner, Mapping) or owner.get("controller") is not True:
            continue
        group = str(owner.get("apiVersion")).partition("/")[0]
        return (
            "" if group in _INDEPENDENT_OWNER_GROUPS else f"{owner.get('kind')}.{owner.get('name')}"
        )
    return ""
