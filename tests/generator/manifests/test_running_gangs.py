"""In a file of every system, of a gang of three pods two run on a rack: the third one joins them.

The tightest rack is another one, so a reader that places all pods again, or that forgets the pods
that run, gives another answer.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from generator.manifests.fields import Relevance
from generator.placement.cluster.nodes import NodeSpec, RunningGang, RunningPods
from generator.placement.cluster.snapshot import build_snapshot, with_running
from generator.placement.engine import place
from generator.placement.quantities import count_request
from generator.placement.request import parse_request
from tests.generator.manifests.scenes import GPU, pod_spec, translated
from tests.generator.placement.documents import racks

TEMPLATE = {"spec": pod_spec()}
Document = dict[str, Any]
LWS = "leaderworkerset.sigs.k8s.io"
JOB_SET = "jobset.sigs.k8s.io"
KUBEFLOW = "training.kubeflow.org"
IN_RACK = {"kueue.x-k8s.io/podset-required-topology": "rack"}


def pod(name: str, node: str = "", **fields: Any) -> Document:  # noqa: ANN401 - of a manifest
    marks = {key: fields.pop(key, {}) for key in ("labels", "annotations")}
    on = {"nodeName": node} if node else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **marks},
        "spec": pod_spec(**on, **fields),
        "status": {"phase": "Running" if node else "Pending"},
    }


def three(**fields: Any) -> list[Document]:  # noqa: ANN401 - of a manifest
    return [pod(f"w-{at}", node, **fields) for at, node in enumerate(("n5", "n6", ""))]


def made(version: str, kind: str, spec: Document, **annotations: str) -> Document:
    metadata = {"name": "g", "annotations": annotations}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def gather(key: str) -> dict[str, str]:
    strategy = {"gatherStrategy": [{"layer": "rack", "strategy": "MustGather"}]}
    return {key: json.dumps(strategy)}


KOORDINATOR = "gang.scheduling.koordinator.sh"
HARD = {"mode": "hard", "highestTierAllowed": 1}
GANGS: dict[str, list[Document]] = {
    "a PodGroup of Volcano": [
        made(
            "scheduling.volcano.sh/v1beta1",
            "PodGroup",
            {"minMember": 3, "networkTopology": HARD},
        ),
        *three(annotations={"scheduling.k8s.io/group-name": "g"}),
    ],
    "annotated pods of Volcano": three(
        annotations={
            "volcano.sh/network-topology-mode": "hard",
            "volcano.sh/network-topology-highest-tier": "1",
        }
    ),
    "a Job of Volcano": [
        made(
            "batch.volcano.sh/v1alpha1",
            "Job",
            {
                "minAvailable": 3,
                "networkTopology": HARD,
                "tasks": [
                    {"name": "m", "replicas": 1, "template": TEMPLATE},
                    {"name": "w", "replicas": 2, "template": TEMPLATE},
                ],
            },
        ),
        *(
            pod(
                f"g-{task}-{rank}",
                node,
                annotations={
                    "volcano.sh/job-name": "g",
                    "volcano.sh/task-spec": task,
                    "volcano.sh/task-index": rank,
                },
            )
            for task, rank, node in (("m", "0", "n5"), ("w", "1", "n6"), ("w", "0", ""))
        ),
    ],
    "a PodGroup of KAI": [
        made(
            "scheduling.run.ai/v2alpha2",
            "PodGroup",
            {
                "minMember": 3,
                "topologyConstraint": {"topology": "t", "requiredTopologyLevel": "rack"},
            },
        ),
        *three(annotations={"pod-group-name": "g"}, schedulerName="kai-scheduler"),
    ],
    "a PyTorchJob under KAI": [
        made(
            "kubeflow.org/v1",
            "PyTorchJob",
            {
                "pytorchReplicaSpecs": {
                    "Master": {"replicas": 1, "template": TEMPLATE},
                    "Worker": {"replicas": 2, "template": TEMPLATE},
                }
            },
            **{"kai.scheduler/topology-required-placement": "rack"},
        ),
        *(
            pod(
                f"g-{role}-{rank}",
                node,
                labels={
                    f"{KUBEFLOW}/job-name": "g",
                    f"{KUBEFLOW}/replica-type": role,
                    f"{KUBEFLOW}/replica-index": rank,
                },
            )
            for role, rank, node in (
                ("master", "0", "n5"),
                ("worker", "0", "n6"),
                ("worker", "1", ""),
            )
        ),
    ],
    "a PodGroup of Koordinator": [
        made(
            "scheduling.sigs.k8s.io/v1alpha1",
            "PodGroup",
            {"minMember": 3},
            **gather(f"{KOORDINATOR}/network-topology-spec"),
        ),
        *three(labels={"pod-group.scheduling.sigs.k8s.io": "g"}),
    ],
    "a PodGroup of Gödel": [
        made(
            "scheduling.godel.kubewharf.io/v1alpha1",
            "PodGroup",
            {
                "minMember": 3,
                "affinity": {"podGroupAffinity": {"required": [{"topologyKey": "rack"}]}},
            },
        ),
        *three(annotations={"godel.bytedance.com/pod-group-name": "g"}),
    ],
    "a PodGroup of Kubernetes": [
        made(
            "scheduling.k8s.io/v1alpha2",
            "PodGroup",
            {
                "schedulingPolicy": {"gang": {"minCount": 3}},
                "schedulingConstraints": {"topology": [{"key": "rack"}]},
            },
        ),
        *three(schedulingGroup={"podGroupName": "g"}),
    ],
    "a pod group of Kueue": three(
        labels={"kueue.x-k8s.io/pod-group-name": "g", "kueue.x-k8s.io/queue-name": "q"},
        annotations={"kueue.x-k8s.io/pod-group-total-count": "3", **IN_RACK},
    ),
    "a Job under Kueue": [
        made(
            "batch/v1",
            "Job",
            {
                "parallelism": 3,
                "completions": 3,
                "template": {"metadata": {"annotations": IN_RACK}, **TEMPLATE},
            },
        ),
        *three(labels={"job-name": "g"}),
    ],
    "a JobSet under Kueue": [
        made(
            "jobset.x-k8s.io/v1alpha2",
            "JobSet",
            {
                "replicatedJobs": [
                    {
                        "name": "w",
                        "replicas": 3,
                        "template": {
                            "spec": {
                                "parallelism": 1,
                                "completions": 1,
                                "template": {"metadata": {"annotations": IN_RACK}, **TEMPLATE},
                            }
                        },
                    }
                ]
            },
        ),
        *three(labels={f"{JOB_SET}/jobset-name": "g", f"{JOB_SET}/replicatedjob-name": "w"}),
    ],
    "a RayCluster under Kueue": [
        made(
            "ray.io/v1",
            "RayCluster",
            {
                "headGroupSpec": {
                    "template": {"metadata": {"annotations": IN_RACK}, **TEMPLATE},
                },
                "workerGroupSpecs": [
                    {
                        "groupName": "w",
                        "replicas": 2,
                        "template": {"metadata": {"annotations": IN_RACK}, **TEMPLATE},
                    }
                ],
            },
            **{"kueue.x-k8s.io/queue-name": "q"},
        ),
        *(
            pod(f"g-{at}", node, labels={"ray.io/cluster": "g", "ray.io/group": group})
            for at, (group, node) in enumerate((("headgroup", "n5"), ("w", "n6"), ("w", "")))
        ),
    ],
    "a LeaderWorkerSet": [
        made(
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            {
                "replicas": 1,
                "leaderWorkerTemplate": {
                    "size": 3,
                    "leaderTemplate": TEMPLATE,
                    "workerTemplate": TEMPLATE,
                },
            },
            **{f"{LWS}/exclusive-topology": "rack"},
        ),
        *(
            pod(
                f"g-{rank}",
                node,
                labels={f"{LWS}/name": "g", f"{LWS}/worker-index": rank, f"{LWS}/group-index": "0"},
            )
            for rank, node in (("0", "n5"), ("1", "n6"), ("2", ""))
        ),
    ],
}


@pytest.mark.parametrize("name", GANGS)
def test_the_pod_that_waits_joins_the_others_of(name: str) -> None:
    found = translated(*GANGS[name])
    nodes = {f"n{at}": NodeSpec(f"n{at}", {GPU: 8}) for at in range(8)}
    asked = parse_request(found.document)
    pods = [
        RunningPods(row.node, count_request(row.request), 1, row.group) for row in found.running
    ]
    running = RunningGang(asked.gang, tuple(pods))
    taken = RunningGang("other", (RunningPods("n0", {GPU: 8}),))
    snapshot = with_running(build_snapshot(racks(4, 4), nodes), running, taken)
    placed = [node for row in place(snapshot, asked).assignment.values() for node in row]
    assert len(placed) == 1
    assert placed[0] in {"n4", "n7"}
    assert [row.node for row in found.running] == ["n5", "n6"]
    assert not [row for row in found.ignored if row.relevance is Relevance.POSSIBLE]
