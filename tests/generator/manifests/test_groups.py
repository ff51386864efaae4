"""Pod groups of each system: their pods, minimums and tiers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from generator.manifests.fields import Relevance
from tests.generator.manifests.scenes import GPU, job, pod, spec_of, translated
from topology.model.errors import PlacementRequestError

KOORDINATOR = "gang.scheduling.koordinator.sh/"
KUEUE = "kueue.x-k8s.io/"
SPINE_BLOCK = {
    "apiVersion": "scheduling.koordinator.sh/v1alpha1",
    "kind": "ClusterNetworkTopology",
    "metadata": {"name": "default"},
    "spec": {
        "networkTopologySpec": [
            {"parentTopologyLayer": "BlockLayer", "topologyLayer": "NodeTopologyLayer"},
            {"parentTopologyLayer": "SpineLayer", "topologyLayer": "BlockLayer"},
            {"parentTopologyLayer": "ClusterTopologyLayer", "topologyLayer": "SpineLayer"},
        ]
    },
}


def group_of(api: str, **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - of a manifest
    return {
        "apiVersion": api,
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": spec,
    }


def kai_group(**spec: Any) -> dict[str, Any]:  # noqa: ANN401 - of a manifest
    return group_of("scheduling.run.ai/v2alpha2", **spec)


def small(name: str) -> dict[str, Any]:
    return pod(name) | {"spec": {"containers": [{"resources": {"requests": {GPU: 1}}}]}}


def gathering(*rows: dict[str, Any]) -> dict[str, str]:
    return {f"{KOORDINATOR}network-topology-spec": json.dumps({"gatherStrategy": list(rows)})}


def test_it_places_pods_that_only_name_the_scheduler_of_kai() -> None:
    pods = [pod("a"), pod("b")]
    for pod_ in pods:
        pod_["spec"]["schedulerName"] = "kai-scheduler"
    spec = spec_of(*pods)
    assert (spec["preset"], spec["groups"][0]["count"]) == ("kai", 2)


def test_it_uses_the_minimum_of_a_kai_group() -> None:
    alone = spec_of(kai_group(minMember=2), pod("a"), pod("b"), pod("c"))
    mixed = spec_of(kai_group(minMember=2), pod("a"), pod("b"), small("c"))
    unknown = spec_of(kai_group(minMember=4))
    assert [row["min"] for row in alone["groups"]] == [2]
    assert ([row["min"] for row in mixed["groups"]], mixed["min"]) == ([0, 0], 2)
    assert unknown["groups"] == [{"name": "pods", "count": 4, "min": 4}]


def test_it_uses_a_workload_as_the_pods_of_a_group() -> None:
    names = {"name": "main", "minMember": 3}
    assert spec_of(kai_group(subGroups=[names]), job())["groups"][0]["min"] == 3
    volcano = group_of("scheduling.volcano.sh/v1beta1", minMember=2)
    assert spec_of(volcano, job())["groups"][0]["count"] == 4
    koordinator = group_of("scheduling.sigs.k8s.io/v1alpha1", minMember=2)
    assert spec_of(koordinator, job())["groups"][0]["min"] == 2
    godel = group_of("scheduling.godel.kubewharf.io/v1alpha1", minMember=2)
    assert spec_of(godel, job())["groups"][0]["min"] == 2


def test_it_counts_koordinators_layers_from_the_nodes() -> None:
    strategy = gathering(
        {"layer": "SpineLayer", "strategy": "MustGather"},
        {"layer": "BlockLayer", "strategy": "MustGather"},
    )
    found = translated(SPINE_BLOCK, pod("p", annotations=strategy))
    assert found.document["spec"]["required"] == "SpineLayer|spine|2&BlockLayer|block|1"
    assert "of several layers with MustGather, the lowest counts" in str(found.notes[-1])


def test_it_ranks_koordinators_pods_without_an_index_last_and_by_name() -> None:
    index = f"{KOORDINATOR}network-topology-index"
    group = group_of("scheduling.sigs.k8s.io/v1alpha1", minMember=3)
    ranked = pod("z", annotations={index: "0"})
    groups = spec_of(group, small("w-10"), small("w-9"), ranked)["groups"]
    assert [row["request"][GPU] for row in groups] == [8, 1]


def test_it_reports_unknown_fields_of_a_strategy() -> None:
    strategy = {f"{KOORDINATOR}network-topology-spec": '{"gatherStrategy": [], "dp": 4}'}
    (row,) = translated(pod("p", annotations=strategy)).ignored
    assert (row.relevance, row.reason[-21:]) == (Relevance.POSSIBLE, ".dp is not understood")


def test_it_refuses_slices_defined_in_two_ways() -> None:
    annotations = {
        f"{KUEUE}podset-slice-required-topology": "leaf",
        f"{KUEUE}podset-slice-size": "2",
        f"{KUEUE}podset-slice-required-topology-constraints": '[{"topology": "leaf", "size": 2}]',
    }
    with pytest.raises(PlacementRequestError, match="expected one of podset-slice"):
        spec_of(job(annotations=annotations))


PARTIAL = {"remainder": "short", "indexed": True}


@pytest.mark.parametrize(
    ("count", "minimum", "layers", "expected"),
    [
        pytest.param(10, None, [4], PARTIAL, id="a count that slices do not divide"),
        pytest.param(8, None, [4], {}, id="whole slices"),
        pytest.param(8, "7", [4], PARTIAL, id="a minimum below whole slices"),
        pytest.param(8, "8", [4], {}, id="a minimum of all pods"),
        pytest.param(3, None, [4], {}, id="fewer pods than one slice"),
        pytest.param(10, None, [4, 2], {}, id="two layers"),
    ],
)
def test_it_lets_a_slice_of_kueue_be_short_for(
    count: int, minimum: str | None, layers: list[int], expected: dict[str, Any]
) -> None:
    rows = [
        {"topology": tier, "size": size}
        for tier, size in zip(("spine", "leaf"), layers, strict=False)
    ]
    annotations = {f"{KUEUE}podset-slice-required-topology-constraints": json.dumps(rows)}
    manifest = job(parallelism=count, annotations=annotations)
    if minimum is not None:
        manifest["metadata"]["annotations"] = {f"{KUEUE}job-min-parallelism": minimum}
    first, *others = spec_of(manifest)["groups"][0]["slices"]
    assert first == {"size": 4, "tier": "spine"} | expected
    assert not any(PARTIAL.keys() & layer.keys() for layer in others)


def test_it_sets_no_tier_for_an_unconstrained_gang() -> None:
    group = spec_of(job(annotations={f"{KUEUE}podset-unconstrained-topology": "true"}))["groups"][0]
    assert not {"required", "preferred", "slices"} & group.keys()


def test_it_refuses_a_queue_without_a_workload() -> None:
    queue = {"apiVersion": "v1", "kind": "Thing", "metadata": {"labels": {f"{KUEUE}x": "y"}}}
    with pytest.raises(
        PlacementRequestError,
        match=r"Thing .* expected a workload, or pods of one group, got Thing",
    ):
        spec_of(queue)


def test_it_lists_an_object_without_pods_beside_a_workload_as_without_effect() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"x": 1}}
    (row,) = translated(service, job()).ignored
    assert (row.path, row.relevance) == ("Service 's' (line 1)", Relevance.NONE)
