"""The reading commands on a cluster, and plans applied to it: the same as on folders."""

from collections.abc import Iterator
from time import monotonic

import pytest

from generator.cli.exit_codes import ExitCode
from generator.cli.observation import read_observation
from generator.cli.plans import read_observed
from generator.ingest.sources import Sources
from generator.kube.access import ClusterAccess
from generator.kube.resources import FABRICS, NODES, REPORTS
from generator.outputs.hypernode.model import HyperNode, Member, MemberType
from generator.reconcile.desired import plan_tree_changes
from generator.reconcile.writer import apply_plan
from generator.store.cluster_store import ClusterStore
from generator.store.fabric_store import FabricStore
from generator.store.kinds import SERVED
from generator.store.object_folders import read_reports
from runtime.retry import WaitContext
from tests.generator.scenes import RAILS, Ran, Scene, kube_node, run
from tests.kube.conftest import WRITER, connecting, with_volcano
from tests.kube.followers import JITTER, HastyStop, command_store, followed_store
from tests.kube.proxy import Fault, FaultProxy
from tests.lab.api_server import ApiServer
from tests.lab.wait import wait_until
from topology.model.errors import KubeNotFound, KubeUnavailable
from topology.reports.neighbor_report import render_report
from topology.reports.packed_reports import unpack_report

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube")]


class Cluster:
    """A server with the reports of a scene's agents."""

    def __init__(self, api: ApiServer, scene: Scene) -> None:
        self.api = with_volcano(api)
        self.scene = scene
        self.kubeconfig = str(api.kubeconfig(WRITER))
        for name in scene.hosts:
            node = kube_node(name)
            made = api.expect("POST", NODES.path(), node | {"status": {}})
            api.expect("PUT", f"{NODES.path(name)}/status", made | {"status": node["status"]})
        fabric = {"metadata": {"name": "default"}, "spec": {"sweepers": [scene.hosts[0], "odd"]}}
        head = {"apiVersion": FABRICS.api_version, "kind": FABRICS.kind}
        api.apply(f"{FABRICS.path('default')}?fieldManager=person", head | fabric)
        for report in read_reports(scene.reports()).values:
            rendered = render_report(unpack_report(report))
            made = api.expect("POST", REPORTS.path(), rendered)
            path = f"{REPORTS.path(report.name)}/status"
            api.expect("PUT", path, made | {"status": rendered.get("status", {})})

    def run(self, command: str, *words: object) -> Ran:
        return run(command, "--kube", "--kubeconfig", self.kubeconfig, "-o", "json", *words)


@pytest.fixture(scope="module")
def loaded(spare_api: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    spare_api.revive()
    return Cluster(spare_api, Scene.of(tmp_path_factory.mktemp("scene"), RAILS))


@pytest.fixture
def cluster(loaded: Cluster) -> Cluster:
    loaded.api.revive()
    return loaded


@pytest.fixture
def store(cluster: Cluster) -> Iterator[FabricStore]:
    with connecting(cluster.api) as transport:
        yield command_store(transport)


@pytest.mark.parametrize("command", ["tree", "findings", "planes"])
def test_it_reports_the_same_for_a_cluster_and_for_its_reports(
    cluster: Cluster, command: str
) -> None:
    scene = cluster.scene
    folder = run(command, "--reports", scene.reports(), "--nodes", scene.kube_nodes(), "-o", "json")
    live = cluster.run(command)
    assert (live.code, live.err) == (ExitCode.OK, "")
    assert live.document == folder.document


def test_it_applies_a_plan_and_then_rests(cluster: Cluster, store: FabricStore) -> None:
    planned = cluster.run("plan")
    assert planned.code == ExitCode.OK
    assert {one["op"] for one in planned.document} == {"create"}
    access = ClusterAccess(cluster.kubeconfig)
    observed = read_observed(None, None, access)
    seen = read_observation(Sources(cluster=access)).observation
    actions, problems, _ = plan_tree_changes(seen, observed.hypernodes)
    assert not problems
    assert [one.name for one in actions] == [one["name"] for one in planned.document]
    earlier = len(cluster.api.writes_by(WRITER))
    assert apply_plan(actions, store).error is None
    assert cluster.run("plan").document == []
    written = cluster.api.writes_by(WRITER)[earlier:]
    assert [one.name for one in written] == [one.name for one in actions]
    assert apply_plan(actions, store).error is None
    assert cluster.api.writes_by(WRITER)[earlier:] == written, "no write where nothing changed"
    for action in reversed(actions):
        assert store.remove(action.name)
        assert not store.remove(action.name)
    assert cluster.run("plan", "--check").code == ExitCode.CHECK_FAILED


def test_it_names_an_unusable_report(cluster: Cluster) -> None:
    broken = {
        "apiVersion": REPORTS.api_version,
        "kind": "NeighborReport",
        "metadata": {"name": "odd.sweep.0"},
        "spec": {"sweep": {"subnet": "fe80", "sweepId": "a", "part": 0, "of": 1, "facts": "!"}},
    }
    cluster.api.expect("POST", REPORTS.path(), broken)
    try:
        ran = cluster.run("tree")
        assert ran.code == ExitCode.SKIPPED
        assert "odd" in ran.err
    finally:
        cluster.api.expect("DELETE", REPORTS.path("odd.sweep.0"))


def test_it_reports_that_the_cluster_does_not_answer(cluster: Cluster) -> None:
    with FaultProxy(cluster.api) as proxy:
        proxy.fail("GET", *[Fault(503)] * 100)
        file = cluster.api.kubeconfig(WRITER, url=proxy.url)
        ran = run("tree", "--kube", "--kubeconfig", file)
    assert (ran.code, ran.out) == (ExitCode.NOTHING, "")
    assert "503" in ran.err
    assert ran.err.count("\n") == 1


def test_it_never_treats_a_failure_as_an_empty_list(cluster: Cluster) -> None:
    with FaultProxy(cluster.api) as proxy, connecting(cluster.api, proxy.url) as transport:
        store = command_store(transport)
        proxy.fail("hypernodes", Fault(404))
        with pytest.raises(KubeNotFound, match="has no HyperNode, its CRD is not installed"):
            store.read_hypernodes()
        proxy.fail("neighborreports", Fault(500), Fault(is_lost=True))
        assert len(store.read_reports().values) > len(cluster.scene.hosts)
        proxy.fail("neighborreports", *[Fault(500)] * 10)
        with pytest.raises(KubeUnavailable):
            store.read_reports()


def test_it_follows_what_it_lists(cluster: Cluster) -> None:
    told: list[float] = []
    with connecting(cluster.api) as transport:
        pace = WaitContext(HastyStop(), monotonic, JITTER)
        unstarted = ClusterStore(transport, pace=pace, on_change=lambda: None, served=SERVED)
        with pytest.raises(KubeUnavailable, match="neighborreports are not listed yet"):
            FabricStore(unstarted).read_reports()
        with followed_store(transport, lambda: told.append(monotonic())) as followed:
            wait_until(lambda: not followed.objects.is_synced, deadline_s=30, what="all is listed")
            store = command_store(transport)
            assert followed.read_reports().values == store.read_reports().values
            assert followed.read_inventory() == store.read_inventory()
            assert followed.read_hypernodes().values == store.read_hypernodes().values
            leaf = HyperNode("followed", 1, "leaf", (Member(MemberType.NODE, "n1"),))
            assert followed.put(leaf)
            assert not followed.put(leaf)
            wait_until(
                lambda: followed.read_hypernodes().values != (leaf,),
                deadline_s=30,
                what="the HyperNode is seen",
            )
            assert told
            cluster.api.suspend()
            assert followed.read_hypernodes().values == (leaf,)
            cluster.api.resume()
            assert followed.remove("followed")
            wait_until(lambda: followed.read_hypernodes().values, deadline_s=30, what="it is gone")
            assert followed.objects.problems == ()
