"""Forged sweeps on a real API server, written with the token of one node's agent."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec import structs

from generator.kube.resources import HYPERNODES, REPORTS
from tests.daemonset.callers import Caller
from tests.generator.ingest.swept_fabrics import (
    DEVICES,
    FABRIC,
    HOSTS,
    SUBNET,
    exchange,
    host_reports,
    sweep_by,
)
from tests.generator.scenes import Ran, Scene, run
from tests.kube.agent_nodes import ClusterNode, account_in
from tests.kube.conftest import WRITER
from tests.kube.servers import Cluster, Generator, serving
from tests.lab.api_server import ApiServer
from topology.model.facts import Device
from topology.reports.neighbor_report import NeighborReport, render_report

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube serving")]

FIRST, SECOND, LIAR = HOSTS[0], HOSTS[1], HOSTS[9]
FORGED = exchange(HOSTS[3], HOSTS[12])


class SweptCluster(Cluster):
    """A cluster with one InfiniBand subnet, and two nodes whose agents offer to sweep it."""

    def __init__(self, api: ApiServer, root: Path) -> None:
        super().__init__(api, Scene(root, FABRIC))

    def report(self, scene: Scene) -> None:
        scene.root.mkdir(parents=True, exist_ok=True)
        for report in host_reports([FIRST, SECOND]):
            self.write_report(report)
            self.write_status(report)

    def write_status(self, report: NeighborReport) -> None:
        rendered = render_report(report)
        head = {key: rendered[key] for key in ("apiVersion", "kind", "metadata")}
        path = f"{REPORTS.path(report.metadata.name)}/status?fieldManager=agent&force=true"
        self.api.apply(path, head | {"status": rendered["status"]})

    def sweep(self, node: str, devices: Sequence[Device] = DEVICES) -> None:
        for part in sweep_by(node, devices):
            now = structs.replace(part.status, observed_at=_now())
            self.write_report(part)
            self.write_status(structs.replace(part, status=now))

    def swept(self) -> list[str]:
        """Return the nodes whose sweeps count."""
        sweeps = self.fabric().get("status", {}).get("sweeps", [])
        return [one["node"] for one in sweeps if one["subnet"] == SUBNET]

    def elected(self) -> list[str]:
        return [one["node"] for one in self.fabric().get("status", {}).get("sweepers", [])]

    def witnesses(self) -> list[str]:
        """Return the nodes whose sweeps were compared last."""
        return [one["node"] for one in self.fabric().get("status", {}).get("witnesses", [])]

    def findings(self) -> set[str]:
        return {one["kind"] for one in self.fabric().get("status", {}).get("findings", [])}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.fixture
def cluster(other_api: ApiServer, tmp_path: Path) -> Iterator[SweptCluster]:
    made = SweptCluster(other_api, tmp_path / "scene")
    yield made
    made.clear()


@pytest.fixture
def generator(cluster: SweptCluster, tmp_path: Path) -> Iterator[Generator]:
    """One replica, once its HyperNodes follow from two equal sweeps."""
    with serving(cluster, tmp_path) as running:
        cluster.await_that(lambda: cluster.elected() == [FIRST, SECOND], "an election")
        cluster.sweep(FIRST)
        cluster.sweep(SECOND)
        cluster.await_tree()
        cluster.await_that(lambda: cluster.swept() == [FIRST], "the sweep that counts")
        yield running


def write_as(cluster: Cluster, name: str, parts: Sequence[NeighborReport], when: str) -> None:
    """Write parts with the token of the agent on a node."""
    node = ClusterNode(cluster.api, account_in(cluster.api), name)
    agent = Caller(cluster.api, node.token())
    for part in parts:
        path = REPORTS.path(part.metadata.name)
        rendered = render_report(part)
        assert agent.apply(path, rendered).status in (200, 201)
        head = {key: rendered[key] for key in ("apiVersion", "kind")}
        status = {"status": rendered.get("status", {}) | {"observedAt": when}}
        assert agent.apply(f"{path}/status", head | status).status == 200


def read_findings(cluster: Cluster) -> Ran:
    kubeconfig = cluster.api.kubeconfig(WRITER)
    return run("findings", "--kube", "--kubeconfig", kubeconfig, "-o", "json")


@pytest.mark.usefixtures("generator")
def test_a_forged_sweep_moves_nobody_and_names_its_node(cluster: SweptCluster) -> None:
    before = cluster.versions()
    write_as(cluster, LIAR, sweep_by(LIAR, FORGED), "2099-01-01T00:00:00Z")
    cluster.await_that(lambda: "sweep-ignored" in cluster.findings(), "a finding")
    assert (cluster.versions(), cluster.swept()) == (before, [FIRST])
    rows = json.loads(read_findings(cluster).out)
    assert [row["subject"]["device"] for row in rows if row["kind"] == "sweep-ignored"] == [LIAR]


@pytest.mark.usefixtures("generator")
def test_a_sweeper_that_lies_is_contradicted_by_the_other_one(cluster: SweptCluster) -> None:
    before = cluster.versions()
    cluster.sweep(FIRST, FORGED)
    cluster.await_that(
        lambda: cluster.conditions().get("ChangeBlocked") == "SweepsDisagree", "a held plan"
    )
    assert cluster.versions() == before
    assert "sweeps-disagree" in cluster.findings()
    cluster.sweep(FIRST)
    cluster.await_tree()
    assert cluster.versions() == before


@pytest.mark.usefixtures("generator")
def test_a_damaged_sweep_is_an_unusable_report_that_names_its_node(cluster: SweptCluster) -> None:
    before = cluster.versions()
    (part,) = sweep_by(FIRST)
    assert part.spec.sweep is not None
    damaged = structs.replace(part.spec.sweep, facts="AAAA")
    spec = structs.replace(part.spec, sweep=damaged)
    write_as(cluster, FIRST, [structs.replace(part, spec=spec)], _now())
    cluster.await_that(lambda: "unusable-report" in cluster.findings(), "a finding")
    rows = json.loads(read_findings(cluster).out)
    assert [row["subject"]["device"] for row in rows if row["kind"] == "unusable-report"] == [FIRST]
    assert cluster.versions() == before
    leaf = next(one for one in cluster.hypernodes().values() if one.tier == 1)
    cluster.api.expect("DELETE", HYPERNODES.path(leaf.name))
    cluster.await_that(lambda: cluster.hypernodes().get(leaf.name) == leaf, "an edit is undone")
