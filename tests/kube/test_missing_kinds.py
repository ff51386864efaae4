"""A cluster without kinds that we use: first without Volcano's HyperNode, then without ours."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from generator.kube.resources import NODES
from runtime.retry import MAX_PERIODS
from tests.generator.scenes import PAIRS, Scene
from tests.kube.agent_nodes import ClusterAgent, ClusterNode, account_in, events
from tests.kube.conftest import CRDS, WRITER, prepare, with_volcano
from tests.kube.servers import LEAF, OFTEN, Cluster, serving
from tests.lab.api_server import ApiServer, find_assets

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube outputs")]

REPORTS_CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/neighborreports.toponaut.io"
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


def test_a_generator_and_an_agent_that_start_before_their_kinds_work_once_they_are_installed(
    cluster: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    api = cluster.api
    api.expect("DELETE", REPORTS_CRD)
    cluster.await_that(lambda: api.request("GET", REPORTS_CRD).status == 404, "the kind is gone")
    agent = ClusterAgent(ClusterNode(api, account_in(api), "early"), tmp_path)
    agent.run(MAX_PERIODS)
    assert events(caplog.records) == ["publishing failed"]
    assert " 404 " in vars(caplog.records[0])["error"]
    with serving(cluster, tmp_path, *OFTEN) as running:
        missing = "the cluster has no NeighborReport, its CRD is not installed"
        cluster.await_that(lambda: missing in str(running.log), "the missing kind is named")
        api.install_all(CRDS)
        with_volcano(api)
        cluster.report(cluster.scene)
        cluster.await_tree()
    agent.run(MAX_PERIODS + 1)
    assert agent.heard == ["leaf1"]
