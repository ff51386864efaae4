"""The training jobs of Kubeflow, version 1, and MPIJobs, with pods in roles.

The order of roles does not depend on the file: the operators give rank 0 to the master, and list
the launcher first if it has a rank. Kueue orders the sets of pods in the same way.

Source: kubeflow/training-operator v1.9.3 (envvar.go of each job, common/job.go for the gang),
kubeflow/mpi-operator v0.8.2 (newConfigMap, podgroup.go), kubernetes-sigs/kueue
pkg/controller/jobs/kubeflow and mpijob (OrderedReplicaTypes).
"""

from __future__ import annotations

from typing import Final

from generator.manifests.fields import ALL, Field, FieldTable, Row
from generator.manifests.kinds.object_fields import ENDS, POD_TEMPLATE, RUNS, list_object_fields
from generator.manifests.kinds.pod_sets import Minimum, PodSet, WorkloadKind
from generator.manifests.objects import KubeObject, Manifests

GROUP: Final = "kubeflow.org"
_ROLES: Final = ("launcher", "chief", "master", "ps", "worker", "evaluator")
"""The roles in the order of ranks."""
_LEADING: Final = frozenset({"launcher", "chief", "master"})
_GROWS: Final = "says how far the job may grow later"
_REPLICA_SPECS: Final[FieldTable] = {
    ALL: {"restartPolicy": ENDS, "template": POD_TEMPLATE},
}
_SPEC: Final[dict[str, Row]] = {
    "cleanPodPolicy": ENDS,
    "elasticPolicy": {
        "maxReplicas": _GROWS,
        "maxRestarts": ENDS,
        "metrics": _GROWS,
        "nProcPerNode": RUNS,
        "rdzvBackend": RUNS,
        "rdzvConf": RUNS,
        "rdzvHost": RUNS,
        "rdzvId": RUNS,
        "rdzvPort": RUNS,
        "standalone": RUNS,
    },
    "enableDynamicWorker": RUNS,
    "launcherCreationPolicy": "says when the launcher starts, not where",
    "mainContainer": RUNS,
    "mpiImplementation": RUNS,
    "nprocPerNode": RUNS,
    "runPolicy": {
        "activeDeadlineSeconds": ENDS,
        "backoffLimit": ENDS,
        "cleanPodPolicy": ENDS,
        "schedulingPolicy": {
            "minResources": "says when the job starts, not where",
            "queue": "chooses a quota; the answer is for the nodes that you give",
            "scheduleTimeoutSeconds": ENDS,
        },
        "suspend": "says when the job starts, not where",
        "ttlSecondsAfterFinished": ENDS,
    },
    "slotsPerWorker": RUNS,
    "sshAuthMountPath": RUNS,
    "successPolicy": ENDS,
}
"""A class of priority and another controller may matter."""
REPLICA_KEYS: Final = {
    "JAXJob": "jaxReplicaSpecs",
    "MPIJob": "mpiReplicaSpecs",
    "PaddleJob": "paddleReplicaSpecs",
    "PyTorchJob": "pytorchReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
}
"""By kind: the field with the roles."""


def _parse_roles(owner: KubeObject, _: Manifests) -> list[PodSet]:
    rows = owner.spec.get(REPLICA_KEYS[owner.kind])
    takes_part = owner.spec.get("runLauncherAsWorker")
    if owner.kind == "MPIJob" and takes_part.raw() is not True:
        takes_part.note("the launcher has no rank of MPI, but is first in a host list")
    sets = []
    for role, row in rows.entries():
        name, count = role.lower(), row.get("replicas").integer(1)
        sets.append(PodSet(name, count, row.get("template"), is_leading=name in _LEADING))
    return sorted(sets, key=lambda pods: _find_rank(pods.name))


def _find_rank(role: str) -> int:
    return _ROLES.index(role) if role in _ROLES else len(_ROLES)


def _parse_minimum(owner: KubeObject) -> Minimum | None:
    """Return the minimum of the gang, else the minimum below which an elastic job does not run."""
    elastic = owner.spec.get("elasticPolicy", "minReplicas")
    fields = (find_gang_minimum(owner), elastic)
    rows = [(field, field.optional_integer()) for field in fields]
    return next((Minimum(count, field) for field, count in rows if count is not None), None)


def find_gang_minimum(owner: KubeObject) -> Field:
    """Return the field from which the operators set the minimum of a PodGroup."""
    return owner.spec.get("runPolicy", "schedulingPolicy", "minAvailable")


KUBEFLOW_JOBS: Final = {
    kind: WorkloadKind(
        _parse_roles, list_object_fields({**_SPEC, key: _REPLICA_SPECS}), _parse_minimum
    )
    for kind, key in REPLICA_KEYS.items()
}
"""By kind."""
