"""LeaderWorkerSets: a leader with its workers, in several replicas.

Source: kubernetes-sigs/lws v0.9.0, api/leaderworkerset/v1.
"""

from __future__ import annotations

from typing import Final

from generator.manifests.ignored_fields import FieldTable
from generator.manifests.kinds.metadata import METADATA, STATUS
from generator.manifests.kinds.pod_fields import ENDS, NAMES, POD_TEMPLATE
from generator.manifests.kinds.pod_sets import PodSet, WorkloadKind
from generator.manifests.objects import KubeObject, Manifests

_LEADER_WORKER_SET: Final[FieldTable] = {
    "metadata": METADATA,
    "status": STATUS,
    "spec": {
        "leaderWorkerTemplate": {
            "leaderTemplate": POD_TEMPLATE,
            "persistentVolumeClaimRetentionPolicy": "says when storage is deleted",
            "restartPolicy": ENDS,
            "workerTemplate": POD_TEMPLATE,
        },
        "networkConfig": NAMES,
        "rolloutStrategy": "says how pods are replaced by newer ones",
        "startupPolicy": "says when workers start, not where",
    },
}
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
