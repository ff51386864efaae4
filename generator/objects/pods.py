"""Running pods: which gangs run where, and which agents are well. Pure.

Gangs are told by what schedulers and batch systems put on their pods; nothing needs their own
kinds, which may be absent. Pods of a Deployment, StatefulSet or DaemonSet serve one by one, and
are no gang.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple

from generator.objects.pod_resources import PodUsage, parse_pod_usage


class BoundPod(NamedTuple):
    """A pod of a gang that has a node and has not ended."""

    gang: str
    """`NAMESPACE/NAME`."""
    node: str
    bound_at: datetime | None
    """When it was bound; None: nobody knows."""
    requests: Mapping[str, Decimal]
    """What it takes there."""


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
"""Annotations or labels that hold the name of a group in the pod's namespace."""
_INDEPENDENT_OWNER_GROUPS: Final = frozenset({"apps", "v1"})
"""Groups of owners whose pods are no gang; `v1` is a static pod's Node."""
_NAME: Final = "app.kubernetes.io/name"
_COMPONENT: Final = "app.kubernetes.io/component"


class RunningPod(NamedTuple):
    """All that is kept of a pod."""

    node: str
    gang: str = ""
    """`NAMESPACE/NAME`, empty where it is in none."""
    is_agent: bool = False
    """Whether it is an agent of ours."""
    is_ready: bool = True
    """Whether it says that it is well; only kept of agents."""


class FollowedPod(NamedTuple):
    """What is kept of a pod that has not ended."""

    running: RunningPod | None
    """None where it does not run yet, or counts for nothing that is told by pods."""
    resource_usage: PodUsage | None
    bound: BoundPod | None = None
    """None where it is in no gang."""


def parse_followed_pod(found: Mapping[str, Any]) -> FollowedPod | None:
    """Return what counts of a pod on a node, None where it is on none.

    Raises:
        ConfigError: what it asks for is malformed.
    """
    usage = parse_pod_usage(found)
    if usage is None:
        return None
    is_running = _get_mapping(found, "status").get("phase") == "Running"
    pod = parse_gang_pod(found)
    bound = None
    if pod is not None and pod.gang:
        bound = BoundPod(pod.gang, pod.node, _parse_bound_at(found), usage.amounts)
    return FollowedPod(pod if is_running else None, usage, bound)


def parse_bound_pod(found: Mapping[str, Any]) -> BoundPod | None:
    """Return what a pod of a gang uses up of what was reserved for it; None for any other.

    Raises:
        ConfigError: what it asks for is malformed.
    """
    followed = parse_followed_pod(found)
    return None if followed is None else followed.bound


def parse_gang_pod(found: Mapping[str, Any]) -> RunningPod | None:
    """Return what counts of a pod, None where nothing does."""
    metadata, spec = _get_mapping(found, "metadata"), _get_mapping(found, "spec")
    node = spec.get("nodeName")
    if not isinstance(node, str) or not node:
        return None
    labels = _get_mapping(metadata, "labels")
    if (labels.get(_NAME), labels.get(_COMPONENT)) == ("toponaut", "agent"):
        return RunningPod(node, is_agent=True, is_ready=_is_ready(found))
    group = _find_gang_name(metadata) or _find_controller(metadata)
    return RunningPod(node, f"{metadata.get('namespace')}/{group}") if group else None


def find_gangs(pods: Iterable[RunningPod]) -> tuple[Gang, ...]:
    """Return the gangs that run on two nodes or more, sorted by name. Cost: O(pods)."""
    nodes: dict[str, set[str]] = defaultdict(set)
    for pod in pods:
        if pod.gang:
            nodes[pod.gang].add(pod.node)
    return tuple(
        Gang(name, frozenset(nodes[name])) for name in sorted(nodes) if len(nodes[name]) > 1
    )


def find_unready_agents(pods: Iterable[RunningPod]) -> frozenset[str]:
    """Return the nodes whose agent runs and does not collect, or not any more."""
    agents = [pod for pod in pods if pod.is_agent]
    well = {pod.node for pod in agents if pod.is_ready}
    return frozenset(pod.node for pod in agents if pod.node not in well)


def _parse_bound_at(found: Mapping[str, Any]) -> datetime | None:
    """Return when a pod got its node; where no condition tells, when it was made."""
    rows = _get_mapping(found, "status").get("conditions")
    times = [
        row.get("lastTransitionTime")
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, Mapping)
        and (row.get("type"), row.get("status")) == ("PodScheduled", "True")
    ]
    try:
        told = datetime.fromisoformat(
            str((*times, _get_mapping(found, "metadata").get("creationTimestamp"))[0])
        )
    except ValueError:
        return None
    return None if told.tzinfo is None else told


def _is_ready(found: Mapping[str, Any]) -> bool:
    rows = _get_mapping(found, "status").get("conditions")
    return any(
        isinstance(row, Mapping) and (row.get("type"), row.get("status")) == ("Ready", "True")
        for row in (rows if isinstance(rows, list) else ())
    )


def _find_gang_name(metadata: Mapping[str, Any]) -> str:
    marks = {**_get_mapping(metadata, "labels"), **_get_mapping(metadata, "annotations")}
    found = (marks.get(key) for key in _GANG_KEYS)
    return next((name for name in found if isinstance(name, str) and name), "")


def _find_controller(metadata: Mapping[str, Any]) -> str:
    """Return the controller of a pod, empty for one whose pods do not run together."""
    owners = metadata.get("ownerReferences")
    for owner in owners if isinstance(owners, list) else ():
        if not isinstance(owner, Mapping) or owner.get("controller") is not True:
            continue
        group = str(owner.get("apiVersion")).partition("/")[0]
        return (
            "" if group in _INDEPENDENT_OWNER_GROUPS else f"{owner.get('kind')}.{owner.get('name')}"
        )
    return ""


def _get_mapping(found: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = found.get(key)
    return part if isinstance(part, Mapping) else {}
