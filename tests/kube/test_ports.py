"""The ports of `toponaut serve --kube`: authorized callers, probes and metrics."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from generator.cli.exit_codes import ExitCode
from tests.generator.rpc.credentials import Pki
from tests.generator.scenes import PAIRS, Scene, run
from tests.kube.accounts import Accounts
from tests.kube.proxy import FaultProxy
from tests.kube.servers import PORT_OPTIONS, Cluster, Ports, serving
from tests.lab.api_server import ApiServer

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube serving")]

REQUEST = """\
apiVersion: toponaut.io/v1alpha1
kind: PlacementRequest
spec: {groups: [{name: w, count: 4, tolerations: [node.kubernetes.io/not-ready]}]}
"""


@pytest.fixture
def cluster(other_api: ApiServer, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(other_api, Scene.of(tmp_path / "scene", PAIRS))
    yield made
    other_api.revive()
    made.clear()


def test_it_answers_authorized_callers_and_serves_probes_and_metrics(
    cluster: Cluster, tmp_path: Path
) -> None:
    pki = Pki(tmp_path)
    files = ("--tls-cert", str(pki.files.cert), "--tls-key", str(pki.files.key))
    accounts = Accounts(cluster.api, cluster.namespace)
    for name in ("scheduler", "stranger"):
        accounts.create(name)
    accounts.let_place("scheduler")
    with serving(
        cluster, tmp_path, *PORT_OPTIONS, *files, "--token-audience", "toponaut"
    ) as generator:
        cluster.await_tree()
        ports = Ports(generator)
        request = pki.write("request.yaml", REQUEST.encode())
        asked = ["place", "-f", request, "--server", generator.address, "--ca-file", pki.ca]
        for name, code in (("scheduler", ExitCode.OK), ("stranger", ExitCode.NOTHING)):
            token = pki.write(name, accounts.token(name).encode())
            ran = run(*asked, "--token-file", token)
            assert ran.code == code, ran.err
        assert run(*asked).code == ExitCode.NOTHING
        queries = ports.metric("placement_queries_total")
        assert (queries[("placed",)], queries[("refused",)]) == (1, 2)
        _check_standing(cluster, ports)
        _check_events(cluster)


def _check_standing(cluster: Cluster, ports: Ports) -> None:
    assert {ports.health(path) for path in ("/livez", "/readyz", "/startupz")} == {(200, "ok")}
    cluster.await_that(lambda: ports.metric("hypernodes").get(("1",), 0) > 1, "HyperNodes are told")
    assert ports.metric("leader") == {(): 1}
    assert ports.metric("nodes")[("placed",)] == len(cluster.scene.hosts)
    assert ports.metric("condition")[("Ready",)] == 1
    assert ports.metric("api_requests_total")[("200",)] > 5
    assert ports.metric("watch_restarts_total")[("nodes",)] >= 2
    assert ports.metric("reconcile_actions_total")[("create", "done")] >= 3
    assert ports.metric("last_success_timestamp_seconds")[()] > 0
    assert ports.metric("domain_capacity")


def _check_events(cluster: Cluster) -> None:
    uid = cluster.fabric()["metadata"]["uid"]
    path = f"/api/v1/namespaces/default/events?fieldSelector={quote(f'involvedObject.uid={uid}')}"

    def reasons() -> set[str]:
        return {one["reason"] for one in cluster.api.expect("GET", path)["items"]}

    cluster.await_that(
        lambda: {"HyperNodesWritten", "PlanCarriedOut"} <= reasons(), "Events about the Fabric"
    )


def test_it_is_alive_but_not_ready_before_the_first_lists(cluster: Cluster, tmp_path: Path) -> None:
    """A follower becomes ready too: readiness does not need leadership."""
    with FaultProxy(cluster.api) as proxy:
        proxy.vanish()
        with serving(cluster, tmp_path, *PORT_OPTIONS, proxy=proxy) as generator:
            ports = Ports(generator)
            cluster.await_that(
                lambda: ports.health("/startupz") == (200, "ok"), "the first round ended"
            )
            assert ports.health("/livez") == (200, "ok")
            status, why = ports.health("/readyz")
            assert status == 503
            assert why
            proxy.relent()
            with serving(cluster, tmp_path) as leader:
                del leader
                cluster.await_that(lambda: ports.health("/readyz") == (200, "ok"), "it is ready")
            assert ports.metric("api_requests_total")
