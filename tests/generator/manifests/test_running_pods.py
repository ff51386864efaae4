"""Pods of a file that run, have ended or are being deleted: only the others are placed.

The states of a pod: it waits, it is on a node, it has ended, or it is being deleted. Pods on a node
keep it, and the rest of their gang is placed beside them, by the rules of the whole gang.
"""

from __future__ import annotations

from typing import Any

import pytest

from generator.manifests.manifest_request import Translation
from generator.placement.request import parse_request
from tests.generator.manifests.scenes import (
    job,
    leaf_rows,
    placed_pod,
    pod_spec,
    translated,
)
from topology.model.errors import PlacementRequestError

VOLCANO = {"scheduling.k8s.io/group-name": "g"}


def group(minimum: int) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"minMember": minimum},
    }


def member(name: str, node: str = "", phase: str = "", **metadata: Any) -> dict[str, Any]:  # noqa: ANN401 - of a pod
    """Return a pod of the group that `group` returns."""
    return placed_pod(name, node, phase, annotations=VOLCANO, **metadata)


def counts(found: Translation) -> list[tuple[str, int, int | None]]:
    rows = leaf_rows(found.document["spec"]["groups"])
    return [(row["name"], row["count"], row.get("min")) for row in rows]


def nodes_of(found: Translation, name: str | None) -> list[str]:
    return [row.node for row in found.running if row.group == name]


@pytest.mark.parametrize(
    ("pods", "expected", "running"),
    [
        pytest.param(
            [member("a", "n1", "Running"), member("b", "n2", "Pending"), member("c")],
            [("pods", 1, 1)],
            ["n1", "n2"],
            id="pods that run, and pods that are bound and start",
        ),
        pytest.param(
            [member("a", "n1"), member("b"), member("c")],
            [("pods", 2, 2)],
            ["n1"],
            id="a pod with a node and no status",
        ),
        pytest.param(
            [member("a", "n1", "Failed"), member("b", "n2", "Succeeded"), member("c")],
            [("pods", 1, 1)],
            [],
            id="pods that have ended",
        ),
        pytest.param(
            [member("a", "n1", "Running"), member("b", phase="Pending"), member("c")],
            [("pods", 2, 2)],
            ["n1"],
            id="pods that wait",
        ),
    ],
)
def test_it_places_only_what_waits_beside(
    pods: list[dict[str, Any]], expected: list[tuple[str, int, int]], running: list[str]
) -> None:
    found = translated(group(3), *pods)
    assert counts(found) == expected
    assert nodes_of(found, "pods") == running
    assert nodes_of(found, None) == []


def test_it_counts_a_pod_with_its_group_whose_node_selector_names_its_node() -> None:
    started = member("a", "n1")
    started["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "n1"}
    found = translated(group(3), started, member("b"), member("c"))
    assert counts(found) == [("pods", 2, 2)]
    assert "node_selector" not in found.document["spec"]["groups"][0]


def test_it_counts_a_pod_that_is_being_deleted_as_another_pod_on_its_node() -> None:
    leaving = member("a", "n1", "Running", deletionTimestamp="2026-11-01T00:00:00Z")
    found = translated(group(2), leaving, member("b", "n2"), member("c"))
    assert counts(found) == [("pods", 1, 1)]
    assert (nodes_of(found, "pods"), nodes_of(found, None)) == (["n2"], ["n1"])
    assert any("is being deleted" in note.text for note in found.notes)


def test_it_counts_pods_of_other_groups_as_other_pods() -> None:
    other = placed_pod("x", "n9", annotations={"scheduling.k8s.io/group-name": "h"})
    found = translated(group(1), member("a"), other)
    assert (nodes_of(found, "pods"), nodes_of(found, None)) == ([], ["n9"])
    (row,) = found.running
    assert row.request == {"nvidia.com/gpu": 8, "pods": 1, "slots": 1}


def kueue_pod(name: str, node: str = "", group: str = "g") -> dict[str, Any]:
    marks = {"kueue.x-k8s.io/pod-group-total-count": "2"}
    labels = {"kueue.x-k8s.io/pod-group-name": group}
    return placed_pod(name, node, labels=labels, annotations=marks)


def test_it_counts_pods_of_other_groups_of_kueue_as_other_pods() -> None:
    found = translated(kueue_pod("x", "n9", "h"), kueue_pod("a", "n1"), kueue_pod("b"))
    assert found.document["spec"]["gang"] == "g"
    assert counts(found) == [("pods", 1, None)]
    assert (nodes_of(found, "pods"), nodes_of(found, None)) == (["n1"], ["n9"])


@pytest.mark.parametrize("kind", ["DaemonSet", "Node"])
def test_it_counts_a_pod_of_a_node_as_another_pod(kind: str) -> None:
    owned = placed_pod("d", "n9", ownerReferences=[{"kind": kind, "name": "d"}])
    found = translated(owned, placed_pod("a", "n1"), placed_pod("b"))
    assert counts(found) == [("pods", 1, None)]
    assert (nodes_of(found, "pods"), nodes_of(found, None)) == (["n1"], ["n9"])


def test_it_lowers_the_minimum_of_the_gang_by_the_pods_that_run() -> None:
    small = member("b")
    small["spec"] = pod_spec(containers=[{"resources": {"requests": {"cpu": 1}}}])
    found = translated(group(3), member("a", "n1"), small, member("c"), member("d"))
    assert counts(found) == [("pods", 2, 0), ("pods-2", 1, 0)]
    assert found.document["spec"]["min"] == 2


def test_it_keeps_a_group_of_which_all_pods_run_without_pods_to_place() -> None:
    small = member("b", "n2")
    small["spec"] |= {"containers": [{"resources": {"requests": {"cpu": 1}}}]}
    found = translated(group(3), member("a", "n1"), small, member("c"))
    assert counts(found) == [("pods", 1, 0), ("pods-2", 0, 0)]
    assert parse_request(found.document).groups[1].count == 0


@pytest.mark.parametrize(
    ("pods", "problem"),
    [
        ([member("a", "n1"), member("b", "n2")], "2 run"),
        ([member("a", "n1", "Succeeded"), member("b", "n2", "Failed")], "2 have ended"),
    ],
    ids=["run", "have ended"],
)
def test_it_refuses_a_gang_of_which_all_pods(pods: list[dict[str, Any]], problem: str) -> None:
    with pytest.raises(PlacementRequestError, match=problem):
        translated(group(2), *pods)


def job_pod(index: int, node: str = "", phase: str = "", owner: str = "train") -> dict[str, Any]:
    labels = {"batch.kubernetes.io/job-name": owner}
    marks = {"batch.kubernetes.io/job-completion-index": str(index)}
    return placed_pod(f"{owner}-{index}", node, phase, labels=labels, annotations=marks)


def test_it_places_the_rest_of_a_job_with_its_pods() -> None:
    pods = [
        job_pod(2, "n2", "Running"),
        job_pod(0, "n0", "Running"),
        job_pod(1),
        job_pod(9, "n9", owner="x"),
    ]
    found = translated(job(), *pods)
    assert counts(found) == [("main", 2, None)]
    assert [(row.node, row.rank) for row in found.running] == [("n0", 0), ("n2", 2), ("n9", None)]
    assert nodes_of(found, None) == ["n9"]


@pytest.mark.parametrize(
    ("spec", "status", "phases", "count"),
    [
        pytest.param({"completions": 4}, {}, ["Succeeded"], 3, id="a pod has completed"),
        pytest.param({"completions": 8}, {}, ["Succeeded"], 4, id="more pods are to follow"),
        pytest.param({"completions": 4}, {"succeeded": 3}, [], 1, id="its status counts three"),
        pytest.param({}, {}, ["Failed"], 4, id="a pod has failed"),
    ],
)
def test_it_places_the_pods_that_a_job_still_needs_if(
    spec: dict[str, Any], status: dict[str, Any], phases: list[str], count: int
) -> None:
    pods = [job_pod(index, f"n{index}", phase) for index, phase in enumerate(phases)]
    found = translated(job(**spec) | {"status": status}, *pods)
    assert counts(found) == [("main", count, None)]


def test_it_finds_the_pods_that_a_stateful_set_owns() -> None:
    owner = {"kind": "StatefulSet", "name": "s", "controller": True}
    made = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "s", "namespace": "a"},
        "spec": {"replicas": 3, "template": {"spec": pod_spec()}},
    }
    mine, foreign = (
        placed_pod(f"{space}-0", f"n-{space}", namespace=space, ownerReferences=[owner])
        for space in ("a", "b")
    )
    found = translated(made, mine, foreign)
    assert counts(found) == [("main", 2, None)]
    assert (nodes_of(found, "main"), nodes_of(found, None)) == (["n-a"], ["n-b"])


def _pod_template() -> dict[str, Any]:
    return {"spec": {"containers": [{"resources": {"requests": {"cpu": 1}}}]}}


@pytest.mark.parametrize(
    ("version", "kind", "spec", "status"),
    [
        pytest.param(
            "jobset.x-k8s.io/v1alpha2",
            "JobSet",
            {
                "replicatedJobs": [
                    {
                        "name": "main",
                        "replicas": 2,
                        "template": {"spec": {"parallelism": 2, "template": _pod_template()}},
                    }
                ]
            },
            {"replicatedJobsStatus": [{"name": "main", "succeeded": 1}]},
            id="JobSet",
        ),
        pytest.param(
            "kueue.x-k8s.io/v1beta2",
            "Workload",
            {"podSets": [{"name": "main", "count": 4, "template": _pod_template()}]},
            {"reclaimablePods": [{"name": "main", "count": 2}]},
            id="Workload of Kueue",
        ),
        pytest.param(
            "kubeflow.org/v1",
            "PyTorchJob",
            {"pytorchReplicaSpecs": {"Main": {"replicas": 4, "template": _pod_template()}}},
            {"replicaStatuses": {"Main": {"succeeded": 2}}},
            id="PyTorchJob",
        ),
        pytest.param(
            "batch.volcano.sh/v1alpha1",
            "Job",
            {
                "minAvailable": 4,
                "tasks": [{"name": "main", "replicas": 4, "template": _pod_template()}],
            },
            {"taskStatusCount": {"main": {"phase": {"Succeeded": 2}}}},
            id="Job of Volcano",
        ),
    ],
)
def test_it_leaves_out_the_pods_that_have_completed_by_the_status_of_a(
    version: str, kind: str, spec: dict[str, Any], status: dict[str, Any]
) -> None:
    workload = {"apiVersion": version, "kind": kind, "metadata": {"name": "train"}, "spec": spec}
    found = translated(workload | {"status": status})
    assert [(name, count) for name, count, _ in counts(found)] == [("main", 2)]
    assert found.document["spec"].get("min", 2) == 2
