"""Workloads of Kueue: the sets of pods of a job, as Kueue admits them.

Source: kubernetes-sigs/kueue v0.19.2, apis/kueue/v1beta2.
"""

from __future__ import annotations

from typing import Final

from generator.manifests.fields import Field, FieldTable
from generator.manifests.kinds.object_fields import ENDS, POD_TEMPLATE, list_object_fields
from generator.manifests.kinds.pod_sets import Minimum, PodSet, WorkloadKind
from generator.manifests.objects import KubeObject, Manifests

_RANKS: Final = "says which label of the pods is their rank"
_WORKLOAD: Final[FieldTable] = list_object_fields(
    {
        "active": "says when the job starts, not where",
        "maximumExecutionTimeSeconds": ENDS,
        "podSets": {
            "template": POD_TEMPLATE,
            "topologyRequest": {
                "podIndexLabel": _RANKS,
                "subGroupCount": _RANKS,
                "subGroupIndexLabel": _RANKS,
            },
        },
        "preemptionGates": "says when other jobs are evicted",
        "priorityClassName": "orders the queue; the number is in priority",
        "priorityClassRef": "orders the queue; the number is in priority",
        "priorityClassSource": "orders the queue; the number is in priority",
        "queueName": "chooses a quota; the answer is for the nodes that you give",
    }
)


def _parse_workload(owner: KubeObject, _: Manifests) -> list[PodSet]:
    return [
        PodSet(
            row.get("name").text("main"),
            row.get("count").integer(1),
            row.get("template"),
            topology=row.get("topologyRequest"),
            minimum=_parse_min_count(row.get("minCount")),
        )
        for row in owner.spec.get("podSets").items()
    ]


def _parse_min_count(field: Field) -> Minimum | None:
    count = field.optional_integer(minimum=1)
    return None if count is None else Minimum(count, field)


WORKLOAD: Final = WorkloadKind(_parse_workload, _WORKLOAD)
