"""Workloads of Kubernetes itself: Jobs and CronJobs, StatefulSets, Deployments and ReplicaSets.

Source: k8s.io/api v0.37.2, batch/v1 and apps/v1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from generator.manifests.fields import Field, FieldTable
from generator.manifests.kinds.object_fields import (
    ENDS,
    METADATA,
    NAMES,
    POD_TEMPLATE,
    PROBES,
    list_object_fields,
)
from generator.manifests.kinds.pod_sets import PodSet, WorkloadKind
from generator.manifests.objects import KubeObject, Manifests

_COUNTS: Final = "says which pods count as done"
JOB_SPEC: Final[FieldTable] = {
    "activeDeadlineSeconds": ENDS,
    "backoffLimit": ENDS,
    "backoffLimitPerIndex": ENDS,
    "completionMode": _COUNTS,
    "manualSelector": "says which pods belong to the job",
    "maxFailedIndexes": ENDS,
    "podFailurePolicy": ENDS,
    "podReplacementPolicy": ENDS,
    "scheduling": {"disruptionMode": "says which pods are evicted together"},
    "selector": "says which pods belong to the job",
    "successPolicy": _COUNTS,
    "suspend": "says when the job starts, not where",
    "template": POD_TEMPLATE,
    "ttlSecondsAfterFinished": ENDS,
}
JOB_TEMPLATE: Final[FieldTable] = {"metadata": METADATA, "spec": JOB_SPEC}
_JOB: Final[FieldTable] = list_object_fields(JOB_SPEC)
_CRON_JOB: Final[FieldTable] = list_object_fields(
    {
        "concurrencyPolicy": "says when jobs start, not where",
        "failedJobsHistoryLimit": ENDS,
        "jobTemplate": JOB_TEMPLATE,
        "schedule": "says when jobs start, not where",
        "startingDeadlineSeconds": "says when jobs start, not where",
        "successfulJobsHistoryLimit": ENDS,
        "suspend": "says when jobs start, not where",
        "timeZone": "says when jobs start, not where",
    }
)


def count_job_pods(spec: Field) -> int:
    """Return how many pods of a Job run at once: no more than it has completions."""
    completions = spec.get("completions").optional_integer()
    count = spec.get("parallelism").integer(1)
    return count if completions is None else min(count, completions)


def _parse_job(owner: KubeObject, _: Manifests) -> list[PodSet]:
    return [PodSet("main", count_job_pods(owner.spec), owner.spec.get("template"))]


def _parse_cron_job(owner: KubeObject, _: Manifests) -> list[PodSet]:
    job = owner.spec.get("jobTemplate", "spec")
    return [PodSet("main", count_job_pods(job), job.get("template"))]


JOB: Final = WorkloadKind(_parse_job, _JOB)
CRON_JOB: Final = WorkloadKind(_parse_cron_job, _CRON_JOB)

_UPDATES: Final = "says how pods are replaced by newer ones"
_REPLICATED: Final[FieldTable] = list_object_fields(
    {
        "minReadySeconds": PROBES,
        "ordinals": NAMES,
        "paused": _UPDATES,
        "persistentVolumeClaimRetentionPolicy": "says when storage is deleted",
        "podManagementPolicy": "says in which order pods start",
        "progressDeadlineSeconds": _UPDATES,
        "revisionHistoryLimit": _UPDATES,
        "selector": "says which pods belong to the set",
        "serviceName": NAMES,
        "strategy": _UPDATES,
        "template": POD_TEMPLATE,
        "updateStrategy": _UPDATES,
    }
)
"""Claims of volumes may matter, because a volume may be on some nodes only."""


def _parse_replicated(owner: KubeObject, _: Manifests) -> list[PodSet]:
    count = owner.spec.get("replicas").integer(1)
    return [PodSet("main", count, owner.spec.get("template"))]


def limit_each_pod(owner: KubeObject, tiers: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the tiers of a Deployment or ReplicaSet as limits of each pod; None for other kinds.

    Kueue and KAI admit the pods of such a set one by one, so a tier limits each pod and not all of
    them together. A note on the field `replicas` says so.
    """
    if (owner.group, owner.kind) not in {("apps", "Deployment"), ("apps", "ReplicaSet")}:
        return None
    owner.spec.get("replicas").note("each pod is a gang of its own; the answer is for all pods")
    return {"slices": [{"size": 1, "tier": tiers["required"]}]} if "required" in tiers else {}


REPLICATED: Final = WorkloadKind(_parse_replicated, _REPLICATED)
