"""TrainJobs of Kubeflow Trainer, version 2, with the runtime that they refer to.

Source: kubeflow/trainer v2.0.0 to v2.2.1, pkg/apis/trainer/v1alpha1 and pkg/runtime.
"""

from __future__ import annotations

from typing import Final

from generator.manifests.fields import Field, FieldTable
from generator.manifests.kinds.core_workloads import count_job_pods
from generator.manifests.kinds.job_sets import JOB_SET_SPEC, mark_start_order
from generator.manifests.kinds.object_fields import ENDS, METADATA, RUNS, list_object_fields
from generator.manifests.kinds.pod_sets import PodSet, WorkloadKind
from generator.manifests.objects import KubeObject, Manifests
from topology.model.errors import show

GROUP: Final = "trainer.kubeflow.org"
_STEP: Final = f"{GROUP}/trainjob-ancestor-step"
RUNTIMES: Final = ("ClusterTrainingRuntime", "TrainingRuntime")
_INITIALIZER: Final = "-initializer"
_CONTAINER: Final = "node"
_KIND: Final = "names the kind of the runtime"
_ENDED: Final = "ends before the training starts, and is not placed with it"
_TRAIN_JOB: Final[FieldTable] = list_object_fields(
    {
        "activeDeadlineSeconds": ENDS,
        "initializer": _ENDED,
        "runtimeRef": {"apiGroup": _KIND, "kind": _KIND},
        "suspend": "says when the job starts, not where",
        "trainer": {
            "args": RUNS,
            "command": RUNS,
            "env": RUNS,
            "image": RUNS,
            "numProcPerNode": RUNS,
        },
    }
)
"""Patches of the runtime and another controller may matter."""
RUNTIME: Final[FieldTable] = {
    "metadata": METADATA,
    "spec": {
        "mlPolicy": {
            "flux": {"numProcPerNode": RUNS},
            "jax": RUNS,
            "mpi": {"mpiImplementation": RUNS, "numProcPerNode": RUNS, "sshAuthMountPath": RUNS},
            "torch": {"numProcPerNode": RUNS},
            "xgboost": RUNS,
        },
        "podGroupPolicy": {"coscheduling": {"scheduleTimeoutSeconds": ENDS}},
        "template": {"metadata": METADATA, "spec": JOB_SET_SPEC},
    },
}


def _parse_train_job(owner: KubeObject, manifests: Manifests) -> list[PodSet]:
    """Return the pods that train; initializers end before these start."""
    trainer, reference = owner.spec.get("trainer"), owner.spec.get("runtimeRef")
    runtime = find_runtime(owner, manifests)
    if runtime is None:
        reference.note("the runtime is not in the file, so only the trainer's own fields count")
        spec = trainer.regroup(resources=trainer.get("resourcesPerNode"))
        count = trainer.get("numNodes").integer(1, minimum=1)
        return [PodSet("node", count, trainer.regroup(spec=spec))]
    policy = runtime.spec.get("mlPolicy")
    rows = runtime.spec.get("template", "spec", "replicatedJobs").items()
    ended = {row.get("name").text() for row in rows if _find_step(row).endswith(_INITIALIZER)}
    for row in rows:
        for dependency in row.get("dependsOn").items():
            if dependency.get("name").value in list(ended):
                dependency.get("name").text()
                if dependency.get("status").value == "Complete":
                    dependency.get("status").text()
    return [pods for row in rows for pods in _parse_step(row, trainer, policy)]


def find_runtime(owner: KubeObject, manifests: Manifests) -> KubeObject | None:
    """Return the runtime in the file that a TrainJob refers to."""
    name = owner.spec.get("runtimeRef", "name").text()
    found = manifests.select(*RUNTIMES, group=GROUP)
    return next((item for item in found if item.name == name), None)


def find_volcano_policy(runtime: KubeObject) -> Field:
    """Return the settings of the PodGroup that Volcano gets for a TrainJob."""
    return runtime.spec.get("podGroupPolicy", "volcano")


def _find_step(row: Field) -> str:
    return row.get("template", "metadata", "labels").get(_STEP).text()


def _parse_step(row: Field, trainer: Field, policy: Field) -> list[PodSet]:
    """Return the pods of one replicated job of a runtime."""
    step = _find_step(row)
    if step.endswith(_INITIALIZER):
        row.raw()
        row.note(_ENDED)
        return []
    mark_start_order(row)
    name, job = row.get("name").text("node"), row.get("template", "spec")
    is_launcher_node = policy.get("mpi", "runLauncherAsNode").raw() is True
    nodes = trainer.get("numNodes").optional_integer(minimum=1)
    if policy.get("mpi").exists and name == "node" and nodes is not None:
        count = max(nodes - is_launcher_node, 1)
        _note_replaced(row.get("replicas"), job.get("parallelism"), job.get("completions"))
    elif step == "trainer":
        default = policy.get("numNodes").integer(1, minimum=1)
        count = default if nodes is None or policy.get("mpi").exists else nodes
        _note_replaced(row.get("replicas"), job.get("parallelism"), job.get("completions"))
    else:
        count = row.get("replicas").integer(1) * count_job_pods(job)
    template = job.get("template")
    if step == "trainer" or (is_launcher_node and name == "node"):
        template = _with_resources(template, trainer.get("resourcesPerNode"))
    return [PodSet(name, count, template)]


def _note_replaced(*fields: Field) -> None:
    for field in fields:
        count = field.optional_integer()
        if count is not None:
            field.note(f"{count} is replaced by the number of nodes")


def _with_resources(template: Field, resources: Field) -> Field:
    """Return a pod template whose container `node` has other resources, if they are given."""
    if not resources.exists:
        return template
    spec = template.get("spec")
    containers = spec.get("containers")
    rows = [_replace_resources(row, resources) for row in containers.items()]
    parts = dict(spec.entries()) | {"containers": containers.relist(rows)}
    return template.regroup(metadata=template.get("metadata"), spec=spec.regroup(**parts))


def _replace_resources(container: Field, resources: Field) -> Field:
    if container.get("name").value != _CONTAINER:
        return container
    for kind in ("limits", "requests"):
        for _, amount in container.get("resources", kind).entries():
            amount.note(f"{show(repr(amount.raw()))} is replaced by resourcesPerNode")
    return container.regroup(**dict(container.entries()) | {"resources": resources})


TRAIN_JOB: Final = WorkloadKind(_parse_train_job, _TRAIN_JOB)
