"""Sets of equal pods: what workloads of every common kind come to, and pods that were made."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from generator.manifests.fields import Field
from generator.manifests.objects import Manifests, KubeObject
from generator.manifests.pods import parse_pod_fields, parse_priority
from generator.manifests.resource_units import ONE_SLOT
from topology.model.errors import PlacementRequestError, show


@dataclass(frozen=True, slots=True)
class PodSet:
    """Pods of one template."""

    name: str
    count: int
    template: Field
    """With metadata and spec."""
    replica_size: int | None = None
    """Pods of one replica, where the set is made of several replicas."""
    topology: Field | None = None
    """Kueue's own words for the set, of a Workload."""

    @property
    def annotations(self) -> Field:
        """Annotations of each pod."""
        return self.template.get("metadata", "annotations")

    @property
    def labels(self) -> Field:
        """Labels of each pod."""
        return self.template.get("metadata", "labels")

    def render_group(self) -> dict[str, Any]:
        """Return the set as a group of a request, without any tier."""
        if not self.template.get("spec").exists:
            raise PlacementRequestError(self.template.get("spec").title, "is missing")
        row = {"name": self.name, "count": self.count} | parse_pod_fields(self.template)
        if not row["request"]:
            self.template.note("asks for nothing, and takes one slot")
            row["request"] = dict(ONE_SLOT)
        return row


@dataclass(frozen=True, slots=True)
class Workload:
    """What is placed together."""

    owner: KubeObject
    sets: tuple[PodSet, ...]

    @property
    def priority(self) -> int:
        """The highest of its pods."""
        return max((parse_priority(one.template) for one in self.sets), default=0)


def find_workload(manifests: Manifests) -> Workload | None:
    """Return the one workload of a file; None where there is none.

    Raises:
        PlacementRequestError: there are several, it has no pod, or two sets of one name.
    """
    found = [one for one in manifests.objects if (one.group, one.kind) in _READERS]
    if len(found) > 1:
        names = ", ".join(one.title for one in found)
        problem = f"{len(found)} workloads are in the file, one is placed at a time: {names}"
        raise PlacementRequestError(found[1].title, problem)
    if not found:
        return None
    owner = found[0]
    sets = [one for one in _READERS[owner.group, owner.kind](owner) if one.count]
    _refuse_equal_names(owner, sets)
    if not sets:
        raise PlacementRequestError(owner.title, "has no pod to place")
    return Workload(owner, tuple(sets))


def _refuse_equal_names(owner: KubeObject, sets: Sequence[PodSet]) -> None:
    seen: set[str] = set()
    for name in (one.name for one in sets):
        if name in seen:
            raise PlacementRequestError(owner.title, f"two sets of pods are named '{show(name)}'")
        seen.add(name)


def group_pods(
    pods: Sequence[KubeObject], split_by: Callable[[KubeObject], str]
) -> tuple[PodSet, ...]:
    """Return pods as sets of equals, in the order of their first ones.

    Args:
        pods: in order of ranks.
        split_by: the name of the part that a pod belongs to, empty for none; parts stay apart.
    """
    members: dict[tuple[str, str], list[KubeObject]] = {}
    for pod in pods:
        shape = json.dumps([parse_pod_fields(pod.field), parse_priority(pod.field)], sort_keys=True)
        members.setdefault((split_by(pod), shape), []).append(pod)
    names: dict[str, int] = {}
    found = []
    for (part, _), equal in members.items():
        name = part or "pods"
        names[name] = names.get(name, 0) + 1
        shown = name if names[name] == 1 else f"{name}-{names[name]}"
        found.append(PodSet(shown, len(equal), equal[0].field))
    return tuple(found)


def _parse_job(owner: KubeObject) -> list[PodSet]:
    completions = owner.spec.get("completions").optional_integer()
    count = owner.spec.get("parallelism").integer(1)
    if completions is not None:
        count = min(count, completions)
    return [PodSet("main", count, owner.spec.get("template"))]


def _parse_job_set(owner: KubeObject) -> list[PodSet]:
    found = []
    for row in owner.spec.get("replicatedJobs").items():
        spec = row.get("template", "spec")
        size = spec.get("parallelism").integer(1)
        replicas = row.get("replicas").integer(1)
        name = row.get("name").text("main")
        found.append(PodSet(name, replicas * size, spec.get("template"), size))
    return found


def _parse_replicated(owner: KubeObject) -> list[PodSet]:
    count = owner.spec.get("replicas").integer(1)
    return [PodSet("main", count, owner.spec.get("template"))]


def _parse_kubeflow(owner: KubeObject) -> list[PodSet]:
    found = []
    for key, roles in owner.spec.entries():
        if not key.endswith("ReplicaSpecs"):
            continue
        for role, row in roles.entries():
            count = row.get("replicas").integer(1)
            found.append(PodSet(role.lower(), count, row.get("template")))
    return found


def _parse_leader_worker_set(owner: KubeObject) -> list[PodSet]:
    """One replica: each is a gang of its own."""
    spec = owner.spec.get("leaderWorkerTemplate")
    size = spec.get("size").integer(1, minimum=1)
    replicas = owner.spec.get("replicas")
    if replicas.integer(1) != 1:
        replicas.note("each replica is a gang of its own; the answer is for one")
    worker, leader = spec.get("workerTemplate"), spec.get("leaderTemplate")
    if not leader.exists:
        return [PodSet("worker", size, worker)]
    return [PodSet("leader", 1, leader), PodSet("worker", size - 1, worker)]


def _parse_kueue_workload(owner: KubeObject) -> list[PodSet]:
    return [
        PodSet(
            row.get("name").text("main"),
            row.get("count").integer(1),
            row.get("template"),
            topology=row.get("topologyRequest"),
        )
        for row in owner.spec.get("podSets").items()
    ]


def _parse_volcano_job(owner: KubeObject) -> list[PodSet]:
    return [
        PodSet(
            row.get("name").text(f"task{at}"), row.get("replicas").integer(1), row.get("template")
        )
        for at, row in enumerate(owner.spec.get("tasks").items())
    ]


_KUBEFLOW: Final = ("PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob")
_READERS: Final[Mapping[tuple[str, str], Callable[[KubeObject], list[PodSet]]]] = MappingProxyType(
    {
        ("batch", "Job"): _parse_job,
        ("jobset.x-k8s.io", "JobSet"): _parse_job_set,
        ("apps", "StatefulSet"): _parse_replicated,
        ("apps", "Deployment"): _parse_replicated,
        ("apps", "ReplicaSet"): _parse_replicated,
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): _parse_leader_worker_set,
        ("kueue.x-k8s.io", "Workload"): _parse_kueue_workload,
        ("batch.volcano.sh", "Job"): _parse_volcano_job,
        **{("kubeflow.org", kind): _parse_kubeflow for kind in _KUBEFLOW},
    }
)
