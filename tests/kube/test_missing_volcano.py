"""A cluster without Volcano: its kind HyperNode does not exist."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from generator.kube.resources import NODES
from tests.generator.scenes import PAIRS, Scene
from tests.kube.conftest import WRITER, prepare, with_volcano
from tests.kube.servers import Cluster, serving
from tests.kube.test_serving import toponaut
from tests.lab.api_server import ApiServer, find_assets

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube serving")]

LEAF = "topology.toponaut.io/leaf"
GOOD = {
    "Ready": "TreeDecided",
    "Degraded": "-EvidenceWhole",
    "ChangeBlocked": "-WithinBudget",
    "OutputsWritten": "AllWritten",
}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    folder = tmp_path / "api"
    folder.mkdir()
    with ApiServer(find_assets("programs"), folder, users=[WRITER]) as api:
        prepare(api)
        yield Cluster(api, Scene.of(tmp_path / "scene", PAIRS), has_volcano=False)


def has_labels(cluster: Cluster) -> bool:
    return all(LEAF in node["metadata"].get("labels", {}) for node in cluster.items(NODES))


def test_it_writes_labels_there(cluster: Cluster, tmp_path: Path) -> None:
    cluster.want(outputs=[{"type": "labels"}])
    with serving(cluster, tmp_path, "--period", "1s"):
        cluster.await_that(lambda: has_labels(cluster), "every node has its leaf")
        cluster.await_that(lambda: cluster.conditions() == GOOD, "the status says so")
        assert toponaut(cluster, "plan", "--check").code == ExitCode.OK


def test_it_says_what_is_missing_and_writes_hypernodes_once_volcano_is_there(
    cluster: Cluster, tmp_path: Path
) -> None:
    with serving(cluster, tmp_path, "--period", "1s"):
        cluster.await_that(
            lambda: cluster.conditions().get("Ready") == "-NotServed", "Ready names the reason"
        )
        with_volcano(cluster.api)
        cluster.await_tree()


def test_apply_writes_labels_there(cluster: Cluster) -> None:
    cluster.want(outputs=[{"type": "labels"}])
    applied = toponaut(cluster, "apply", "--namespace", cluster.namespace)
    assert applied.code == ExitCode.OK, applied.err
    assert has_labels(cluster)
    assert toponaut(cluster, "plan", "--check").code == ExitCode.OK


@pytest.mark.parametrize("command", ["plan", "apply"])
def test_a_command_says_what_is_missing(cluster: Cluster, command: str) -> None:
    ran = toponaut(cluster, command)
    assert ran.code == ExitCode.NOTHING, ran.err
    assert "install Volcano, or list other outputs in spec.outputs" in ran.err
