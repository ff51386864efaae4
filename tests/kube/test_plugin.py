"""`kubectl toponaut` as kubectl calls it, and placement into the free capacity of a cluster."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from generator.cli.exit_codes import ExitCode
from tests.generator.scenes import PAIRS, Scene, run
from tests.kube.conftest import WRITER
from tests.kube.servers import Cluster, serving
from tests.lab.api_server import ApiServer
from tests.repository import ROOT

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube serving")]

GPU = "nvidia.com/gpu"


@pytest.fixture
def cluster(other_api: ApiServer, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(other_api, Scene.of(tmp_path / "scene", PAIRS))
    yield made
    made.clear()


def kubectl(cluster: Cluster, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the program behind `kubectl-toponaut`, with kubectl's own variable."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, name = declared["kubectl-toponaut"].partition(":")
    return subprocess.run(
        [sys.executable, "-c", f"from {module} import {name}; {name}()", *words],
        cwd=ROOT,
        env=os.environ | {"KUBECONFIG": str(cluster.api.kubeconfig(WRITER))},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def request(tmp_path: Path, count: int, gpus: int) -> str:
    group = {
        "name": "w",
        "count": count,
        "request": {GPU: gpus},
        "tolerations": ["node.kubernetes.io/not-ready"],
    }
    file = tmp_path / "request.json"
    head = {"apiVersion": "toponaut.io/v1alpha1", "kind": "PlacementRequest"}
    file.write_text(json.dumps(head | {"spec": {"groups": [group]}}))
    return str(file)


def place(cluster: Cluster, file: str) -> dict[str, Any]:
    ran = kubectl(cluster, "place", "-f", file, "-o", "json")
    assert ran.returncode == ExitCode.OK, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_it_reads_the_cluster_that_kubectl_would(cluster: Cluster) -> None:
    ran = kubectl(cluster, "tree", "--context", "lab")
    assert ran.returncode == ExitCode.OK, ran.stderr
    assert f"{len(cluster.scene.hosts)} nodes" in ran.stdout


def test_it_answers_from_free_capacity(cluster: Cluster, tmp_path: Path) -> None:
    hosts = cluster.scene.hosts
    whole = request(tmp_path, len(hosts), 8)
    with serving(cluster, tmp_path) as generator:
        cluster.await_tree()

        def is_feasible() -> bool:
            ran = run("place", "-f", whole, "--server", generator.address, "-o", "json")
            return ran.code == ExitCode.OK and bool(ran.document["feasible"])

        cluster.await_that(is_feasible, "all nodes are free")
        versions, published = cluster.versions(), generator.events.count("tree published")
        pods = f"/api/v1/namespaces/{cluster.namespace}/pods"
        cluster.run_gang()
        container = {"name": "c", "image": "i", "resources": {"limits": {GPU: "8"}}}
        spec = {"nodeName": hosts[0], "containers": [container]}
        for name in ("ended", "deleted"):
            made = cluster.api.expect("POST", pods, {"metadata": {"name": name}, "spec": spec})
            cluster.await_that(lambda: not is_feasible(), "a node is taken")
            if name == "ended":
                done = made | {"status": {"phase": "Succeeded"}}
                cluster.api.expect("PUT", f"{pods}/{name}/status", done)
            else:
                cluster.api.expect("DELETE", f"{pods}/{name}", {"gracePeriodSeconds": 0})
            cluster.await_that(is_feasible, f"it is free again: its pod is {name}")
        assert generator.events.count("tree published") == published
    assert cluster.versions() == versions
