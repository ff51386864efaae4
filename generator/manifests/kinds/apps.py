"""StatefulSets, Deployments and ReplicaSets of Kubernetes.

Source: k8s.io/api v0.37.2, apps/v1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from generator.manifests.ignored_fields import FieldTable
from generator.manifests.kinds.metadata import METADATA, STATUS
from generator.manifests.kinds.pod_fields import NAMES, POD_TEMPLATE, PROBES
from generator.manifests.kinds.pod_sets import PodSet, WorkloadKind
from generator.manifests.objects import KubeObject, Manifests

_UPDATES: Final = "says how pods are replaced by newer ones"
_REPLICATED: Final[FieldTable] = {
    "metadata": METADATA,
    "status": STATUS,
    "spec": {
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
    },
}
"""Claims of volumes may matter, because a volume may be on some nodes only."""


def _parse_replicated(owner: KubeObject, _: Manifests) -> list[PodSet]:
    count = owner.spec.get("replicas").integer(1)
    return [PodSet("main", count, owner.spec.get("template"))]


def bound_each_pod(owner: KubeObject, tiers: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the tiers of a set whose pods are admitted one by one; None for other kinds.

    A bound then holds for each pod, not for all of them together. Kueue and KAI do so.
    """
    if (owner.group, owner.kind) not in {("apps", "Deployment"), ("apps", "ReplicaSet")}:
        return None
    owner.spec.get("replicas").note("each pod is a gang of its own; the answer is for all pods")
    return {"slices": [{"size": 1, "tier": tiers["required"]}]} if "required" in tiers else {}


REPLICATED: Final = WorkloadKind(_parse_replicated, _REPLICATED)
