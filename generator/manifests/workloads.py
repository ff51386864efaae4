"""The workload or the PodGroup of a file, its pods, and sets of equal pods of single pods."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from generator.manifests.gang_pods import SetPods, find_members, find_set_pods
from generator.manifests.kinds.codeflare import build_app_wrapper
from generator.manifests.kinds.core_workloads import CRON_JOB, JOB, REPLICATED
from generator.manifests.kinds.job_sets import JOB_SET, LEADER_WORKER_SET
from generator.manifests.kinds.kubeflow import KUBEFLOW_JOBS
from generator.manifests.kinds.kueue_workload import WORKLOAD
from generator.manifests.kinds.object_fields import COMPANIONS
from generator.manifests.kinds.pod_sets import PodSet, Workload, WorkloadKind, parse_pod_row
from generator.manifests.kinds.ray import RAY_CLUSTER, RAY_JOB, RAY_SERVICE
from generator.manifests.kinds.trainer import TRAIN_JOB
from generator.manifests.kinds.volcano_job import VOLCANO_JOB
from generator.manifests.objects import KubeObject, Manifests, find_only
from generator.manifests.pods import parse_priority
from topology.model.errors import PlacementRequestError, show

_KINDS: Final[Mapping[tuple[str, str], WorkloadKind]] = {
    ("apps", "Deployment"): REPLICATED,
    ("apps", "ReplicaSet"): REPLICATED,
    ("apps", "StatefulSet"): REPLICATED,
    ("batch", "CronJob"): CRON_JOB,
    ("batch", "Job"): JOB,
    ("batch.volcano.sh", "Job"): VOLCANO_JOB,
    ("jobset.x-k8s.io", "JobSet"): JOB_SET,
    **{("kubeflow.org", kind): job for kind, job in KUBEFLOW_JOBS.items()},
    ("kueue.x-k8s.io", "Workload"): WORKLOAD,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): LEADER_WORKER_SET,
    ("ray.io", "RayCluster"): RAY_CLUSTER,
    ("ray.io", "RayJob"): RAY_JOB,
    ("ray.io", "RayService"): RAY_SERVICE,
    ("trainer.kubeflow.org", "TrainJob"): TRAIN_JOB,
}
KINDS: Final[Mapping[tuple[str, str], WorkloadKind]] = MappingProxyType(
    {**_KINDS, ("workload.codeflare.dev", "AppWrapper"): build_app_wrapper(_KINDS)}
)
"""Kinds of workloads by API group and kind."""


def find_workload(manifests: Manifests) -> Workload | None:
    """Return the only workload of a file; None if there is none.

    Raises:
        PlacementRequestError: there are several, it has no pods, or two sets have the same name.
    """
    workloads = [item for item in manifests.objects if (item.group, item.kind) in KINDS]
    owner = find_only(workloads, "workloads")
    if owner is None:
        return None
    kind = KINDS[owner.group, owner.kind]
    found = kind.parse_sets(owner, manifests)
    _refuse_equal_names(owner, found)
    for empty in (item for item in found if not item.count):
        empty.template.note("is not placed, because it has no pods")
        for field in filter(None, (empty.template, empty.topology)):
            field.raw()
    rows = [SetPods(item.name, item.count, item.replica_size or 1) for item in found]
    sets = [
        replace(item, count=row.num_pods, running=row.running)
        for item, row in zip(found, find_set_pods(owner, rows, manifests), strict=True)
        if row.num_pods
    ]
    if not sets:
        raise PlacementRequestError(owner.title, "has no pods to place")
    return Workload(owner, tuple(sets), kind.parse_minimum(owner))


def describe_missing(manifests: Manifests, expected: str) -> PlacementRequestError:
    """Return the error for a file without the expected objects; it lists those of the file."""
    others = [item for item in manifests.objects if (item.group, item.kind) not in COMPANIONS]
    named = {(item.kind, item.group) for item in others or manifests.objects}
    kinds = [f"{kind} of {group}" if group else kind for kind, group in sorted(named)]
    kinds = kinds or ["no object"]
    problem = f"expected {expected}, got {show(', '.join(kinds))}"
    if not others:
        return PlacementRequestError("the file", problem)
    known = ", ".join(sorted({kind for _, kind in KINDS}))
    return PlacementRequestError(others[0].title, f"{problem}; the workloads read are {known}")


def mark_equal_annotations(pods: Sequence[KubeObject | PodSet], prefix: str) -> None:
    """Mark the annotations of other pods as read if they equal those of the first."""
    for pod in pods[1:]:
        for key, field in pod.annotations.entries():
            if key.startswith(prefix) and field.value == pods[0].annotations.get(key).value:
                field.raw()


def _refuse_equal_names(owner: KubeObject, sets: Sequence[PodSet]) -> None:
    names: set[str] = set()
    for name in (pod_set.name for pod_set in sets):
        if name in names:
            raise PlacementRequestError(
                owner.title, f"two sets of pods have the name '{show(name)}'"
            )
        names.add(name)


def group_pods(
    pods: Sequence[KubeObject], split_by: Callable[[KubeObject], str] = lambda _: ""
) -> tuple[PodSet, ...]:
    """Return sets of equal pods, in the order of their first pods.

    Args:
        pods: the pods of a gang, in order of ranks.
        split_by: returns the part that a pod belongs to, empty for none; parts stay separate.
    """
    members: dict[tuple[str, str], list[KubeObject]] = {}
    examples: dict[tuple[str, str], KubeObject] = {}
    for pod, (shape, own_shape) in zip(pods, _find_shapes(pods, split_by), strict=True):
        members.setdefault(shape, []).append(pod)
        if shape == own_shape:
            examples.setdefault(shape, pod)
    names: dict[str, int] = {}
    sets = []
    for shape, equal in members.items():
        name = shape[0] or "pods"
        names[name] = names.get(name, 0) + 1
        shown = name if names[name] == 1 else f"{name}-{names[name]}"
        template = examples.get(shape, equal[0]).field
        sets.append(PodSet(shown, len(equal), template, running=find_members(equal)))
    return tuple(sets)


def _find_shapes(
    pods: Sequence[KubeObject], split_by: Callable[[KubeObject], str]
) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Yield two keys (part, shape) per pod: a key that equal pods share, and the pod's own key.

    A running pod equals a waiting pod whatever nodes it may use, because Kueue puts the node of a
    pod into its node selector.
    """
    rows = [(split_by(pod), parse_pod_row(pod.field), parse_priority(pod.field)) for pod in pods]
    whole = [(part, json.dumps([row, rank], sort_keys=True)) for part, row, rank in rows]
    loose = [(part, json.dumps([row["request"], rank])) for part, row, rank in rows]
    waiting: dict[tuple[str, str], tuple[str, str]] = {}
    for pod, shape, key in zip(pods, whole, loose, strict=True):
        if not pod.node:
            waiting.setdefault(key, shape)
    for pod, shape, key in zip(pods, whole, loose, strict=True):
        yield (waiting.get(key, key) if pod.node else shape), shape


def find_only_group(manifests: Manifests, group: str) -> KubeObject | None:
    """Return the only PodGroup of an API group; None if there is none.

    Raises:
        PlacementRequestError: there are several PodGroups, or it has no spec.
    """
    found = find_only(manifests.select("PodGroup", group=group), "PodGroups")
    if found is not None and not found.spec.exists:
        raise PlacementRequestError(f"{found.title}: spec", "is missing")
    return found


def find_group_pods(manifests: Manifests, group: KubeObject, key: str) -> list[KubeObject]:
    """Return the pods whose label or annotation names the group, as `find_named_pods` does."""
    return find_named_pods(
        manifests, group, lambda pod: pod.annotations.get(key).text() or pod.labels.get(key).text()
    )


def find_named_pods(
    manifests: Manifests, group: KubeObject, find_name: Callable[[KubeObject], str]
) -> list[KubeObject]:
    """Return the pods that name the only group of a file; all pods if none names a group.

    A note is added to pods of other groups, because they are not placed.
    """
    names = [(pod, find_name(pod)) for pod in manifests.pods]
    if not any(name for _, name in names):
        return [pod for pod, _ in names]
    for pod, name in names:
        if name != group.name:
            pod.field.raw()
            pod.field.note("belongs to another group and is not placed")
    return [pod for pod, name in names if name == group.name]
