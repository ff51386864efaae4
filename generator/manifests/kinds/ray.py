"""Ray clusters, jobs and services of KubeRay: a head, and groups of workers.

Source: ray-project/kuberay v1.6.2 (ray-operator/apis/ray/v1, controllers/ray/utils/util.go,
common/job.go, common/pod.go), and Kueue's pkg/controller/jobs/raycluster and rayjob.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from generator.manifests.fields import Field, FieldTable
from generator.manifests.kinds.object_fields import (
    ACCOUNT,
    ENDS,
    NAMES,
    POD_TEMPLATE,
    RUNS,
    list_object_fields,
)
from generator.manifests.kinds.pod_sets import Minimum, PodSet, WorkloadKind
from generator.manifests.objects import KubeObject, Manifests

GROUP: Final = "ray.io"
_WHEN: Final = "says when the cluster starts, not where"
_GROWS: Final = "says how far the cluster may grow later"
_LOGICAL: Final = "is a resource of Ray, not of the pods"
_AUTOSCALER: Final[Mapping[str, Any]] = {"cpu": "500m", "memory": "512Mi"}
_SUBMITTER: Final[Mapping[str, Any]] = {"cpu": "500m", "memory": "200Mi"}
"""Requests of containers that KubeRay adds."""
_CLUSTER_SPEC: Final[FieldTable] = {
    "authOptions": ACCOUNT,
    "autoscalerOptions": {
        "env": RUNS,
        "envFrom": RUNS,
        "idleTimeoutSeconds": _GROWS,
        "image": RUNS,
        "imagePullPolicy": RUNS,
        "securityContext": ACCOUNT,
        "upscalingMode": _GROWS,
        "version": RUNS,
        "volumeMounts": RUNS,
    },
    "gcsFaultToleranceOptions": "says where Ray keeps its state",
    "headGroupSpec": {
        "enableIngress": NAMES,
        "headService": NAMES,
        "labels": _LOGICAL,
        "rayStartParams": RUNS,
        "resources": _LOGICAL,
        "serviceType": NAMES,
        "template": POD_TEMPLATE,
    },
    "headServiceAnnotations": NAMES,
    "rayVersion": RUNS,
    "suspend": _WHEN,
    "upgradeStrategy": "says how pods are replaced by newer ones",
    "workerGroupSpecs": {
        "idleTimeoutSeconds": _GROWS,
        "labels": _LOGICAL,
        "maxReplicas": _GROWS,
        "rayStartParams": RUNS,
        "resources": _LOGICAL,
        "scaleStrategy": "says which running workers go first",
        "template": POD_TEMPLATE,
    },
}
_CLUSTER: Final[FieldTable] = list_object_fields(_CLUSTER_SPEC)
_JOB: Final[FieldTable] = list_object_fields(
    {
        "activeDeadlineSeconds": ENDS,
        "backoffLimit": ENDS,
        "deletionStrategy": ENDS,
        "entrypoint": RUNS,
        "entrypointNumCpus": _LOGICAL,
        "entrypointNumGpus": _LOGICAL,
        "entrypointResources": _LOGICAL,
        "jobId": RUNS,
        "metadata": RUNS,
        "preRunningDeadlineSeconds": ENDS,
        "rayClusterSpec": _CLUSTER_SPEC,
        "runtimeEnvYAML": RUNS,
        "shutdownAfterJobFinishes": ENDS,
        "submitterConfig": ENDS,
        "submitterPodTemplate": POD_TEMPLATE,
        "suspend": _WHEN,
        "ttlSecondsAfterFinished": ENDS,
    }
)
_SERVICE: Final[FieldTable] = list_object_fields(
    {
        "deploymentUnhealthySecondThreshold": ENDS,
        "excludeHeadPodFromServeSvc": NAMES,
        "rayClusterConfig": _CLUSTER_SPEC,
        "rayClusterDeletionDelaySeconds": ENDS,
        "serveConfigV2": RUNS,
        "serveService": NAMES,
        "serviceUnhealthySecondThreshold": ENDS,
    }
)
"""An upgrade that starts a second cluster, and another controller, may matter."""


def _parse_cluster_spec(spec: Field, added: Sequence[Mapping[str, Any]] = ()) -> list[PodSet]:
    """Return the head and the groups of workers.

    Args:
        spec: the spec of a RayCluster.
        added: requests of further containers that KubeRay adds to the head.
    """
    is_elastic = spec.get("enableInTreeAutoscaling").raw() is True
    if is_elastic:
        added = (_parse_autoscaler(spec.get("autoscalerOptions", "resources")), *added)
    head = spec.get("headGroupSpec", "template")
    sets = [PodSet("head", 1, head, added=tuple(added), is_leading=True)]
    for index, row in enumerate(spec.get("workerGroupSpecs").items()):
        if row.get("suspend").raw() is True:
            row.note("is not placed, because it is suspended")
            row.raw()
            continue
        minimum = _parse_minimum(row)
        num_hosts = row.get("numOfHosts").integer(1, minimum=1)
        sets.append(
            PodSet(
                row.get("groupName").text(f"worker-group-{index}"),
                _count_replicas(row) * num_hosts,
                row.get("template"),
                num_hosts,
                minimum=minimum if is_elastic else None,
            )
        )
    return sets


def _count_replicas(row: Field) -> int:
    """Return the replicas of a group of workers, limited by its minimum and maximum."""
    fewest, most = row.get("minReplicas").integer(0), row.get("maxReplicas")
    replicas = max(row.get("replicas").integer(0), fewest)
    if isinstance(most.value, int) and most.value < replicas:
        return most.integer(0)
    return replicas


def _parse_minimum(row: Field) -> Minimum | None:
    fewest = row.get("minReplicas")
    count = fewest.integer(0) * row.get("numOfHosts").integer(1, minimum=1)
    return Minimum(count, fewest) if count else None


def find_minimums(owner: KubeObject) -> dict[str, Minimum]:
    """Return the minimum of each group of workers, with or without autoscaling."""
    specs = (owner.spec.get(*_CLUSTER_PATHS[owner.kind]).get("workerGroupSpecs")).items()
    rows = [(row.get("groupName").text(f"worker-group-{at}"), row) for at, row in enumerate(specs)]
    found = [(name, _parse_minimum(row)) for name, row in rows]
    return {name: minimum for name, minimum in found if minimum is not None}


def _parse_autoscaler(resources: Field) -> Mapping[str, Any]:
    if not resources.exists:
        return _AUTOSCALER
    return {name: amount.raw() for name, amount in resources.get("requests").entries()}


def _parse_cluster(owner: KubeObject, _: Manifests) -> list[PodSet]:
    return _parse_cluster_spec(owner.spec.get(*_CLUSTER_PATHS[owner.kind]))


def _parse_job(owner: KubeObject, _: Manifests) -> list[PodSet]:
    """Return the pods of the cluster, and the one that submits the job."""
    selector, spec = owner.spec.get("clusterSelector"), owner.spec.get("rayClusterSpec")
    if selector.exists:
        raise selector.build_error("expected a RayJob with a cluster of its own")
    mode = owner.spec.get("submissionMode").text("K8sJobMode")
    if mode != "K8sJobMode":
        return _parse_cluster_spec(spec, [_SUBMITTER] if mode == "SidecarMode" else ())
    template = owner.spec.get("submitterPodTemplate")
    added: tuple[Mapping[str, Any], ...] = ()
    if not template.exists:
        template, added = Field({"spec": {}}, template.path, template.notes), (_SUBMITTER,)
    submitter = PodSet("submitter", 1, template, added=added, joins_later=True)
    return [*_parse_cluster_spec(spec), submitter]


_CLUSTER_PATHS: Final[Mapping[str, tuple[str, ...]]] = {
    "RayCluster": (),
    "RayJob": ("rayClusterSpec",),
    "RayService": ("rayClusterConfig",),
}
RAY_CLUSTER: Final = WorkloadKind(_parse_cluster, _CLUSTER)
RAY_JOB: Final = WorkloadKind(_parse_job, _JOB)
RAY_SERVICE: Final = WorkloadKind(_parse_cluster, _SERVICE)
