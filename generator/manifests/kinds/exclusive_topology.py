"""Exclusive topology of JobSet and LeaderWorkerSet: a domain that one job has alone.

Source: kubernetes-sigs/jobset, api/jobset/v1alpha2 (ExclusiveKey); kubernetes-sigs/lws,
api/leaderworkerset/v1 (ExclusiveKeyAnnotationKey).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from generator.manifests.kinds.pod_sets import PodSet, Workload
from generator.manifests.tier_names import LevelNames

JOB_SET_KEY: Final = "alpha.jobset.sigs.k8s.io/exclusive-topology"
LEADER_WORKER_SET_KEY: Final = "leaderworkerset.sigs.k8s.io/exclusive-topology"


def add_exclusive_tiers(
    spec: Mapping[str, Any], workload: Workload, levels: LevelNames
) -> dict[str, Any]:
    """Return the spec with the exclusive tiers that the annotations of its workload set.

    Args:
        spec: of the request; a group per set of pods, in the same order.
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
    """Return a group of which each job is one slice, alone in a domain of a tier."""
    layer = {"size": pods.replica_size or pods.count, "tier": tier, "placement": "spread"}
    inner = [layer for layer in row.get("slices", []) if layer.get("tier") != tier]
    return {**row, "slices": [layer, *inner], "exclusive": tier}
