"""Sets of equal pods: what workloads of every common kind come to, and pods that were made."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from generator.manifests.fields import Field
from generator.manifests.objects import Manifests, Object
from generator.manifests.pods import pod_row, priority_of
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
        return self.template.at("metadata", "annotations")

    @property
    def labels(self) -> Field:
        """Labels of each pod."""
        return self.template.at("metadata", "labels")

    def row(self) -> dict[str, Any]:
        """Return the set as a group of a request, without any tier."""
        if not self.template.at("spec").exists:
            raise PlacementRequestError(self.template.at("spec").title, "is missing")
        row = {"name": self.name, "count": self.count} | pod_row(self.template)
        if not row["request"]:
            self.template.note("asks for nothing, and takes one slot")
            row["request"] = dict(ONE_SLOT)
        return row


@dataclass(frozen=True, slots=True)
class Workload:
    """What is placed together."""

    owner: Object
    sets: tuple[PodSet, ...]

    @property
    def priority(self) -> int:
        """The highest of its pods."""
        return max((priority_of(one.template) for one in self.sets), default=0)


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


def _refuse_equal_names(owner: Object, sets: Sequence[PodSet]) -> None:
    seen: set[str] = set()
    for name in (one.name for one in sets):
        if name in seen:
            raise PlacementRequestError(owner.title, f"two sets of pods are named '{show(name)}'")
        seen.add(name)


def sets_of_pods(pods: Sequence[Object], split_by: Callable[[Object], str]) -> tuple[PodSet, ...]:
    """Return pods as sets of equals, in the order of their first ones.

    Args:
        pods: in order of ranks.
        split_by: the name of the part that a pod belongs to, empty for none; parts stay apart.
    """
    members: dict[tuple[str, str], list[Object]] = {}
    for pod in pods:
        shape = json.dumps([pod_row(pod.field), priority_of(pod.field)], sort_keys=True)
        members.setdefault((split_by(pod), shape), []).append(pod)
    names: dict[str, int] = {}
    found = []
    for (part, _), equal in members.items():
        name = part or "pods"
        names[name] = names.get(name, 0) + 1
        shown = name if names[name] == 1 else f"{name}-{names[name]}"
        found.append(PodSet(shown, len(equal), equal[0].field))
    return tuple(found)


def _job(owner: Object) -> list[PodSet]:
    completions = owner.spec.at("completions").maybe_whole()
    count = owner.spec.at("parallelism").whole(1)
    if completions is not None:
        count = min(count, completions)
    return [PodSet("main", count, owner.spec.at("template"))]


def _job_set(owner: Object) -> list[PodSet]:
    found = []
    for row in owner.spec.at("replicatedJobs").items():
        spec = row.at("template", "spec")
        size = spec.at("parallelism").whole(1)
        replicas = row.at("replicas").whole(1)
        name = row.at("name").text("main")
        found.append(PodSet(name, replicas * size, spec.at("template"), size))
    return found


def _replicated(owner: Object) -> list[PodSet]:
    count = owner.spec.at("replicas").whole(1)
    return [PodSet("main", count, owner.spec.at("template"))]


def _kubeflow(owner: Object) -> list[PodSet]:
    found = []
    for key, roles in owner.spec.entries():
        if not key.endswith("ReplicaSpecs"):
            continue
        for role, row in roles.entries():
            count = row.at("replicas").whole(1)
            found.append(PodSet(role.lower(), count, row.at("template")))
    return found


def _leader_worker_set(owner: Object) -> list[PodSet]:
    """One replica: each is a gang of its own."""
    spec = owner.spec.at("leaderWorkerTemplate")
    size = spec.at("size").whole(1, least=1)
    replicas = owner.spec.at("replicas")
    if replicas.whole(1) != 1:
        replicas.note("each replica is a gang of its own; the answer is for one")
    worker, leader = spec.at("workerTemplate"), spec.at("leaderTemplate")
    if not leader.exists:
        return [PodSet("worker", size, worker)]
    return [PodSet("leader", 1, leader), PodSet("worker", size - 1, worker)]


def _kueue_workload(owner: Object) -> list[PodSet]:
    return [
        PodSet(
            row.at("name").text("main"),
            row.at("count").whole(1),
            row.at("template"),
            topology=row.at("topologyRequest"),
        )
        for row in owner.spec.at("podSets").items()
    ]


def _volcano_job(owner: Object) -> list[PodSet]:
    return [
        PodSet(row.at("name").text(f"task{at}"), row.at("replicas").whole(1), row.at("template"))
        for at, row in enumerate(owner.spec.at("tasks").items())
    ]


_KUBEFLOW: Final = ("PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob")
_READERS: Final[Mapping[tuple[str, str], Callable[[Object], list[PodSet]]]] = MappingProxyType(
    {
        ("batch", "Job"): _job,
        ("jobset.x-k8s.io", "JobSet"): _job_set,
        ("apps", "StatefulSet"): _replicated,
        ("apps", "Deployment"): _replicated,
        ("apps", "ReplicaSet"): _replicated,
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): _leader_worker_set,
        ("kueue.x-k8s.io", "Workload"): _kueue_workload,
        ("batch.volcano.sh", "Job"): _volcano_job,
        **{("kubeflow.org", kind): _kubeflow for kind in _KUBEFLOW},
    }
)
