"""Sets of equal pods, from workloads of every common kind or from single pods."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from generator.manifests.fields import Field
from generator.manifests.gang_pods.running_pods import PODS, GroupPods, MemberPod, find_members
from generator.manifests.gang_pods.workload_pods import SetPods, find_set_pods
from generator.manifests.objects import KubeObject, Manifests
from generator.manifests.pods import parse_pod_fields, parse_priority
from generator.manifests.resource_units import ONE_SLOT
from topology.model.errors import PlacementRequestError, show


@dataclass(frozen=True, slots=True)
class PodSet:
    """Equal pods of one template."""

    name: str
    count: int
    template: Field
    """A pod template, with metadata and spec."""
    replica_size: int | None = None
    """Pods per replica, if the set consists of several replicas."""
    topology: Field | None = None
    """Kueue's topology request for the set, in a Workload object."""
    job_annotations: Field | None = None
    """Annotations of each job of a JobSet."""
    running: tuple[MemberPod, ...] = ()
    """Those of its pods that have a node."""

    @property
    def annotations(self) -> Field:
        """Annotations of each pod."""
        return self.template.get("metadata", "annotations")

    @property
    def labels(self) -> Field:
        """Labels of each pod."""
        return self.template.get("metadata", "labels")

    def render_group(self) -> dict[str, Any]:
        """Return the set as a group of a request, without tiers."""
        if not self.template.get("spec").exists:
            raise PlacementRequestError(self.template.get("spec").title, "is missing")
        row = {"name": self.name, "count": self.count} | parse_pod_fields(self.template)
        if not row["request"]:
            self.template.note("has no resource requests and takes one slot")
            row["request"] = dict(ONE_SLOT)
        return row | {PODS: GroupPods(self.template, self.running)}


@dataclass(frozen=True, slots=True)
class Workload:
    """Sets of pods that are placed together."""

    owner: KubeObject
    sets: tuple[PodSet, ...]

    @property
    def priority(self) -> int:
        """The highest priority of its pods."""
        return max((parse_priority(pod_set.template) for pod_set in self.sets), default=0)


def find_workload(manifests: Manifests) -> Workload | None:
    """Return the only workload of a file; None if there is none.

    Raises:
        PlacementRequestError: there are several, it has no pods, or two sets have the same name.
    """
    workloads = [
        item
        for item in manifests.objects
        if (item.group, item.kind) in _READERS or (item.group, item.kind) == _TRAIN_JOB
    ]
    if len(workloads) > 1:
        names = ", ".join(item.title for item in workloads)
        problem = f"the file has {len(workloads)} workloads, but one is placed at a time: {names}"
        raise PlacementRequestError(workloads[1].title, problem)
    if not workloads:
        return None
    owner = workloads[0]
    is_train_job = (owner.group, owner.kind) == _TRAIN_JOB
    found = (
        _parse_train_job(owner, manifests)
        if is_train_job
        else _READERS[owner.group, owner.kind](owner)
    )
    _refuse_equal_names(owner, found)
    rows = [SetPods(item.name, item.count, item.replica_size or 1) for item in found]
    sets = [
        replace(item, count=row.num_pods, running=row.running)
        for item, row in zip(found, find_set_pods(owner, rows, manifests), strict=True)
        if row.num_pods
    ]
    if not sets:
        raise PlacementRequestError(owner.title, "has no pods to place")
    return Workload(owner, tuple(sets))


def _refuse_equal_names(owner: KubeObject, sets: Sequence[PodSet]) -> None:
    names: set[str] = set()
    for name in (pod_set.name for pod_set in sets):
        if name in names:
            raise PlacementRequestError(
                owner.title, f"two sets of pods have the name '{show(name)}'"
            )
        names.add(name)


def group_pods(
    pods: Sequence[KubeObject], split_by: Callable[[KubeObject], str]
) -> tuple[PodSet, ...]:
    """Return sets of equal pods, in the order of their first pods.

    Args:
        pods: in order of ranks.
        split_by: returns the part that a pod belongs to, empty for none; parts stay separate.
    """
    members: dict[tuple[str, str], list[KubeObject]] = {}
    for pod, key in zip(pods, _find_shapes(pods, split_by), strict=True):
        members.setdefault(key, []).append(pod)
    names: dict[str, int] = {}
    sets = []
    for (part, _), equal in members.items():
        name = part or "pods"
        names[name] = names.get(name, 0) + 1
        shown = name if names[name] == 1 else f"{name}-{names[name]}"
        template = next((pod for pod in equal if not pod.node), equal[0]).field
        sets.append(PodSet(shown, len(equal), template, running=find_members(equal)))
    return tuple(sets)


def _find_shapes(
    pods: Sequence[KubeObject], split_by: Callable[[KubeObject], str]
) -> Iterator[tuple[str, str]]:
    """Yield the part and the shape of each pod, which are equal for equal pods.

    A pod that runs is equal to one that waits whatever nodes it may use: Kueue names the node of a
    pod in its node selector.
    """
    rows = [(split_by(pod), parse_pod_fields(pod.field), parse_priority(pod.field)) for pod in pods]
    whole = [(part, json.dumps([row, rank], sort_keys=True)) for part, row, rank in rows]
    loose = [(part, json.dumps([row["request"], rank])) for part, row, rank in rows]
    waiting: dict[tuple[str, str], tuple[str, str]] = {}
    for pod, shape, key in zip(pods, whole, loose, strict=True):
        if not pod.node:
            waiting.setdefault(key, shape)
    for pod, shape, key in zip(pods, whole, loose, strict=True):
        yield waiting.get(key, key) if pod.node else shape


def _parse_job(owner: KubeObject) -> list[PodSet]:
    completions = owner.spec.get("completions").optional_integer()
    count = owner.spec.get("parallelism").integer(1)
    if completions is not None:
        count = min(count, completions)
    return [PodSet("main", count, owner.spec.get("template"))]


def _parse_job_set(owner: KubeObject) -> list[PodSet]:
    sets = []
    for row in owner.spec.get("replicatedJobs").items():
        spec = row.get("template", "spec")
        size = spec.get("parallelism").integer(1)
        replicas = row.get("replicas").integer(1)
        name = row.get("name").text("main")
        annotations = row.get("template", "metadata", "annotations")
        pods = PodSet(
            name, replicas * size, spec.get("template"), size, job_annotations=annotations
        )
        sets.append(pods)
    return sets


def _parse_replicated(owner: KubeObject) -> list[PodSet]:
    count = owner.spec.get("replicas").integer(1)
    return [PodSet("main", count, owner.spec.get("template"))]


def _parse_kubeflow(owner: KubeObject) -> list[PodSet]:
    sets = []
    for key, roles in owner.spec.entries():
        if not key.endswith("ReplicaSpecs"):
            continue
        for role, row in roles.entries():
            count = row.get("replicas").integer(1)
            sets.append(PodSet(role.lower(), count, row.get("template")))
    return sets


def _parse_leader_worker_set(owner: KubeObject) -> list[PodSet]:
    """Return the sets of one replica; each replica is a separate gang."""
    spec = owner.spec.get("leaderWorkerTemplate")
    size = spec.get("size").integer(1, minimum=1)
    replicas = owner.spec.get("replicas")
    if replicas.integer(1) != 1:
        replicas.note("each replica is a separate gang; the answer is for one replica")
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
            row.get("name").text(f"task{index}"),
            row.get("replicas").integer(1),
            row.get("template"),
        )
        for index, row in enumerate(owner.spec.get("tasks").items())
    ]


def _parse_train_job(owner: KubeObject, manifests: Manifests) -> list[PodSet]:
    """Return the pods that train; those that fetch data and models have ended by then.

    Source: kubeflow/trainer v2.0.0, pkg/apis/trainer/v1alpha1 and pkg/runtime/core.
    """
    trainer = owner.spec.get("trainer")
    reference = owner.spec.get("runtimeRef")
    name = reference.get("name").text()
    runtimes = manifests.select("ClusterTrainingRuntime", "TrainingRuntime", group=_TRAIN_JOB[0])
    runtime = next((item for item in runtimes if item.name == name), None)
    if runtime is None:
        reference.note("the runtime is not in the file, so only the trainer's own fields count")
        spec = trainer.regroup(resources=trainer.get("resourcesPerNode"))
        count = trainer.get("numNodes").integer(1, minimum=1)
        return [PodSet("node", count, trainer.regroup(spec=spec))]
    default = runtime.spec.get("mlPolicy", "numNodes").integer(1, minimum=1)
    count = trainer.get("numNodes").integer(default, minimum=1)
    sets = []
    for row in runtime.spec.get("template", "spec", "replicatedJobs").items():
        step = row.get("template", "metadata", "labels").get(_TRAIN_STEP).text()
        job = row.get("template", "spec")
        if step.endswith("-initializer"):
            row.raw()
            row.note("ends before the training starts, and is not placed with it")
        elif step == "trainer":
            template = _with_resources(job.get("template"), trainer.get("resourcesPerNode"))
            sets.append(PodSet(row.get("name").text("node"), count, template))
        else:
            size = job.get("parallelism").integer(1)
            sets.append(PodSet(row.get("name").text("main"), size, job.get("template")))
    return sets


def _with_resources(template: Field, resources: Field) -> Field:
    """Return a pod template with the resources of the whole pod, if they are given."""
    if not resources.exists:
        return template
    spec = template.get("spec")
    parts = {key: part for key, part in spec.entries() if key != "resources"}
    return template.regroup(
        metadata=template.get("metadata"), spec=spec.regroup(**parts, resources=resources)
    )


_TRAIN_JOB: Final = ("trainer.kubeflow.org", "TrainJob")
_TRAIN_STEP: Final = "trainer.kubeflow.org/trainjob-ancestor-step"
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
