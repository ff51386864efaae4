"""The fewest pods of a gang, as the controller reads them that makes the gang."""

from __future__ import annotations

from typing import Any

import pytest

from tests.generator.manifests.scenes import (
    job,
    kubeflow_job,
    manifest,
    pod,
    pod_template,
    spec_of,
    translated,
    volcano_job,
)

KAI = {"kai.scheduler/batch-min-member": "2"}
KUEUE_QUEUE = {"kueue.x-k8s.io/queue-name": "q"}
VOLCANO = {"scheduling.volcano.sh/group-min-member": "3"}
KOORDINATOR = "gang.scheduling.koordinator.sh/"


def named(document: dict[str, Any], **metadata: object) -> dict[str, Any]:
    """Return a manifest with more metadata."""
    return document | {"metadata": document["metadata"] | metadata}


def scheduled_by(document: dict[str, Any], scheduler: str) -> dict[str, Any]:
    """Return a Job whose pods name a scheduler."""
    template = pod_template(schedulerName=scheduler)
    return document | {"spec": document["spec"] | {"template": template}}


def job_set(*replicated: dict[str, Any], **metadata: object) -> dict[str, Any]:
    rows = [{"template": {"spec": {"template": pod_template()} | row.pop("job", {})}} | row
            for row in (dict(row) for row in replicated)]  # fmt: skip
    return named(manifest("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs=rows), **metadata)


def kueue_workload(*pod_sets: dict[str, Any]) -> dict[str, Any]:
    rows = [{"template": pod_template()} | row for row in pod_sets]
    return manifest("kueue.x-k8s.io/v1beta2", "Workload", podSets=rows)


def ray_cluster(*groups: dict[str, Any], **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - of a manifest
    rows = [{"groupName": "gpu", "template": pod_template()} | row for row in groups]
    head = {"template": pod_template()}
    return manifest("ray.io/v1", "RayCluster", headGroupSpec=head, workerGroupSpecs=rows, **spec)


def pod_group(api: str, **spec: object) -> dict[str, Any]:
    return manifest(api, "PodGroup", **spec)


def stage_pods(count: int) -> list[dict[str, Any]]:
    """Return pods in two stages."""
    marks = {"scheduling.k8s.io/group-name": "x"}
    return [pod(f"p{at}", labels={"stage": str(at % 2)}, annotations=marks) for at in range(count)]


def role_pods(*roles: str) -> list[dict[str, Any]]:
    """Return pods with roles of Volcano."""
    return [
        pod(f"p{at}", annotations={"volcano.sh/task-spec": role}) for at, role in enumerate(roles)
    ]


IN_ORDER = {"startupPolicy": {"startupPolicyOrder": "InOrder"}}
STAGES = [{"name": "s", "matchLabelKeys": ["stage"], "subGroupSize": 2, "minSubGroups": 1}]
LEVELS = [
    {"name": "top", "minSubGroup": 1},
    {"name": "a", "parent": "top", "minMember": 2},
    {"name": "b", "parent": "top", "minMember": 3},
]
GANGS = [
    pytest.param([job()], None, {"main": None}, id="a Job: all pods"),
    pytest.param([job(completions=3)], None, {"main": None}, id="a Job: its completions"),
    pytest.param(
        [named(job(), labels=KUEUE_QUEUE, annotations={"kueue.x-k8s.io/job-min-parallelism": "3"})],
        None,
        {"main": 3},
        id="Kueue: the least parallelism of a Job",
    ),
    pytest.param(
        [kueue_workload({"name": "a", "count": 8, "minCount": 6}, {"name": "b", "count": 2})],
        None,
        {"a": 6, "b": None},
        id="Kueue: minCount of a Workload",
    ),
    pytest.param(
        [
            kubeflow_job(
                "PyTorchJob",
                {"Master": 1, "Worker": 7},
                runPolicy={"schedulingPolicy": {"minAvailable": 5}},
            )
        ],
        5,
        {"master": None, "worker": 4},
        id="Kubeflow: minAvailable",
    ),
    pytest.param(
        [kubeflow_job("PyTorchJob", {"Worker": 8}, elasticPolicy={"minReplicas": 4})],
        4,
        {"worker": 4},
        id="Kubeflow: replicas of an elastic job",
    ),
    pytest.param(
        [
            kubeflow_job(
                "PyTorchJob",
                {"Worker": 8},
                elasticPolicy={"minReplicas": 4},
                runPolicy={"schedulingPolicy": {"minAvailable": 6}},
            )
        ],
        6,
        {"worker": 6},
        id="Kubeflow: minAvailable before the replicas of an elastic job",
    ),
    pytest.param(
        [
            kubeflow_job(
                "MPIJob",
                {"Launcher": 1, "Worker": 4},
                runPolicy={"schedulingPolicy": {"minAvailable": 3}},
            )
        ],
        3,
        {"launcher": None, "worker": 2},
        id="MPI: minAvailable counts the launcher",
    ),
    pytest.param(
        [
            named(
                kubeflow_job("PyTorchJob", {"Worker": 8}, elasticPolicy={"minReplicas": 4}),
                labels=KUEUE_QUEUE,
            )
        ],
        None,
        {"worker": None},
        id="Kueue: admits all pods of an elastic job",
    ),
    pytest.param(
        [named(scheduled_by(job(), "kai-scheduler"), annotations=KAI)],
        2,
        {"main": 2},
        id="KAI: its annotation of a Job",
    ),
    pytest.param(
        [
            named(
                job_set({"name": "a", "replicas": 1}, {"name": "b", "replicas": 1}),
                annotations={"kai.scheduler/batch-min-member": "1"},
            )
        ],
        None,
        {"train": 1, "a": None, "b": None},
        id="KAI: its annotation of a JobSet counts the replicated jobs",
    ),
    pytest.param(
        [
            pod_group("scheduling.run.ai/v2alpha2", subGroups=LEVELS),
            *(
                pod(
                    f"{name}{at}",
                    labels={"kai.scheduler/subgroup-name": name},
                    annotations={"pod-group-name": "train"},
                )
                for name in "ab"
                for at in range(4)
            ),
        ],
        None,
        {"top": 1, "a": 2, "b": 3},
        id="KAI: minSubGroup of a subgroup",
    ),
    pytest.param(
        [
            pod_group(
                "scheduling.run.ai/v2alpha2",
                minSubGroup=1,
                subGroups=[{"name": "a", "minMember": 2}, {"name": "b", "minMember": 3}],
            )
        ],
        None,
        {"train": 1, "a": None, "b": None},
        id="KAI: minSubGroup of the group",
    ),
    pytest.param(
        [
            named(
                ray_cluster({"replicas": 4, "minReplicas": 2}),
                labels={"kai.scheduler/queue": "q"},
            )
        ],
        None,
        {"head": None, "gpu": 2},
        id="KAI: replicas of a Ray cluster",
    ),
    pytest.param(
        [ray_cluster({"replicas": 4, "minReplicas": 2}, enableInTreeAutoscaling=True)],
        None,
        {"head": None, "gpu": 2},
        id="Ray: replicas of a cluster that scales",
    ),
    pytest.param(
        [ray_cluster({"replicas": 4, "minReplicas": 2})],
        None,
        {"head": None, "gpu": None},
        id="Ray: replicas of a cluster that does not scale",
    ),
    pytest.param(
        [
            ray_cluster(
                {"replicas": 2, "minReplicas": 1, "numOfHosts": 4}, enableInTreeAutoscaling=True
            )
        ],
        None,
        {"head": None, "gpu": 4},
        id="Ray: replicas of several hosts",
    ),
    pytest.param(
        [named(scheduled_by(job(), "volcano"), annotations=VOLCANO)],
        3,
        {"main": 3},
        id="Volcano: its annotation of a Job",
    ),
    pytest.param(
        [volcano_job([{"name": "a", "replicas": 4, "minAvailable": 3}])],
        3,
        {"a": 3},
        id="Volcano: minAvailable of a task",
    ),
    pytest.param(
        [
            pod_group("scheduling.volcano.sh/v1beta1", minMember=2, subGroupPolicy=STAGES)
            | {"metadata": {"name": "x"}},
            *stage_pods(6),
        ],
        2,
        {"s-subgroups": 1, "s-0": 2, "s-1": 2},
        id="Volcano: subgroups of pods",
    ),
    pytest.param(
        [
            named(
                kubeflow_job("PyTorchJob", {"Worker": 8}, elasticPolicy={"minReplicas": 4}),
                annotations={"volcano.sh/network-topology-mode": "soft"},
            )
        ],
        None,
        {"worker": None},
        id="Volcano: all pods of an elastic job",
    ),
    pytest.param(
        [volcano_job([{"name": "a", "replicas": 4}], minAvailable=0)],
        4,
        {"a": 4},
        id="Volcano: its webhook replaces minAvailable 0",
    ),
    pytest.param(
        [
            volcano_job(
                [
                    {
                        "name": "a",
                        "replicas": 6,
                        "partitionPolicy": {
                            "totalPartitions": 3,
                            "partitionSize": 2,
                            "minPartitions": 2,
                        },
                    }
                ]
            )
        ],
        4,
        {"a": 4},
        id="Volcano: minPartitions of a task",
    ),
    pytest.param(
        [pod_group("scheduling.volcano.sh/v1beta1"), *role_pods("a", "a", "b")],
        0,
        {"pods": 0},
        id="Volcano: a PodGroup without minMember is no gang",
    ),
    pytest.param(
        [
            pod_group("scheduling.volcano.sh/v1beta1", minMember=3, minTaskMember={"a": 1, "b": 2}),
            *role_pods("a", "b", "a", "b"),
        ],
        3,
        {"a": 1, "b": 2},
        id="Volcano: minTaskMember of the roles of pods",
    ),
    pytest.param(
        [
            pod_group("scheduling.volcano.sh/v1beta1", minMember=2, minTaskMember={"a": 1, "b": 2}),
            *role_pods("a", "b", "a", "b"),
        ],
        2,
        {"a": 0, "b": 0},
        id="Volcano: minTaskMember above minMember is ignored",
    ),
    pytest.param(
        [pod_group("scheduling.run.ai/v2alpha2"), *role_pods("a", "a")],
        None,
        {"pods": 1},
        id="KAI: one pod of a PodGroup without minMember",
    ),
    pytest.param(
        [
            pod_group("scheduling.run.ai/v2alpha2", subGroups=[{"name": "a"}]),
            *(pod(f"a{at}", labels={"kai.scheduler/subgroup-name": "a"}) for at in range(2)),
        ],
        None,
        {"a": 1},
        id="KAI: one pod of a subgroup without minMember",
    ),
    pytest.param(
        [
            named(
                job_set({"name": "a", "replicas": 1}, {"name": "b", "replicas": 1}),
                annotations={"kai.scheduler/queue": "q"},
            )
            | {"spec": job_set({"name": "a"}, {"name": "b"})["spec"] | IN_ORDER}
        ],
        None,
        {"train": 1, "a": None, "b": None},
        id="KAI: one replicated job of a JobSet that starts them in order",
    ),
    pytest.param(
        [pod_group("scheduling.sigs.k8s.io/v1alpha1"), pod("a"), pod("b")],
        None,
        {"pods": 0},
        id="Koordinator: a PodGroup without minMember is no gang",
    ),
    pytest.param(
        [
            pod("a", annotations={f"{KOORDINATOR}name": "g", f"{KOORDINATOR}min-available": "1"}),
            pod("b", annotations={f"{KOORDINATOR}name": "g", f"{KOORDINATOR}min-available": "1"}),
        ],
        None,
        {"pods": 1},
        id="Koordinator: min-available",
    ),
]


def minimums_of(groups: list[dict[str, Any]]) -> dict[str, int | None]:
    found = {}
    for row in groups:
        found[row["name"]] = row.get("min")
        found |= minimums_of(row.get("children", []))
    return found


@pytest.mark.parametrize(("documents", "of_gang", "of_groups"), GANGS)
def test_it_reads_the_minimum_of(
    documents: list[Any], of_gang: int | None, of_groups: dict[str, int | None]
) -> None:
    spec = spec_of(*documents)
    assert (spec.get("min"), minimums_of(spec["groups"])) == (of_gang, of_groups)


@pytest.mark.parametrize(
    ("replicas", "minimum"),
    [
        pytest.param({"replicas": 2, "minReplicas": 3}, 3, id="the fewest, if they are more"),
        pytest.param({"replicas": 9, "maxReplicas": 4}, 4, id="the most, if they are fewer"),
        pytest.param({"minReplicas": 3}, 3, id="the fewest by default"),
    ],
)
def test_a_ray_cluster_starts_with(replicas: dict[str, int], minimum: int) -> None:
    assert spec_of(ray_cluster(replicas))["groups"][1]["count"] == minimum


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        pytest.param({"parallelism": 4, "completions": 3}, 3, id="completions, if they are fewer"),
        pytest.param({"parallelism": 4, "completions": 9}, 4, id="parallelism, if it is less"),
        pytest.param({"parallelism": 4, "completions": 3, "completionMode": "Indexed"}, 3,
                     id="completions of an indexed job"),
        pytest.param({"parallelism": 4}, 4, id="parallelism without completions"),
        pytest.param({"completions": 3}, 1, id="one without parallelism"),
    ],
)  # fmt: skip
def test_a_job_runs_as_many_pods_as(spec: dict[str, Any], count: int) -> None:
    template = {"template": pod_template()}
    alone = spec_of(manifest("batch/v1", "Job", **spec, **template))
    of_set = spec_of(job_set({"name": "w", "replicas": 2, "job": spec}))
    by_schedule = spec_of(manifest("batch/v1", "CronJob", jobTemplate={"spec": spec | template}))
    found = [row["groups"][0]["count"] for row in (alone, of_set, by_schedule)]
    assert found == [count, 2 * count, count]


@pytest.mark.parametrize(
    ("documents", "note"),
    [
        pytest.param(
            [named(kubeflow_job("PyTorchJob", {"Worker": 8}, elasticPolicy={"minReplicas": 4}),
                   labels=KUEUE_QUEUE)],
            "spec.elasticPolicy.minReplicas: Kueue does not read it and admits all pods together",
            id="Kueue",
        ),
        pytest.param(
            [pod_group("scheduling.volcano.sh/v1beta1", minMember=2),
             kubeflow_job("PyTorchJob", {"Worker": 8}, elasticPolicy={"minReplicas": 4})],
            "spec.elasticPolicy.minReplicas: the PodGroup says the minimum of the gang",
            id="a PodGroup of Volcano",
        ),
        pytest.param(
            [kubeflow_job("PyTorchJob", {"Worker": 2}, elasticPolicy={"minReplicas": 4})],
            "spec.elasticPolicy.minReplicas: the file has only 2 pods",
            id="a minimum above the pods",
        ),
        pytest.param(
            [pod_group("scheduling.k8s.io/v1beta1", schedulingPolicy={"gang": {"minCount": 3}}),
             pod("a"), pod("b")],
            "spec.schedulingPolicy.gang.minCount: the file has only 2 pods",
            id="a minimum of Kubernetes above the pods",
        ),
        pytest.param(
            [manifest("scheduling.k8s.io/v1alpha3", "CompositePodGroup",
                      schedulingPolicy={"gang": {"minGroupCount": 3}}),
             pod_group("scheduling.k8s.io/v1alpha3", schedulingPolicy={"basic": {}},
                       parentCompositePodGroupName="train")
             | {"metadata": {"name": "inner"}}],
            "spec.schedulingPolicy.gang.minGroupCount: the file has only 1 groups",
            id="a minimum of Kubernetes above the groups",
        ),
        pytest.param(
            [pod_group("scheduling.sigs.k8s.io/v1alpha1", minMember=3), pod("a"), pod("b")],
            "spec.minMember: the file has only 2 pods",
            id="a minimum of Koordinator above the pods",
        ),
        pytest.param(
            [pod_group("scheduling.run.ai/v2alpha2", minMember=3), pod("a"), pod("b")],
            "spec.minMember: the file has only 2 pods",
            id="a minimum of KAI above the pods",
        ),
        pytest.param(
            [named(kubeflow_job("PyTorchJob", {"Worker": 8}, elasticPolicy={"minReplicas": 4}),
                   annotations={"volcano.sh/network-topology-mode": "soft"})],
            "spec.elasticPolicy.minReplicas: the PodGroup of the job asks for all pods",
            id="an elastic job under Volcano",
        ),
        pytest.param(
            [scheduled_by(job(), "kai-scheduler")],
            "without it KAI starts each pod as it fits; the answer is for all pods",
            id="KAI without a minimum",
        ),
        pytest.param(
            [scheduled_by(job(), "volcano")],
            "without it Volcano starts each pod as it fits; the answer is for all pods",
            id="Volcano without a minimum",
        ),
    ],
)  # fmt: skip
def test_it_says_which_minimum_counts_for(documents: list[Any], note: str) -> None:
    assert any(note in str(row) for row in translated(*documents).notes)


@pytest.mark.parametrize(
    ("total", "count", "is_fast", "is_warned"),
    [
        pytest.param(2, 2, False, False, id="all pods"),
        pytest.param(4, 2, False, True, id="fewer pods than the group has"),
        pytest.param(4, 4, True, False, id="a group that starts with its first pod"),
        pytest.param(1, 2, False, False, id="more pods than the group has"),
    ],
)
def test_a_group_of_kueue_has(total: int, count: int, *, is_fast: bool, is_warned: bool) -> None:
    labels = {"kueue.x-k8s.io/pod-group-name": "g"}
    marks = {"kueue.x-k8s.io/pod-group-total-count": str(total)}
    marks |= {"kueue.x-k8s.io/pod-group-fast-admission": "true"} if is_fast else {}
    found = translated(*(pod(name, labels=labels, annotations=marks) for name in "ab"))
    assert found.document["spec"]["groups"][0]["count"] == count
    warnings = [row.path for row in found.ignored if "total-count" in row.path]
    assert bool(warnings) is is_warned


def test_a_gang_of_koordinator_reports_pods_that_the_file_lacks() -> None:
    marks = {f"{KOORDINATOR}name": "g", f"{KOORDINATOR}total-number": "8"}
    (row,) = translated(pod("a", annotations=marks)).ignored
    assert (row.path.endswith("total-number']"), row.reason[:20]) == (True, "the file has 1 of it")


def test_a_minimum_of_another_kind_of_job_is_reported() -> None:
    marks = {"kueue.x-k8s.io/job-min-parallelism": "1"}
    replicated = {"name": "a", "replicas": 2}
    found = translated(job_set(replicated, labels=KUEUE_QUEUE, annotations=marks))
    assert any("job-min-parallelism" in row.path and not row.reason for row in found.ignored)
