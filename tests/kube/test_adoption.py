"""HyperNodes that an admin applied are taken over on a real API server, and only then written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from generator.cli.exit_codes import ExitCode
from generator.kube.resources import HYPERNODES
from tests.generator.scenes import PAIRS, Ran, Scene, run
from tests.kube.conftest import WRITER
from tests.kube.servers import Cluster
from tests.lab.api_server import ApiServer

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube outputs")]


@pytest.fixture
def cluster(other_api: ApiServer, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(other_api, Scene.of(tmp_path / "scene", PAIRS))
    yield made
    made.clear()


def command(cluster: Cluster, name: str, *words: object) -> Ran:
    kubeconfig = str(cluster.api.kubeconfig(WRITER))
    return run(name, "--kube", "--kubeconfig", kubeconfig, *words)


def by_pattern(name: str, tier: int, pattern: str) -> dict[str, Any]:
    member = {"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}}
    return {
        "apiVersion": HYPERNODES.api_version,
        "kind": HYPERNODES.kind,
        "metadata": {"name": name, "labels": {"team": "ml"}},
        "spec": {"tier": tier, "members": [member]},
    }


def test_hypernodes_of_an_admin_are_taken_over(cluster: Cluster) -> None:
    hosts = cluster.scene.hosts
    pattern = f"^({'|'.join(hosts)})$"
    path = HYPERNODES.path("hall")
    cluster.api.apply(f"{path}?fieldManager=admin", by_pattern("hall", 1, pattern))
    held = command(cluster, "adopt", "-o", "json")
    assert held.code == ExitCode.CHECK_FAILED, held.err
    assert cluster.api.expect("GET", path)["spec"]["members"][0]["selector"].keys() == {
        "regexMatch"
    }
    done = command(cluster, "adopt", "--approve", held.document["hash"], "-o", "json")
    assert done.code == ExitCode.OK, done.err
    ours = cluster.items(HYPERNODES)
    labels = {row["metadata"]["name"]: row["metadata"]["labels"] for row in ours}
    assert all(row["volcano.sh/network-topology-source"] == "toponaut" for row in labels.values())
    again = command(cluster, "apply")
    assert (again.code, again.out) == (ExitCode.OK, "nothing to change\n")
    assert command(cluster, "lint", "--check").code == ExitCode.OK
    witness = command(cluster, "diff", "--against", "hypernodes", "--check")
    assert witness.code == ExitCode.OK, witness.out
