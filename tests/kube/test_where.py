"""`toponaut where --kube`: a running job's pods are read from the API server."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from generator.kube.resources import RESERVATIONS
from generator.reservations.records import HeldGroup, RankRun, render_spec, render_status
from runtime.clock import utc_now
from tests.generator.reservations.worlds import World
from tests.generator.scenes import PAIRS, Ran, Scene, run
from tests.kube.conftest import WRITER
from tests.kube.reservers import clear
from tests.kube.servers import Cluster
from tests.lab.api_server import ApiServer

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube")]

GROUP = "scheduling.k8s.io/group-name"
GPU = "nvidia.com/gpu"


@pytest.fixture
def cluster(other_api: ApiServer, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(other_api, Scene.of(tmp_path / "scene", PAIRS))
    yield made
    clear(other_api)
    made.clear()


def where(cluster: Cluster, job: str) -> Ran:
    kubeconfig = cluster.api.kubeconfig(WRITER)
    return run("where", job, "--kube", "--kubeconfig", kubeconfig, "-o", "json")


def test_it_finds_the_pods_of_a_job_and_a_better_place_that_nobody_reserved(
    cluster: Cluster,
) -> None:
    pods = f"/api/v1/namespaces/{cluster.namespace}/pods"
    cluster.run_gang()  # makes the service account that pods need
    far = (cluster.scene.hosts[-1], cluster.scene.hosts[0])
    for at, host in enumerate(far):
        metadata = {"name": f"llama-{at}", "annotations": {GROUP: "llama"}}
        limits = {"limits": {GPU: "8"}}
        spec = {
            "nodeName": host,
            "containers": [{"name": "c", "image": "i", "resources": limits}],
        }
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
    reserve(cluster, *(host for host in cluster.scene.hosts if host not in far))
    ran = where(cluster, f"{cluster.namespace}/llama")
    assert ran.code == ExitCode.OK, ran.err
    assert ran.document["better"] is None


def reserve(cluster: Cluster, *nodes: str) -> None:
    """Reserve whole nodes for another gang."""
    group = HeldGroup("w", ((GPU, 8),), tuple(RankRun(node, 1) for node in nodes))
    one = World().made(1, gang="ns/other", groups=[{"name": "w", "count": 1}])
    one = replace(one, groups=(group,), expires_at=utc_now() + timedelta(hours=1))
    document = render_spec(one)
    cluster.api.expect("POST", RESERVATIONS.path(), document)
    status = {key: document[key] for key in ("apiVersion", "kind", "metadata")}
    path = f"{RESERVATIONS.path(one.id)}/status?fieldManager=person"
    cluster.api.apply(path, status | {"status": render_status(one)})


def test_it_reports_a_job_without_pods(cluster: Cluster) -> None:
    ran = where(cluster, "nothing")
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert "the cluster: no pod belongs to job 'nothing'" in ran.err
