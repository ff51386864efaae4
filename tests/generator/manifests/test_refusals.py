"""Malformed manifests are refused with the document, the path and the expected value."""

from __future__ import annotations

from typing import Any

import pytest

from tests.generator.manifests.scenes import job, pod, pod_spec, spec_of, translated, volcano_job
from topology.model.errors import PlacementRequestError

KUEUE = "kueue.x-k8s.io/"
VOLCANO_GROUP = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
KAI_GROUP = {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup"}
KOORDINATOR = "gang.scheduling.koordinator.sh/network-topology-spec"


def kueue_job(**annotations: str) -> dict[str, Any]:
    named = {KUEUE + key.replace("_", "-"): value for key, value in annotations.items()}
    return job(annotations=named)


def kai_group(*subgroups: dict[str, Any]) -> dict[str, Any]:
    return KAI_GROUP | {"metadata": {"name": "g"}, "spec": {"subGroups": list(subgroups)}}


REFUSED = [
    pytest.param(
        [job(parallelism="four")],
        "Job 'train' (line 1): spec.parallelism: expected an integer, got 'four'",
        id="a count in words",
    ),
    pytest.param(
        [job(parallelism=-1)],
        "spec.parallelism: expected an integer from 0 to 1000000, got -1",
        id="a negative count",
    ),
    pytest.param([job(parallelism=0)], "Job 'train' (line 1): has no pods to place", id="no pod"),
    pytest.param(
        [job(parallelism=True)], "expected an integer, got True", id="a truth for a count"
    ),
    pytest.param([job(template=[])], "template: expected a mapping, got []", id="a list of fields"),
    pytest.param(
        [job(template={"spec": {"containers": [{"resources": {"requests": {"cpu": "x"}}}]}})],
        "containers[0].resources.requests.cpu: expected a quantity such as 8",
        id="no quantity",
    ),
    pytest.param(
        [job(template={"spec": {"containers": {"name": "c"}}})],
        "containers: expected a list",
        id="a mapping for a list",
    ),
    pytest.param(
        [job("a"), job("b")],
        "Job 'b' (line 2): the file has 2 workloads, but one is placed at a time: Job 'a'",
        id="two workloads",
    ),
    pytest.param([{"kind": "Job"}], "line 1: expected an object with apiVersion", id="no version"),
    pytest.param([[1]], "line 1: expected an object, got list", id="a list"),
    pytest.param(
        [{"apiVersion": "v1", "kind": "Secret"}],
        "the file: expected a workload, a PodGroup or pods, got Secret",
        id="nothing to place",
    ),
    pytest.param(
        [volcano_job([{"replicas": 2}, {"replicas": 1}], minAvailable=4)],
        "Job 'v' (line 1): spec.minAvailable: expected at most 3, the replicas of all tasks, got 4",
        id="Volcano: a minimum above all replicas",
    ),
    pytest.param(
        [volcano_job([{"replicas": 2}], networkTopology={"mode": "firm"})],
        "Job 'v' (line 1): spec.networkTopology.mode: expected hard or soft, got 'firm'",
        id="Volcano: an unknown mode",
    ),
    pytest.param(
        [
            volcano_job(
                [{"replicas": 2}],
                networkTopology={"highestTierAllowed": 1, "highestTierName": "leaf"},
            )
        ],
        "spec.networkTopology: highestTierAllowed and highestTierName exclude each other",
        id="Volcano: a tier by number and by name",
    ),
    pytest.param(
        [
            volcano_job(
                [
                    {
                        "replicas": 5,
                        "partitionPolicy": {"totalPartitions": 2, "partitionSize": 2},
                    }
                ]
            )
        ],
        "tasks[0].partitionPolicy: 2 partitions of 2 pods do not add up to 5 replicas",
        id="Volcano: partitions that do not add up",
    ),
    pytest.param(
        [volcano_job([{"name": "w", "replicas": 2}, {"name": "w", "replicas": 3}])],
        "Job 'v' (line 1): two sets of pods have the name 'w'",
        id="Volcano: two tasks of one name",
    ),
    pytest.param(
        [VOLCANO_GROUP | {"spec": {}}, VOLCANO_GROUP | {"spec": {}}],
        "the file has 2 PodGroups",
        id="Volcano: two PodGroups",
    ),
    pytest.param(
        [
            volcano_job([{"name": "w", "replicas": 1}])
            | {
                "metadata": {
                    "name": "v",
                    "annotations": {"volcano.sh/task-topology-affinity": "w,ps"},
                }
            }
        ],
        "task-topology: no task has the name 'ps'",
        id="Volcano: a role that no task has",
    ),
    pytest.param(
        [{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "JobTemplate", "spec": {}}],
        "JobTemplate '' (line 1): expected a Job, a PodGroup, a workload or pods, got JobTemplate",
        id="Volcano: a kind without pods",
    ),
    pytest.param(
        [kueue_job(podset_required_topology="leaf", podset_preferred_topology="leaf")],
        "required, preferred and unconstrained exclude each other",
        id="Kueue: required and preferred",
    ),
    pytest.param(
        [kueue_job(podset_slice_required_topology="leaf")],
        "podset-slice-size']: is required with podset-slice-required-topology",
        id="Kueue: slices without a size",
    ),
    pytest.param(
        [kueue_job(podset_slice_required_topology="leaf", podset_slice_size="two")],
        "podset-slice-size']: expected an integer from 1 to 1000000, got 'two'",
        id="Kueue: a size in words",
    ),
    pytest.param(
        [kueue_job(podset_slice_required_topology_constraints="[{")],
        "expected a list in JSON",
        id="Kueue: layers that are no JSON",
    ),
    pytest.param(
        [kueue_job(podset_slice_required_topology_constraints='[{"topology": "a", "size": "2"}]')],
        "constraints'][0].size: expected an integer, got '2'",
        id="Kueue: a layer's size as text",
    ),
    pytest.param(
        [kueue_job(podset_slice_required_topology_constraints="[1, 2, 3, 4]")],
        "expected 1 to 3 layers",
        id="Kueue: four layers",
    ),
    pytest.param(
        [kueue_job(podset_group_name="g")],
        "podset-group-name']: expected two sets in group g, one of them of one pod",
        id="Kueue: a leader without workers",
    ),
    pytest.param(
        [kai_group({"name": "a", "parent": "b"}, {"name": "b", "parent": "a"})],
        "subGroups[0].parent: expected the name of a parent subgroup, got 'b'",
        id="KAI: subgroups in a circle",
    ),
    pytest.param(
        [kai_group({"name": "a"}, {"name": "a"})],
        "subGroups[0].name: expected a unique name",
        id="KAI: two subgroups of one name",
    ),
    pytest.param(
        [kai_group({"name": "a"}), pod("p", labels={"kai.scheduler/subgroup-name": "z"})],
        "Pod 'p' (line 2): no subgroup is named 'z'",
        id="KAI: a pod of no subgroup",
    ),
    pytest.param(
        [job() | {"metadata": {"annotations": {"gang.scheduling.koordinator.sh/name": 1}}}],
        "expected a string, got 1",
        id="Koordinator: a name that is no text",
    ),
    pytest.param(
        [pod("p", annotations={KOORDINATOR: "{"})],
        "network-topology-spec']: expected an object in JSON",
        id="Koordinator: a strategy that is no JSON",
    ),
    pytest.param(
        [pod("p", annotations={KOORDINATOR: '{"gatherStrategy": [{"strategy": "Gather"}]}'})],
        "gatherStrategy[0]: expected a layer, and MustGather or PreferGather",
        id="Koordinator: an unknown strategy",
    ),
    pytest.param(
        [
            {
                "apiVersion": "scheduling.godel.kubewharf.io/v1alpha1",
                "kind": "PodGroup",
                "spec": {"affinity": {"podGroupAffinity": {"sortRules": [{"resource": "Disk"}]}}},
            }
        ],
        "sortRules[0]: expected resource GPU, CPU or Memory",
        id="Godel: a rule that would be void",
    ),
]


@pytest.mark.parametrize(("documents", "why"), REFUSED)
def test_it_refuses(documents: list[object], why: str) -> None:
    with pytest.raises(PlacementRequestError) as caught:
        translated(*documents)
    assert why in str(caught.value)
    assert str(caught.value).count(", got ") <= 1


def test_it_names_each_document_by_its_line() -> None:
    with pytest.raises(PlacementRequestError, match=r"Pod 'q' \(line 2\): spec: is missing"):
        spec_of(pod("p"), {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "q"}})


def test_it_handles_deeply_nested_documents() -> None:
    deep: object = "bottom"
    for _ in range(900):
        deep = [deep]
    with pytest.raises(PlacementRequestError, match="expected an integer"):
        translated(job(parallelism=deep))
    assert translated(job(template={"spec": pod_spec(affinity=None, volumes=deep)})).ignored
