"""The pods of a file that run, have ended, or are being deleted.

Pods that run keep their nodes, and the others are placed beside them. Pods that have ended do not
count. Pods that are being deleted are not placed, but use their nodes until they have ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from generator.manifests.fields import Field
from generator.manifests.objects import KubeObject, Manifests
from generator.objects.pods import parse_pod_usage
from generator.placement.quantities import render_quantities
from topology.model.errors import ConfigError, PlacementRequestError, list_some

PODS: Final = "pods"
"""The key under which a group holds its `GroupPods` until `split_gang` removes it."""
_MAX_NODES_SHOWN: Final = 8


class MemberPod(NamedTuple):
    """A pod of a group that has a node."""

    pod: KubeObject
    rank: int | None
    """Its index in its group; None: unknown."""


class GroupPods(NamedTuple):
    """The template of the pods of a group, and its pods that run."""

    template: Field
    running: tuple[MemberPod, ...]


class RunningRow(NamedTuple):
    """A pod that runs, as a request counts it."""

    node: str
    group: str | None
    """Name of its group; None: it is not of the gang."""
    request: Mapping[str, int | str]
    """Quantities."""
    rank: int | None = None


class GangParts(NamedTuple):
    """A request for the pods that wait, and the pods that run."""

    spec: dict[str, Any]
    running: tuple[RunningRow, ...]


def keep_members(
    pods: Sequence[KubeObject], find_group: Callable[[KubeObject], str]
) -> list[KubeObject]:
    """Return the pods that wait, and those that run for the same groups.

    If no pod waits, all pods are returned.
    """
    waiting = {find_group(pod) for pod in pods if not pod.node}
    return [pod for pod in pods if not pod.node or not waiting or find_group(pod) in waiting]


def find_members(pods: Sequence[KubeObject]) -> tuple[MemberPod, ...]:
    """Return the pods of a group that run; the index in `pods` is the rank."""
    return tuple(MemberPod(pod, index) for index, pod in enumerate(pods) if pod.node)


def split_gang(spec: dict[str, Any], manifests: Manifests) -> GangParts:
    """Return the spec for the pods that wait, and all pods of the file that run.

    Args:
        spec: for all pods of the gang; its groups name those that run.
        manifests: of the file.

    Raises:
        PlacementRequestError: no pod waits, or the resources of a pod are malformed.
    """
    members: list[KubeObject] = []
    running: list[RunningRow] = []
    for row in walk_leaves(spec["groups"]):
        pods = row.pop(PODS).running if PODS in row else ()
        row["count"] -= len(pods)
        if "min" in row or not row["count"]:
            row["min"] = max(row.get("min", 0) - len(pods), 0)
        members += [member.pod for member in pods]
        running += [
            RunningRow(member.pod.node, row["name"], row["request"], member.rank) for member in pods
        ]
    if running:
        if not any(row["count"] for row in walk_leaves(spec["groups"])):
            problem = f"no pod waits for a node: {len(running)} run already"
            raise PlacementRequestError(members[0].title, problem)
        if "min" in spec:
            spec = spec | {"min": max(spec["min"] - len(running), 0)}
        nodes = list_some((row.node for row in running), _MAX_NODES_SHOWN)
        members[0].field.note(f"pods of the gang run on {nodes} and keep their nodes")
    others = tuple(_find_other_pods(manifests, members))
    return GangParts(spec, (*running, *others))


def walk_leaves(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the groups of pods, without those that have children."""
    for row in rows:
        if "children" in row:
            yield from walk_leaves(row["children"])
        else:
            yield row


def _find_other_pods(manifests: Manifests, members: Iterable[KubeObject]) -> Iterator[RunningRow]:
    """Yield the pods that are on a node and not in the gang, and mark those that do not count."""
    own = {id(pod.field) for pod in members}
    for pod in manifests.select("Pod", group=""):
        if pod.has_ended:
            pod.field.raw()
            pod.field.note("has ended and is not placed")
        elif id(pod.field) not in own and pod.node:
            pod.field.raw()
            pod.field.note(
                "is being deleted: it is not placed, and uses its node until it has ended"
                if pod.is_terminating
                else "is not of the gang, and uses its node"
            )
            yield _build_other(pod)
        elif pod.is_terminating:
            pod.field.raw()
            pod.field.note("is being deleted and is not placed")


def _build_other(pod: KubeObject) -> RunningRow:
    try:
        usage = parse_pod_usage(pod.field.value if isinstance(pod.field.value, dict) else {})
    except ConfigError as error:
        raise PlacementRequestError(pod.title, str(error)) from error
    return RunningRow(pod.node, None, render_quantities(usage.units.items()) if usage else {})
