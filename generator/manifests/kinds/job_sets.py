"""JobSets and LeaderWorkerSets, and the domains that each keeps for one of its jobs.

A JobSet has several Jobs of each of several templates, a LeaderWorkerSet a leader with its workers
in several replicas.

Source: kubernetes-sigs/jobset v0.12.0, api/jobset/v1alpha2 (ExclusiveKey); kubernetes-sigs/lws
v0.9.0, api/leaderworkerset/v1 (ExclusiveKeyAnnotationKey).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from generator.manifests.fields import Field, FieldTable
from generator.manifests.kinds.core_workloads import JOB_TEMPLATE, count_job_pods
from generator.manifests.kinds.object_fields import ENDS, NAMES, POD_TEMPLATE, list_object_fields
from generator.manifests.kinds.pod_sets import PodSet, Workload, WorkloadKind
from generator.manifests.objects import KubeObject, Manifests
from generator.manifests.tier_names import LevelNames

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


def mark_start_order(job: Field) -> None:
    """Mark a dependency as read if it only orders the start; a wait for an end may matter.

    If a job waits for the end of another job, the two do not run at the same time.
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


JOB_SET: Final = WorkloadKind(_parse_job_set, list_object_fields(JOB_SET_SPEC))

_LEADER_WORKER_SET: Final[FieldTable] = list_object_fields(
    {
        "leaderWorkerTemplate": {
            "leaderTemplate": POD_TEMPLATE,
            "persistentVolumeClaimRetentionPolicy": "says when storage is deleted",
            "restartPolicy": ENDS,
            "workerTemplate": POD_TEMPLATE,
        },
        "networkConfig": NAMES,
        "rolloutStrategy": "says how pods are replaced by newer ones",
        "startupPolicy": "says when workers start, not where",
    }
)
"""Subgroups may matter, because KAI and an exclusive topology place each of them."""


def _parse_leader_worker_set(owner: KubeObject, _: Manifests) -> list[PodSet]:
    """Return the sets of one replica; each replica is a separate gang."""
    spec = owner.spec.get("leaderWorkerTemplate")
    size = spec.get("size").integer(1, minimum=1)
    replicas = owner.spec.get("replicas")
    if not replicas.integer(1):
        return []
    if replicas.integer(1) != 1:
        replicas.note("each replica is a separate gang; the answer is for one replica")
    worker, leader = spec.get("workerTemplate"), spec.get("leaderTemplate")
    if not leader.exists:
        return [PodSet("worker", size, worker)]
    return [PodSet("leader", 1, leader, is_leading=True), PodSet("worker", size - 1, worker)]


LEADER_WORKER_SET: Final = WorkloadKind(_parse_leader_worker_set, _LEADER_WORKER_SET)

JOB_SET_KEY: Final = "alpha.jobset.sigs.k8s.io/exclusive-topology"
LEADER_WORKER_SET_KEY: Final = "leaderworkerset.sigs.k8s.io/exclusive-topology"


def add_exclusive_tiers(
    spec: Mapping[str, Any], workload: Workload, levels: LevelNames
) -> dict[str, Any]:
    """Return the spec with the exclusive tiers that the annotations of its workload set.

    Args:
        spec: the spec of the request; a group per set of pods, in the same order.
        workload: the workload of the file.
        levels: tiers by label key.
    """
    replica_tier = levels.find_tier(workload.owner.annotations.get(LEADER_WORKER_SET_KEY))
    if replica_tier:
        return {**spec, "required": replica_tier, "exclusive": replica_tier}
    owner_tier = levels.find_tier(workload.owner.annotations.get(JOB_SET_KEY))
    tiers = [_find_job_tier(pods, levels) or owner_tier for pods in workload.sets]
    groups = [
        _make_jobs_exclusive(row, pods, tier) if tier else row
        for row, pods, tier in zip(spec["groups"], workload.sets, tiers, strict=True)
    ]
    distinct = set(tiers)
    exclusive = {"exclusive": distinct.pop()} if len(distinct) == 1 and tiers[0] else {}
    return {**spec, "groups": groups, **exclusive}


def _find_job_tier(pods: PodSet, levels: LevelNames) -> str:
    annotations = pods.job_annotations
    return "" if annotations is None else levels.find_tier(annotations.get(JOB_SET_KEY))


def _make_jobs_exclusive(row: Mapping[str, Any], pods: PodSet, tier: str) -> dict[str, Any]:
    """Return a group in which each job is one slice, alone in a domain of a tier."""
    layer = {"size": pods.replica_size or pods.count, "tier": tier, "placement": "spread"}
    inner = [layer for layer in row.get("slices", []) if layer.get("tier") != tier]
    return {**row, "slices": [layer, *inner], "exclusive": tier}
