"""Jobs and CronJobs of Kubernetes.

Source: k8s.io/api v0.37.2, batch/v1.
"""

from __future__ import annotations

from typing import Final

from generator.manifests.fields import Field
from generator.manifests.ignored_fields import FieldTable
from generator.manifests.kinds.metadata import METADATA, STATUS
from generator.manifests.kinds.pod_fields import ENDS, POD_TEMPLATE
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
_JOB: Final[FieldTable] = {"metadata": METADATA, "spec": JOB_SPEC, "status": STATUS}
_CRON_JOB: Final[FieldTable] = {
    "metadata": METADATA,
    "status": STATUS,
    "spec": {
        "concurrencyPolicy": "says when jobs start, not where",
        "failedJobsHistoryLimit": ENDS,
        "jobTemplate": JOB_TEMPLATE,
        "schedule": "says when jobs start, not where",
        "startingDeadlineSeconds": "says when jobs start, not where",
        "successfulJobsHistoryLimit": ENDS,
        "suspend": "says when jobs start, not where",
        "timeZone": "says when jobs start, not where",
    },
}


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
