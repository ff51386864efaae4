"""Kinds of workloads: which pods they run at once, or that they are not read."""

from __future__ import annotations

from typing import Any

import pytest

from generator.manifests.fields import Relevance
from tests.generator.manifests.scenes import (
    GPU,
    job,
    kubeflow_job,
    manifest,
    pod,
    pod_template,
    spec_of,
    translated,
    volcano_job,
)
from topology.model.errors import PlacementRequestError

CPU = {"spec": {"containers": [{"resources": {"requests": {"cpu": 1, "memory": 1024}}}]}}
QUEUE = {"kueue.x-k8s.io/queue-name": "q"}


def ray_spec(*groups: dict[str, Any], **spec: object) -> dict[str, Any]:
    """Return the spec of a Ray cluster whose head has a CPU; each worker has eight GPUs."""
    rows = [{"groupName": "gpu", "template": pod_template()} | row for row in groups]
    return {"headGroupSpec": {"template": CPU}, "workerGroupSpecs": rows} | spec


def ray_job(**spec: object) -> dict[str, Any]:
    return manifest("ray.io/v1", "RayJob", rayClusterSpec=ray_spec({"replicas": 2}), **spec)


def leader_worker_set(size: int, **spec: object) -> dict[str, Any]:
    pods = {"size": size, "workerTemplate": pod_template()} | spec
    return manifest("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", leaderWorkerTemplate=pods)


def app_wrapper(*components: dict[str, Any]) -> dict[str, Any]:
    return manifest("workload.codeflare.dev/v1beta2", "AppWrapper", components=list(components))


def deployment(replicas: int) -> dict[str, Any]:
    return manifest("apps/v1", "Deployment", replicas=replicas, template=pod_template())


def train_job(policy: dict[str, Any], *rows: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a TrainJob of four nodes and its runtime."""
    api, template = "trainer.kubeflow.org/v1alpha1", {"spec": {"replicatedJobs": list(rows)}}
    trainer = {"numNodes": 4, "resourcesPerNode": {"limits": {GPU: 8}}}
    return [
        manifest(api, "TrainJob", runtimeRef={"name": "train"}, trainer=trainer),
        manifest(api, "TrainingRuntime", mlPolicy=policy, template=template),
    ]


def step(name: str, role: str = "", container: str = "node", **row: object) -> dict[str, Any]:
    """Return a replicated job of a runtime; a role makes it a step of training."""
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": role} if role else {}
    pods = {"spec": {"containers": [CPU["spec"]["containers"][0] | {"name": container}]}}
    template = {"metadata": {"labels": labels}, "spec": {"template": pods}}
    return {"name": name, "template": template} | row


PODS = [
    pytest.param(
        [manifest("ray.io/v1", "RayCluster", **ray_spec({"replicas": 2}))],
        {"head": (1, {"cpu": 1, "memory": 1024}), "gpu": (2, {GPU: 8})},
        id="a Ray cluster: a head and workers",
    ),
    pytest.param(
        [manifest("ray.io/v1", "RayCluster",
                  **ray_spec({"replicas": 2, "numOfHosts": 4},
                             {"groupName": "b", "suspend": True}))],
        {"head": (1, {"cpu": 1, "memory": 1024}), "gpu": (8, {GPU: 8})},
        id="a Ray cluster: hosts of a replica, and no suspended group",
    ),
    pytest.param(
        [manifest("ray.io/v1", "RayCluster",
                  **ray_spec({"replicas": 1}, enableInTreeAutoscaling=True))],
        {"head": (1, {"cpu": "1500m", "memory": 1024 + (512 << 20)}), "gpu": (1, {GPU: 8})},
        id="a Ray cluster that scales: a container beside its head",
    ),
    pytest.param(
        [ray_job()],
        {
            "head": (1, {"cpu": 1, "memory": 1024}),
            "gpu": (2, {GPU: 8}),
            "submitter": (1, {"cpu": "500m", "memory": 200 << 20}),
        },
        id="a Ray job: its cluster, and the pod that submits it",
    ),
    pytest.param(
        [ray_job(submitterPodTemplate=CPU)],
        {
            "head": (1, {"cpu": 1, "memory": 1024}),
            "gpu": (2, {GPU: 8}),
            "submitter": (1, {"cpu": 1, "memory": 1024}),
        },
        id="a Ray job: the template of the pod that submits it",
    ),
    pytest.param(
        [ray_job(submissionMode="HTTPMode")],
        {"head": (1, {"cpu": 1, "memory": 1024}), "gpu": (2, {GPU: 8})},
        id="a Ray job that is submitted over HTTP",
    ),
    pytest.param(
        [ray_job(submissionMode="SidecarMode")],
        {"head": (1, {"cpu": "1500m", "memory": 1024 + (200 << 20)}), "gpu": (2, {GPU: 8})},
        id="a Ray job that its head submits",
    ),
    pytest.param(
        [manifest("ray.io/v1", "RayService", rayClusterConfig=ray_spec({"replicas": 2}))],
        {"head": (1, {"cpu": 1, "memory": 1024}), "gpu": (2, {GPU: 8})},
        id="a Ray service: its cluster",
    ),
    pytest.param(
        [leader_worker_set(1, leaderTemplate=CPU)],
        {"leader": (1, {"cpu": 1, "memory": 1024})},
        id="a leader without workers",
    ),
    pytest.param(
        [leader_worker_set(4)], {"worker": (4, {GPU: 8})}, id="a leader that is like its workers"
    ),
    pytest.param(
        [leader_worker_set(4, leaderTemplate=CPU)],
        {"leader": (1, {"cpu": 1, "memory": 1024}), "worker": (3, {GPU: 8})},
        id="a leader with workers",
    ),
    pytest.param(
        [kubeflow_job("MPIJob", {"Launcher": 1})], {"launcher": (1, {GPU: 8})}, id="only a launcher"
    ),
    pytest.param(
        [kubeflow_job("MPIJob", {"Launcher": 1, "Worker": 0})],
        {"launcher": (1, {GPU: 8})},
        id="a launcher and no worker",
    ),
    pytest.param(
        [manifest("batch/v1", "CronJob", schedule="* * * * *",
                  jobTemplate={"spec": {"parallelism": 3, "template": pod_template()}})],
        {"main": (3, {GPU: 8})},
        id="a CronJob: its next Job",
    ),
    pytest.param(
        [app_wrapper({"template": job()})], {"main": (4, {GPU: 8})}, id="an AppWrapper of a Job"
    ),
    pytest.param(
        [app_wrapper({"template": job("a")}, {"template": pod("b")},
                     {"template": {"apiVersion": "v1", "kind": "Service"}})],
        {"a-main": (4, {GPU: 8}), "b-pod": (1, {GPU: 8})},
        id="an AppWrapper of a Job, a pod and a Service",
    ),
    pytest.param(
        [app_wrapper({
            "template": manifest("example.com/v1", "Thing",
                                 replicas=[{"template": pod_template()}]),
            "podSets": [{"replicas": 3, "path": "template.spec.replicas[0].template"}],
        })],
        {"pods-0": (3, {GPU: 8})},
        id="an AppWrapper that says the pods of an unknown kind",
    ),
    pytest.param(
        train_job({"torch": {}}, step("model", "model-initializer"),
                  step("node", "trainer", dependsOn=[{"name": "model", "status": "Complete"}])),
        {"node": (4, {GPU: 8})},
        id="a TrainJob: its nodes, without initializers",
    ),
    pytest.param(
        train_job({"mpi": {"runLauncherAsNode": True}}, step("launcher", "trainer"), step("node")),
        {"launcher": (1, {GPU: 8}), "node": (3, {GPU: 8})},
        id="a TrainJob of MPI: the launcher is a node",
    ),
    pytest.param(
        train_job({"mpi": {}}, step("launcher", "trainer", "launcher"), step("node")),
        {"launcher": (1, {"cpu": 1, "memory": 1024}), "node": (4, {"cpu": 1, "memory": 1024})},
        id="a TrainJob of MPI: the launcher is no node",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("documents", "pods"), PODS)
def test_it_runs_the_pods_of(documents: list[Any], pods: dict[str, Any]) -> None:
    found = translated(*documents)
    rows = found.document["spec"]["groups"]
    assert {row["name"]: (row["count"], row["request"]) for row in rows} == pods
    warnings = [str(row) for row in found.ignored if row.relevance is Relevance.POSSIBLE]
    assert [row for row in warnings if "resourcesPerNode" not in row] == []


@pytest.mark.parametrize(
    "scheduler", [pytest.param("kai-scheduler", id="KAI"), pytest.param("volcano", id="Volcano")]
)
def test_the_pod_that_submits_a_ray_job_is_in_no_gang_of(scheduler: str) -> None:
    spec = ray_spec({"replicas": 2, "template": pod_template(schedulerName=scheduler)})
    found = spec_of(manifest("ray.io/v1", "RayJob", rayClusterSpec=spec))
    assert [row["name"] for row in found["groups"]] == ["head", "gpu"]


def test_a_leader_without_workers_is_placed_by_kueue() -> None:
    mark = {
        "kueue.x-k8s.io/podset-required-topology": "leaf",
        "kueue.x-k8s.io/podset-group-name": "g",
    }
    leader = {"metadata": {"annotations": mark}} | pod_template()
    (row,) = spec_of(leader_worker_set(1, leaderTemplate=leader))["groups"]
    assert (row["name"], row["count"], "leader_of" in row) == ("leader", 1, False)


@pytest.mark.parametrize(
    ("marks", "metadata"),
    [
        pytest.param({"kueue.x-k8s.io/podset-required-topology": "leaf"}, {"labels": QUEUE},
                     id="Kueue"),
        pytest.param({}, {"annotations": {"kai.scheduler/topology-required-placement": "leaf"}},
                     id="KAI"),
    ],
)  # fmt: skip
def test_a_bound_of_a_deployment_holds_for_each_pod_in(
    marks: dict[str, str], metadata: dict[str, Any]
) -> None:
    manifest_ = deployment(4)
    manifest_["metadata"] |= metadata
    manifest_["spec"]["template"] = {"metadata": {"annotations": marks}} | pod_template()
    found = translated(manifest_)
    spec = found.document["spec"]
    assert "required" not in spec | spec["groups"][0]
    assert spec["groups"][0]["slices"] == [{"size": 1, "tier": "leaf"}]
    assert any("each pod is a gang of its own" in note.text for note in found.notes)


REFUSED = [
    pytest.param("sparkoperator.k8s.io/v1beta2", "SparkApplication", id="a Spark application"),
    pytest.param("apps/v1", "DaemonSet", id="a DaemonSet"),
    pytest.param("flink.apache.org/v1beta1", "FlinkDeployment", id="a Flink cluster"),
    pytest.param("example.com/v1", "PyTorchJob", id="a known name of another API"),
]


@pytest.mark.parametrize(("api", "kind"), REFUSED)
@pytest.mark.parametrize(
    "labels", [{}, QUEUE, {"kai.scheduler/queue": "q"}, {"volcano.sh/queue-name": "q"}]
)
def test_it_refuses_by_its_name(api: str, kind: str, labels: dict[str, str]) -> None:
    document = manifest(api, kind, template=pod_template())
    document["metadata"]["labels"] = labels
    with pytest.raises(PlacementRequestError) as caught:
        spec_of(document)
    named = f"{kind} of {api.partition('/')[0]}"
    assert f"got {named}; the workloads read are AppWrapper, CronJob" in str(caught.value)


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        pytest.param(ray_job(clusterSelector={"ray.io/cluster": "c"}),
                     "clusterSelector: expected a RayJob with a cluster of its own",
                     id="a Ray job in another cluster"),
        pytest.param(app_wrapper({"template": manifest("example.com/v1", "Thing")}),
                     "Toponaut does not read Thing; expected podSets", id="an unknown component"),
        pytest.param(app_wrapper({"template": manifest("example.com/v1", "Thing"),
                                  "podSets": [{"path": "template.spec.rows[3]"}]}),
                     "path: expected the path of a pod template", id="a path to nothing"),
        pytest.param(app_wrapper({"template": manifest("example.com/v1", "Thing"),
                                  "podSets": [{"path": "spec"}]}),
                     "path: expected a path such as", id="a path outside the template"),
        pytest.param(app_wrapper({"template": {"apiVersion": "v1", "kind": "Service"}}),
                     "has no pods to place", id="an AppWrapper without pods"),
    ],
)  # fmt: skip
def test_it_refuses(document: dict[str, Any], problem: str) -> None:
    with pytest.raises(PlacementRequestError) as caught:
        spec_of(document)
    assert problem in str(caught.value)


def test_an_app_wrapper_that_declares_other_counts_is_reported() -> None:
    declared = [{"replicas": 3, "path": "template.spec.template"}]
    (row,) = translated(app_wrapper({"template": job(), "podSets": declared})).ignored
    assert row.reason == "says 3 pods, but the Job has others"


def test_jobs_of_which_one_waits_for_the_end_of_another_may_matter() -> None:
    rows: list[dict[str, Any]] = [
        {"name": "a", "template": {"spec": {"template": pod_template()}}},
        {"name": "b", "template": {"spec": {"template": pod_template()}}},
    ]
    for status, is_warned in (("Ready", False), ("Complete", True)):
        rows[1]["dependsOn"] = [{"name": "a", "status": status}]
        found = translated(manifest("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs=rows))
        assert any("dependsOn" in row.path for row in found.ignored) is is_warned


@pytest.mark.parametrize("name", ["volcano", "kai-scheduler", "default-scheduler", "mine"])
def test_another_scheduler_may_matter(name: str) -> None:
    document = volcano_job([{"replicas": 1}], schedulerName=name)
    paths = [row.path for row in translated(document).ignored]
    assert any("schedulerName" in path for path in paths) is (name == "mine")
