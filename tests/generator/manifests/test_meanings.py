"""Translations of single fields of other systems, which a whole fixture would hide."""

from __future__ import annotations

from typing import Any

import pytest

from generator.manifests.fields import Field, Relevance, find_ignored
from generator.manifests.objects import read_objects
from generator.manifests.resource_units import fit_units
from generator.manifests.tier_names import LevelNames
from tests.generator.manifests.scenes import (
    GPU,
    job,
    pod,
    pod_spec,
    spec_of,
    translated,
    volcano_job,
)
from topology.model.errors import PlacementRequestError

VOLCANO_GROUP = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}

LEVELS = [
    pytest.param("kubernetes.io/hostname", "node", id="the label of a node's name"),
    pytest.param("NodeTopologyLayer", "node", id="Koordinator's layer of nodes"),
    pytest.param("example.com/gpu-rack", "example.com/gpu-rack", id="a label key"),
    pytest.param("topology.toponaut.io/leaf", "topology.toponaut.io/leaf|leaf", id="our key"),
    pytest.param("BlockLayer", "BlockLayer|block", id="a layer, as our output names it"),
    pytest.param("TopOfRackLayer", "TopOfRackLayer|top-of-rack", id="a layer of several words"),
    pytest.param("leaf", "leaf", id="a tier of ours"),
    pytest.param("2", "label 2", id="a label key of digits, which is no number of a tier"),
    pytest.param("mini pod", "mini pod", id="words of a name that is no key"),
]


@pytest.mark.parametrize(("name", "tier"), LEVELS)
def test_it_reads_as_a_tier(name: str, tier: str) -> None:
    assert LevelNames().find_tier(Field(name, "level")) == tier


def test_it_prefers_the_users_tier_of_a_level() -> None:
    field = Field("example.com/rack", "level")
    levels = LevelNames({"example.com/rack": "leaf"})
    levels.add_levels([("example.com/rack",), ("kubernetes.io/hostname",)])
    assert levels.find_tier(field) == "example.com/rack|leaf|1"
    assert field.notes == []


def test_it_counts_levels_of_a_topology_from_the_bottom() -> None:
    levels = LevelNames()
    levels.add_levels([("zone",), ("rack",), ("kubernetes.io/hostname",)])
    fields = [Field(name, "") for name in ("zone", "rack")]
    assert [levels.find_tier(field) for field in fields] == ["zone|2", "rack|1"]
    assert "is tier 2 by the levels of this file" in str(fields[0].notes[0])


TOPOLOGIES = [
    pytest.param(
        "Topology",
        {"levels": [{"nodeLabel": "block", "alias": "b"}, {"nodeLabel": "rack", "alias": "r"}]},
        "r",
        id="KAI: an alias",
    ),
    pytest.param(
        "ClusterTopologyBinding",
        {"levels": [{"domain": "b", "key": "block"}, {"domain": "r", "key": "rack"}]},
        "r",
        id="Grove: a domain",
    ),
    pytest.param(
        "ClusterNetworkTopology",
        {
            "networkTopologySpec": [
                {"topologyLayer": "NodeTopologyLayer", "parentTopologyLayer": "r"},
                {"topologyLayer": "r", "parentTopologyLayer": "b", "labelKey": ["rack"]},
                {"topologyLayer": "b", "labelKey": ["block"]},
            ]
        },
        "r",
        id="Koordinator: a layer below one without a parent",
    ),
]


@pytest.mark.parametrize(("kind", "spec", "name"), TOPOLOGIES)
def test_it_takes_a_name_of_a_level_for_its_label_key(
    kind: str, spec: dict[str, Any], name: str
) -> None:
    document = {"apiVersion": "x/v1", "kind": kind, "metadata": {"name": "t"}, "spec": spec}
    manifests = read_objects([(1, document)], LevelNames())
    assert manifests.levels.find_tier(Field(name, "level")) == f"{name}|rack|1"
    assert {row.path for row in find_ignored(manifests.objects[0].spec, None)} == set()


@pytest.mark.parametrize("name", ["a|leaf", "a&leaf", "<=1"])
def test_it_refuses_a_name_that_a_request_reads_as_several(name: str) -> None:
    with pytest.raises(PlacementRequestError, match="expected the name of a level"):
        LevelNames().find_tier(Field(name, "level"))


PODS = [
    pytest.param(
        {"containers": [{"resources": {"requests": {"cpu": "500m"}}}] * 3},
        {"cpu": "1500m"},
        id="the sum of its containers",
    ),
    pytest.param(
        {"containers": [{"resources": {"requests": {"cpu": "1.5", "memory": "1.5Ki"}}}] * 2},
        {"cpu": 3, "memory": 3072},
        id="fractions that sum to whole numbers",
    ),
    pytest.param(
        {"containers": [{"resources": {"requests": {"cpu": "100500u", "memory": "1500m"}}}]},
        {"cpu": "101m", "memory": 2},
        id="what is finer than its unit, rounded up",
    ),
    pytest.param(
        {"containers": [{"resources": {"limits": {GPU: "8"}}}]}, {GPU: 8}, id="limits alone"
    ),
    pytest.param(
        {"initContainers": [{"resources": {"requests": {"cpu": 9}}}]} | pod_spec(),
        {"cpu": 9, GPU: 8},
        id="the largest of its init containers",
    ),
    pytest.param(
        {
            "initContainers": [
                {"restartPolicy": "Always", "resources": {"requests": {"cpu": 1}}},
                {"resources": {"requests": {"cpu": 2}}},
            ],
            "containers": [{"resources": {"requests": {"cpu": 1}}}],
        },
        {"cpu": 3},
        id="an init container beside a sidecar that has started",
    ),
    pytest.param(pod_spec(overhead={"cpu": 2}), {"cpu": 2, GPU: 8}, id="the overhead"),
    pytest.param(
        pod_spec(resources={"requests": {GPU: 4}}), {GPU: 4}, id="what it says as a whole"
    ),
    pytest.param({"containers": [{}]}, {"slots": 1}, id="a slot without resource requests"),
]


@pytest.mark.parametrize(("spec", "request_"), PODS)
def test_it_computes_the_request_of_a_pod(spec: dict[str, Any], request_: dict[str, int]) -> None:
    assert spec_of(job(template={"spec": spec}))["groups"][0]["request"] == request_


def test_it_drops_task_minimums_above_the_jobs_minimum() -> None:
    tasks = [{"name": "a", "replicas": 2}, {"name": "b", "replicas": 4, "minAvailable": 3}]
    loose = spec_of(volcano_job(tasks, minAvailable=2))
    strict = spec_of(volcano_job(tasks, minAvailable=5))
    assert [row["min"] for row in loose["groups"]] == [0, 0]
    assert [row["min"] for row in strict["groups"]] == [2, 3]
    assert (loose["min"], strict["min"]) == (2, 5)


@pytest.mark.parametrize(
    ("topology", "tiers"),
    [
        pytest.param({"highestTierAllowed": 2}, {"required": "<=2"}, id="hard is the default"),
        pytest.param({"highestTierAllowed": 0}, {"required": "<=0"}, id="the lowest number"),
        pytest.param({"highestTierName": "spine"}, {"required": "spine"}, id="a tier's name"),
        pytest.param({"mode": "soft"}, {"preferred": ["1"]}, id="soft"),
        pytest.param({"mode": "hard"}, {}, id="hard without a tier"),
    ],
)
def test_it_reads_volcanos_topology(topology: dict[str, Any], tiers: dict[str, Any]) -> None:
    spec = spec_of(volcano_job([{"replicas": 2}], networkTopology=topology))
    assert {key: spec[key] for key in ("required", "preferred") if key in spec} == tiers


def test_it_sets_the_tiers_of_subgroups_without_pods() -> None:
    policy = {
        "name": "stage",
        "subGroupSize": 4,
        "minSubGroups": 3,
        "networkTopology": {"highestTierAllowed": 1},
    }
    group = VOLCANO_GROUP | {"spec": {"minMember": 8, "subGroupPolicy": [policy]}}
    spec = spec_of(group)
    assert spec["groups"] == [
        {"name": "stage", "count": 12, "slices": [{"size": 4, "min": 3, "tier": "<=1"}], "min": 8}
    ]


def test_it_reads_the_topology_of_plain_pods() -> None:
    annotations = {"volcano.sh/network-topology-highest-tier": "2"}
    soft = {"volcano.sh/network-topology-mode": "soft"}
    assert spec_of(pod("p", annotations=annotations))["required"] == "<=2"
    assert spec_of(pod("p", annotations=soft))["preferred"] == ["1"]


def test_it_reads_the_topology_of_a_template_of_another_system() -> None:
    spec = spec_of(job(annotations={"volcano.sh/network-topology-highest-tier": "1"}))
    assert (spec["preset"], spec["gang"], spec["required"]) == ("volcano", "train", "<=1")


def test_it_groups_pods_by_their_requests() -> None:
    small = pod("s") | {"spec": {"containers": [{"resources": {"requests": {GPU: 1}}}]}}
    groups = spec_of(pod("a"), small, pod("b"))["groups"]
    assert [(row["name"], row["count"]) for row in groups] == [("pods", 2), ("pods-2", 1)]


def test_it_detects_volcano_before_kueue() -> None:
    manifest = volcano_job([{"replicas": 1}])
    manifest["metadata"] |= {"labels": {"kueue.x-k8s.io/queue-name": "q"}}
    assert translated(manifest).system == "Volcano"


def test_it_distinguishes_ignored_fields_that_may_matter() -> None:
    spec = pod_spec(
        topologySpreadConstraints=[{"maxSkew": 1}], restartPolicy="Never", priorityClassName="high"
    )
    found = translated(job(template={"spec": spec})).ignored
    by_bearing = {row.path.rpartition(".")[2]: row.relevance for row in found}
    assert by_bearing == {
        "topologySpreadConstraints": Relevance.POSSIBLE,
        "priorityClassName": Relevance.POSSIBLE,
        "restartPolicy": Relevance.NONE,
    }
    assert found[-1].relevance is Relevance.NONE


def test_it_lists_an_ignored_field_of_many_pods_once() -> None:
    (row,) = translated(*(pod(f"p{at}", labels={"a": "b"}) for at in range(5))).ignored
    assert str(row) == "Pod 'p0' (line 1): metadata.labels (and in 4 more)"


def test_it_lists_no_empty_field_as_ignored() -> None:
    assert translated(job(template={"metadata": {}, "spec": pod_spec(volumes=[])})).ignored == ()


ROOMS = [
    pytest.param({}, {GPU: 8}, 1, id="a slot a pod where nothing is listed"),
    pytest.param({"slots": 1}, {GPU: 8}, 1, id="a slot a pod where nodes have one"),
    pytest.param({"slots": 8}, {GPU: 4, "cpu": 3}, 4, id="a slot a GPU where nodes have several"),
    pytest.param({"slots": 8}, {"cpu": 3}, 1, id="a slot for a pod without GPUs"),
    pytest.param({"slots": 8}, {f"{GPU}.4x0.5": 1}, 4, id="a slot for a share of a GPU"),
]


@pytest.mark.parametrize(("room", "request_", "slots"), ROOMS)
def test_it_converts_to_slots(room: dict[str, int], request_: dict[str, int], slots: int) -> None:
    spec = {"groups": [{"name": "g", "children": [{"name": "w", "count": 2, "request": request_}]}]}
    fitted, notes = fit_units(spec, room)
    assert fitted["groups"][0]["children"][0]["request"] == {"slots": slots}
    assert [note.path for note in notes] == ["groups[0].children[0]"]


def test_it_keeps_resources_that_nodes_list() -> None:
    spec = {"groups": [{"name": "w", "count": 2, "request": {GPU: 4}}]}
    assert fit_units(spec, {"slots": 1, "cpu": 8}) == (spec, ())


def test_a_train_job_without_its_runtime_counts_its_own_fields() -> None:
    trainer = {"numNodes": 3, "resourcesPerNode": {"limits": {GPU: 8}}}
    found = translated(
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": "t"},
            "spec": {"runtimeRef": {"name": "torch"}, "trainer": trainer},
        }
    )
    (group,) = found.document["spec"]["groups"]
    assert (group["count"], group["request"]) == (3, {GPU: 8})
    assert "the runtime is not in the file" in found.notes[0].text
