"""JobSets: several Jobs of each of several templates.

Source: kubernetes-sigs/jobset v0.12.0, api/jobset/v1alpha2.
"""

from __future__ import annotations

from typing import Final

from generator.manifests.fields import Field
from generator.manifests.ignored_fields import FieldTable
from generator.manifests.kinds.batch import JOB_TEMPLATE, count_job_pods
from generator.manifests.kinds.metadata import METADATA, STATUS
from generator.manifests.kinds.pod_fields import ENDS, NAMES
from generator.manifests.kinds.pod_sets import PodSet, WorkloadKind
from generator.manifests.objects import KubeObject, Manifests

_WHEN: Final = "says when jobs start, not where"
JOB_SET_SPEC: Final[FieldTable] = {
    "coordinator": NAMES,
    "failurePolicy": ENDS,
    "network": NAMES,
    "replicatedJobs": {
        "groupName": NAMES,
        "template": JOB_TEMPLATE,
    },
    "startupPolicy": _WHEN,
    "successPolicy": ENDS,
    "suspend": _WHEN,
    "ttlSecondsAfterFinished": ENDS,
}
_JOB_SET: Final[FieldTable] = {"metadata": METADATA, "spec": JOB_SET_SPEC, "status": STATUS}


def mark_start_order(job: Field) -> None:
    """Mark a dependency that only orders the start as read; one that waits for an end may matter.

    Jobs of which one waits for the end of the other do not run at the same time.
    """
    for row in job.get("dependsOn").items():
        if row.get("status").value == "Ready":
            row.get("name").text()
            row.get("status").text()


def _parse_job_set(owner: KubeObject, _: Manifests) -> list[PodSet]:
    sets = []
    for row in owner.spec.get("replicatedJobs").items():
        mark_start_order(row)
        spec = row.get("template", "spec")
        size = count_job_pods(spec)
        pods = PodSet(
            row.get("name").text("main"),
            row.get("replicas").integer(1) * size,
            spec.get("template"),
            size,
            job_annotations=row.get("template", "metadata", "annotations"),
        )
        sets.append(pods)
    return sets


JOB_SET: Final = WorkloadKind(_parse_job_set, _JOB_SET)
