"""Agents fail or report outdated facts: no HyperNode is deleted that may still be right."""

import json
from typing import Any

import pytest

from generator.kube.resources import NODES, REPORTS
from generator.kube.transport import KubeRequest
from tests.effort import first_of
from tests.kube.bad_days.days import Day, create_all
from tests.kube.conftest import connecting

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube days")]

NUM_REPORTS = 5000
LABEL = "bad-day"


@pytest.mark.long
def test_it_deletes_nothing_when_all_agents_vanish(day: Day) -> None:
    before = day.cluster.versions()
    reports = REPORTS.path()
    day.cluster.api.expect("DELETE", reports)
    day.await_that(lambda: day.cluster.conditions().get("Ready") == "-NoData", "it is told")
    assert day.cluster.versions() == before
    day.restore()
    day.await_tree()
    assert day.cluster.versions() == before, "what came back is what stood"


@pytest.mark.long
def test_it_holds_the_loss_of_half_of_the_hosts(day: Day) -> None:
    before = day.cluster.versions()
    day.cluster.lose(day.scene.hosts[::2])
    day.await_that(day.cluster.held, "the plan is held")
    assert day.cluster.conditions()["ChangeBlocked"] == "TooManyNodes"
    assert day.cluster.versions() == before
    day.restore()
    day.await_tree()
    assert day.cluster.versions() == before


@pytest.mark.long
def test_it_follows_new_names_of_a_tenth_of_the_nodes(day: Day) -> None:
    hosts = day.scene.hosts
    names = {name: f"renamed-{name}" for name in hosts[: len(hosts) // 10]}
    homes = {name: day.home(name) for name in names}

    def rename(report: dict[str, Any]) -> None:
        text = json.dumps(report["spec"])
        for old, new in names.items():
            text = text.replace(f'"{old}"', f'"{new}"')
        report["spec"] = json.loads(text)

    day.rewrite(rename)
    for old, new in names.items():
        report = day.cluster.api.expect("GET", REPORTS.path(old))
        day.cluster.add_node(new)
        day.cluster.api.expect("DELETE", NODES.path(old))
        day.cluster.api.expect("DELETE", REPORTS.path(old))
        fresh = {"metadata": {"name": new}, "spec": report["spec"]}
        day.cluster.api.expect("POST", REPORTS.path(), {**report, **fresh})
    day.await_that(
        lambda: all(day.home(new) == homes[old] for old, new in names.items()), "the new names"
    )
    day.restore()


@pytest.mark.long
def test_it_drops_a_deleted_node(day: Day) -> None:
    gone = day.scene.hosts[-1]
    day.cluster.lose([gone])
    day.cluster.api.expect("DELETE", NODES.path(gone))
    day.cluster.await_tree(day.scene, but_for=[gone])
    day.restore()


@pytest.mark.parametrize("what", first_of(["another node's MACs", "a leaf's chassis id"]))
def test_it_limits_false_claims_to_the_claimant(day: Day, what: str) -> None:
    victim, claimant = day.scene.hosts[20], day.scene.hosts[40]
    leaf = next(
        one["metadata"]["name"]
        for one in day.cluster.items(REPORTS)
        if one["metadata"]["name"].startswith("switch-")
    )
    robbed = victim if what == "another node's MACs" else leaf
    stolen = [
        one
        for one in day.cluster.api.expect("GET", REPORTS.path(robbed))["spec"]["device"]["ids"]
        if one["type"] in ("mac", "chassis-id")
    ]
    assert stolen
    before = day.cluster.versions()

    def claim(report: dict[str, Any]) -> None:
        own = report["spec"]["device"]["ids"]
        report["spec"]["device"]["ids"] = [*own, *(one for one in stolen if one not in own)]

    day.rewrite(claim, [claimant])
    day.await_that(lambda: ("duplicate-id", claimant) in day.findings(), "the claim is told")
    assert ("duplicate-id", victim) not in day.findings()
    day.await_tree()
    assert day.cluster.versions() == before, "everybody keeps their place"
    day.restore()
    day.await_that(lambda: ("duplicate-id", claimant) not in day.findings(), "it is gone")


@pytest.mark.long
def test_it_handles_a_report_of_the_maximum_size(day: Day) -> None:
    neighbor = {"source": "lldp", "name": "x" * 500, "portName": "y" * 500}
    ports = [
        {"name": f"p{at}", "medium": "ethernet", "neighbors": [neighbor]} for at in range(1300)
    ]
    report = _report("large", ports)
    assert len(json.dumps(report)) > 1_400_000
    before = day.cluster.versions()
    day.cluster.api.expect("POST", REPORTS.path(), report)
    num = len(day.cluster.items(REPORTS))
    day.await_that(lambda: day.metric("reports", "fresh") >= num, "it is read")
    assert day.cluster.versions() == before
    day.cluster.api.expect("DELETE", REPORTS.path("large"))


@pytest.mark.long
def test_it_handles_5000_reports_at_once(day: Day) -> None:
    before = day.cluster.versions()
    ports = [{"name": "eth0", "medium": "ethernet", "state": "up"}]
    reports = (_report(f"crowd-{at:04}", ports) for at in range(NUM_REPORTS))
    with connecting(day.cluster.api) as other:
        create_all(other, REPORTS.path(), reports)
        day.await_that(lambda: day.metric("reports", "fresh") >= NUM_REPORTS, "all are read")
        day.await_tree()
        assert day.cluster.versions() == before
        crowd = KubeRequest("DELETE", REPORTS.path(), (("labelSelector", LABEL),))
        other.ask(crowd, timeout_s=120)
    day.await_that(lambda: day.metric("reports", "fresh") < NUM_REPORTS, "all are gone")


def _report(name: str, ports: list[dict[str, Any]]) -> dict[str, Any]:
    device = {"kind": "host", "name": name, "ids": [{"type": "node-name", "value": name}]}
    return {
        "apiVersion": REPORTS.api_version,
        "kind": REPORTS.kind,
        "metadata": {"name": name, "labels": {LABEL: "true"}},
        "spec": {"device": device, "ports": ports},
    }
