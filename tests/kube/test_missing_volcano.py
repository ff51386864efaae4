"""A cluster without Volcano: its kind HyperNode does not exist."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from generator.kube.resources import NODES
from tests.generator.scenes import PAIRS, Scene
from tests.kube.conftest import WRITER, prepare, with_volcano
from tests.kube.servers import LEAF, OFTEN, Cluster, serving
from tests.lab.api_server import ApiServer, find_assets

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube serving")]

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


def test_it_says_what_is_missing_and_writes_what_it_can(cluster: Cluster, tmp_path: Path) -> None:
    approved = cluster.toponaut("approve", "0" * 16)
    assert approved.code == ExitCode.INTERNAL
    assert "nothing to approve: there is no Fabric default in the cluster" in approved.err
    for command in ("plan", "apply"):
        ran = cluster.toponaut(command)
        assert ran.code == ExitCode.NOTHING, ran.err
        assert "install Volcano, or list other outputs in spec.outputs" in ran.err
    cluster.want(outputs=[{"type": "labels"}])
    applied = cluster.toponaut("apply", "--namespace", cluster.namespace)
    assert applied.code == ExitCode.OK, applied.err
    assert has_labels(cluster)
    with serving(cluster, tmp_path, *OFTEN):
        cluster.await_that(lambda: cluster.conditions() == GOOD, "the status says so")
        assert cluster.toponaut("plan", "--check").code == ExitCode.OK
        cluster.want(outputs=[{"type": "labels"}, {"type": "hypernode"}])
        cluster.await_that(
            lambda: cluster.conditions().get("Ready") == "-NotServed", "Ready names the reason"
        )
        assert has_labels(cluster)
        with_volcano(cluster.api)
        cluster.await_tree()
