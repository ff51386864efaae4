"""PodGroups, composite groups, Workloads and Jobs of Kubernetes: read, or refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.generator.manifests.scenes import GPU, job, pod, pod_spec, spec_of, translated
from topology.model.errors import PlacementRequestError

GANG = {"gang": {"minCount": 2}}
RACK = {"topology": [{"key": "example.com/rack"}]}


def group(name: str = "g", kind: str = "PodGroup", **spec: object) -> dict[str, Any]:
    policy = {"gang": {"minGroupCount": 2}} if kind == "CompositePodGroup" else GANG
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": policy, **spec},
    }


def member(name: str, of: str) -> dict[str, Any]:
    """Return a pod of a group."""
    return pod(name) | {"spec": pod_spec(schedulingGroup={"podGroupName": of})}


def workload(**spec: object) -> dict[str, Any]:
    return group("w", "Workload") | {"spec": spec}


def test_pods_of_other_groups_are_not_placed() -> None:
    found = translated(group(), member("a", "g"), member("b", "g"), member("c", "other"))
    assert found.document["spec"]["groups"] == [
        {"name": "pods", "count": 2, "request": {GPU: 8}, "min": 2}
    ]
    assert [note.text for note in found.notes] == ["belongs to another group and is not placed"]


def test_pods_need_not_name_the_only_group() -> None:
    assert spec_of(group(), pod("a"), pod("b"), pod("c"))["groups"][0]["count"] == 3


def test_pods_of_several_kinds_share_the_minimum() -> None:
    named = {"podGroupName": "g"}
    small = pod("b") | {"spec": pod_spec(containers=[], priority=7, schedulingGroup=named)}
    spec = spec_of(group(schedulingConstraints=RACK), member("a", "g"), small)
    assert spec["min"] == 2
    assert [row["min"] for row in spec["groups"]] == [0, 0]
    assert (spec["required"], spec["priority"]) == ("example.com/rack", 7)


def test_a_group_without_a_key_may_run_anywhere() -> None:
    assert "required" not in spec_of(group(), pod("a"), pod("b"))


def test_a_job_without_a_minimum_is_a_gang_of_all_pods() -> None:
    assert spec_of(job(scheduling={"schedulingPolicy": {"gang": {}}}))["groups"][0]["min"] == 4


def test_a_job_without_a_policy_is_no_gang() -> None:
    found = translated(job(scheduling={"schedulingConstraints": RACK}))
    assert found.document["spec"]["groups"][0]["min"] == 1
    assert any("is not a gang" in note.text for note in found.notes)


def test_a_parent_that_the_file_lacks_may_matter() -> None:
    found = translated(group(parentCompositePodGroupName="top"), pod("a"), pod("b"))
    (row,) = found.ignored
    assert "parentCompositePodGroupName: is not in the file" in f"{row.path}: {row.reason}"


def nested(levels: int) -> list[dict[str, Any]]:
    """Return a chain of groups; the last one has the pods."""
    one = {"gang": {"minGroupCount": 1}}
    above = [
        group(str(at), "CompositePodGroup", schedulingPolicy=one)
        | ({} if at == 1 else {"spec": {"schedulingPolicy": one} | child_of(at - 1)})
        for at in range(1, levels)
    ]
    return [*above, group("pods", **child_of(levels - 1)), member("a", "pods"), member("b", "pods")]


def child_of(number: int) -> dict[str, str]:
    return {"parentCompositePodGroupName": str(number)}


def test_groups_have_four_levels_at_most() -> None:
    assert spec_of(*nested(4))["gang"] == "1"
    with pytest.raises(PlacementRequestError, match="expected at most 4 levels"):
        translated(*nested(5))


def test_groups_nest() -> None:
    top = group("top", "CompositePodGroup", schedulingConstraints=RACK)
    middle = group("middle", "CompositePodGroup", parentCompositePodGroupName="top")
    leaves = [group(name, parentCompositePodGroupName="middle") for name in "ab"]
    spec = spec_of(*leaves, group("c", parentCompositePodGroupName="top"), middle, top)
    assert spec["gang"] == "top"
    rows = {row["name"]: row for row in spec["groups"]}
    assert rows.keys() == {"c", "middle"}
    assert [row["name"] for row in rows["middle"]["children"]] == ["a", "b"]


def test_fewer_groups_than_all_may_be_enough() -> None:
    top = group("top", "CompositePodGroup", schedulingPolicy={"gang": {"minGroupCount": 1}})
    leaves = [group(name, parentCompositePodGroupName="top") for name in "ab"]
    (row,) = spec_of(top, *leaves)["groups"]
    assert (row["name"], row["min"], len(row["children"])) == ("top", 1, 2)


def first_workload(*names: str, count: int = 2) -> dict[str, Any]:
    """Return a Workload of Kubernetes 1.35 with gangs of these names."""
    rows = [{"name": name, "policy": {"gang": {"minCount": count}}} for name in names]
    return workload(podGroups=rows) | {"apiVersion": "scheduling.k8s.io/v1alpha1"}


def replica(name: str, of: str, key: str = "") -> dict[str, Any]:
    """Return a pod of a gang of Kubernetes 1.35."""
    reference = {"name": "w", "podGroup": of} | ({"podGroupReplicaKey": key} if key else {})
    return pod(name) | {"spec": pod_spec(workloadRef=reference)}


@pytest.mark.parametrize(
    ("documents", "count", "least"),
    [
        pytest.param([first_workload("a")], 2, 2, id="its minimum without pods"),
        pytest.param([first_workload("a"), *map(pod, "xyz")], 3, 2, id="pods that name no group"),
        pytest.param(
            [first_workload("a", "b"), replica("x", "b"), replica("y", "b"), replica("z", "b")],
            3,
            2,
            id="the group that pods name",
        ),
        pytest.param(
            [first_workload("a"), replica("x", "a", "0"), replica("y", "a", "0")],
            2,
            2,
            id="one replica of a group",
        ),
        pytest.param([first_workload("a", count=3), job()], 4, 3, id="the pods of a Job"),
    ],
)
def test_a_workload_of_the_first_version_has(
    documents: list[dict[str, Any]], count: int, least: int
) -> None:
    spec = spec_of(*documents)
    (row,) = spec["groups"]
    assert (spec["preset"], row["count"], row["min"]) == ("kubernetes", count, least)


def test_a_workload_of_the_first_version_may_be_no_gang() -> None:
    basic = workload(podGroups=[{"name": "a", "policy": {"basic": {}}}])
    found = translated(basic, pod("x"), pod("y"))
    assert found.document["spec"]["groups"][0]["min"] == 1
    assert any("is not a gang" in note.text for note in found.notes)


@pytest.mark.parametrize(
    ("documents", "problem"),
    [
        pytest.param([group("a"), group("b")], "2 gangs, but one is placed", id="two gangs"),
        pytest.param([group("a"), group("a")], "two groups are named 'a'", id="equal names"),
        pytest.param(
            [group("a", "CompositePodGroup", parentCompositePodGroupName="a")],
            "the file has 0 gangs",
            id="its own parent",
        ),
        pytest.param(
            [group("a", "CompositePodGroup")], "expected groups inside, got none", id="empty"
        ),
        pytest.param(
            [group(schedulingConstraints={"topology": [{"key": "a/b"}, {"key": "a/c"}]})],
            "topology[1]: expected at most one label key",
            id="two keys",
        ),
        pytest.param(
            [group(schedulingConstraints={"topology": [{}]})],
            "topology[0]: expected a label key",
            id="no key",
        ),
        pytest.param(
            [group(schedulingPolicy={})], "schedulingPolicy: expected gang or basic", id="no policy"
        ),
        pytest.param(
            [group(schedulingPolicy={"gang": {"minCount": 0}})], "gang.minCount", id="no pods"
        ),
        pytest.param([workload()], "podGroupTemplates: expected at least one", id="no template"),
        pytest.param(
            [workload(podGroupTemplates=[{"name": "a"}, {"name": "b"}])],
            "each template is a separate gang",
            id="two templates",
        ),
        pytest.param([workload(), workload()], "has 2 Workloads", id="two Workloads"),
        pytest.param([first_workload("a", "b")], "the file has 2 gangs", id="two first gangs"),
        pytest.param(
            [first_workload("a"), replica("x", "a", "0"), replica("y", "a", "1")],
            "the file has 2 gangs",
            id="two replicas of a first gang",
        ),
    ],
)
def test_it_refuses(documents: list[dict[str, Any]], problem: str) -> None:
    with pytest.raises(PlacementRequestError) as caught:
        translated(*documents)
    assert problem in str(caught.value)
