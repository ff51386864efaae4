"""Sets of pods in the order of ranks, whatever their order in the file."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from generator.manifests.kinds.kubeflow import REPLICA_KEYS
from tests.generator.manifests.scenes import (
    kubeflow_job,
    manifest,
    pod_template,
    spec_of,
    translated,
    volcano_job,
)

ROLES = {
    "JAXJob": ["Worker"],
    "MPIJob": ["Launcher", "Worker"],
    "PaddleJob": ["Master", "Worker"],
    "PyTorchJob": ["Master", "Worker"],
    "TFJob": ["Chief", "Master", "PS", "Worker", "Evaluator"],
    "XGBoostJob": ["Master", "Worker"],
}
"""By kind of Kubeflow, in the order of ranks."""


def order_of(document: dict[str, Any]) -> list[str]:
    return [row["name"] for row in spec_of(document)["groups"]]


@pytest.mark.parametrize("kind", REPLICA_KEYS)
def test_the_order_of_roles_in_the_file_does_not_matter_for_a(kind: str) -> None:
    ranked = ROLES[kind]
    counts = {role: 1 + at for at, role in enumerate(ranked)}
    found = [
        spec_of(kubeflow_job(kind, {role: counts[role] for role in roles}))
        for roles in permutations(ranked)
    ]
    assert [row["name"] for row in found[0]["groups"]] == [role.lower() for role in ranked]
    assert all(spec == found[0] for spec in found)


@pytest.mark.parametrize("kind", [kind for kind, roles in ROLES.items() if len(roles) > 1])
def test_every_role_may_be_alone_in_a(kind: str) -> None:
    for role in ROLES[kind]:
        other = {name: 0 for name in ROLES[kind] if name != role}
        assert order_of(kubeflow_job(kind, {role: 3} | other)) == [role.lower()]


def test_a_role_that_no_operator_knows_comes_last() -> None:
    assert order_of(kubeflow_job("PyTorchJob", {"Critic": 1, "Worker": 2, "Master": 1})) == [
        "master", "worker", "critic",
    ]  # fmt: skip


TASKS = [
    pytest.param({}, ["worker", "master"], ["master", "worker"], id="a master"),
    pytest.param({}, ["ps", "worker", "chief"], ["chief", "ps", "worker"], id="a chief"),
    pytest.param({}, ["worker", "launcher"], ["launcher", "worker"], id="a launcher"),
    pytest.param({}, ["worker", "head"], ["head", "worker"], id="a head"),
    pytest.param({}, ["executor", "driver"], ["driver", "executor"], id="a driver"),
    pytest.param({}, ["a", "b"], ["a", "b"], id="none of these: the order of the file"),
    pytest.param(
        {"mpi": ["--master=runner", "--worker=w"]}, ["w", "runner"], ["runner", "w"],
        id="the master that the plugin mpi names",
    ),
    pytest.param(
        {"pytorch": ["--master", "zero"]}, ["one", "zero"], ["zero", "one"],
        id="the master that the plugin pytorch names",
    ),
    pytest.param(
        {"pytorch": ["--master=zero"]}, ["master", "zero"], ["zero", "master"],
        id="the plugin before the name",
    ),
    pytest.param({"pytorch": []}, ["worker", "master"], ["master", "worker"],
                 id="the master of a plugin without arguments"),
    pytest.param({"ssh": [], "svc": []}, ["worker", "master"], ["master", "worker"],
                 id="a master beside other plugins"),
    pytest.param({"ray": []}, ["worker", "head"], ["head", "worker"],
                 id="the head of the plugin ray"),
]  # fmt: skip


@pytest.mark.parametrize(("plugins", "tasks", "ranked"), TASKS)
def test_a_job_of_volcano_starts_its_ranks_with(
    plugins: dict[str, list[str]], tasks: list[str], ranked: list[str]
) -> None:
    rows = [{"name": name, "replicas": 2} for name in tasks]
    assert order_of(volcano_job(rows, plugins=plugins)) == ranked


def test_a_launcher_of_volcano_that_waits_for_its_workers_is_first() -> None:
    tasks = [
        {"name": "worker", "replicas": 2},
        {"name": "master", "replicas": 1, "dependsOn": {"name": ["worker"]}},
    ]
    assert order_of(volcano_job(tasks, plugins={"mpi": []})) == ["master", "worker"]


def test_a_head_of_ray_comes_before_its_workers() -> None:
    worker = {"groupName": "gpu", "replicas": 2, "template": pod_template()}
    spec = {"workerGroupSpecs": [worker], "headGroupSpec": {"template": pod_template()}}
    assert order_of(manifest("ray.io/v1", "RayCluster", **spec)) == ["head", "gpu"]


def test_a_leader_comes_before_its_workers() -> None:
    pods = {"size": 3, "workerTemplate": pod_template(), "leaderTemplate": pod_template()}
    sets = manifest("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", leaderWorkerTemplate=pods)
    assert order_of(sets) == ["leader", "worker"]


def test_a_leader_of_a_workload_of_kueue_comes_before_its_workers() -> None:
    rows = [
        {"name": name, "count": count, "template": pod_template()}
        | {"topologyRequest": {"required": "leaf", "podSetGroupName": "g"}}
        for name, count in (("workers", 3), ("leader", 1))
    ]
    workload = manifest("kueue.x-k8s.io/v1beta2", "Workload", podSets=rows)
    assert order_of(workload) == ["leader", "workers"]


@pytest.mark.parametrize("takes_part", [True, False])
def test_it_says_that_a_launcher_has_no_rank_of_mpi(*, takes_part: bool) -> None:
    job = kubeflow_job("MPIJob", {"Worker": 2, "Launcher": 1}, runLauncherAsWorker=takes_part)
    said = [note.text for note in translated(job).notes if "no rank of MPI" in note.text]
    assert bool(said) is not takes_part
