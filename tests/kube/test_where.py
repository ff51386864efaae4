"""`toponaut where --kube`: a running job's pods are read from the API server."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from tests.generator.scenes import PAIRS, Ran, Scene, run
from tests.kube.conftest import WRITER
from tests.kube.servers import Cluster
from tests.lab.api_server import ApiServer

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube")]

GROUP = "scheduling.k8s.io/group-name"


@pytest.fixture
def cluster(other_api: ApiServer, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(other_api, Scene.of(tmp_path / "scene", PAIRS))
    yield made
    made.clear()


def where(cluster: Cluster, job: str) -> Ran:
    kubeconfig = cluster.api.kubeconfig(WRITER)
    return run("where", job, "--kube", "--kubeconfig", kubeconfig, "-o", "json")


def test_it_finds_the_pods_of_a_job_in_the_cluster(cluster: Cluster) -> None:
    pods = f"/api/v1/namespaces/{cluster.namespace}/pods"
    cluster.run_gang()  # makes the service account that pods need
    far = (cluster.scene.hosts[-1], cluster.scene.hosts[0])
    for at, host in enumerate(far):
        metadata = {"name": f"llama-{at}", "annotations": {GROUP: "llama"}}
        spec = {"nodeName": host, "containers": [{"name": "c", "image": "i"}]}
        cluster.api.expect("POST", pods, {"metadata": metadata, "spec": spec})
    ran = where(cluster, f"{cluster.namespace}/llama")
    assert ran.code == ExitCode.OK, ran.err
    found = ran.document
    assert [(row["name"], row["node"]) for row in found["pods"]] == [
        ("llama-0", far[0]),
        ("llama-1", far[1]),
    ]
    assert found["tier"] != "leaf"
    assert found["better"]["tier"] == "leaf", json.dumps(found)


def test_it_reports_a_job_without_pods(cluster: Cluster) -> None:
    ran = where(cluster, "nothing")
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert "the cluster: no pod belongs to job 'nothing'" in ran.err
