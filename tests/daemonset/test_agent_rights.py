"""What an agent's token can do on a real API server: its own reports and no others."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import pytest

from generator.kube.resources import FABRICS, HYPERNODES, NODES, REPORTS
from tests.daemonset.callers import MERGE, Caller, make_node, named, on_no_node, on_node
from tests.kube.examples import made
from tests.lab.api_server import ApiServer
from tests.lab.wait import wait_until

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("chart")]
AGENT: Final = "toponaut-agent"
Object = dict[str, Any]


class Placed(NamedTuple):
    """An agent, the node it runs on, and another node."""

    agent: Caller
    node: Object
    other: Object

    @property
    def name(self) -> str:
        return str(self.node["metadata"]["name"])


def report(owner: Mapping[str, Any] | None = None, **owners: str) -> Object:
    """Return a report to apply, owned by a node if given, with other fields of its owner."""
    metadata: Object = {}
    if owner is not None:
        reference = {"apiVersion": "v1", "kind": "Node"}
        own = {key: owner["metadata"][key] for key in ("name", "uid")}
        metadata["ownerReferences"] = [reference | own | owners]
    head = {"apiVersion": REPORTS.api_version, "kind": REPORTS.kind}
    return head | {"metadata": metadata, "spec": made(REPORTS)["spec"]}


@pytest.fixture
def placed(cluster: ApiServer) -> Placed:
    """An agent after its admission policy took effect."""
    node, other = make_node(cluster), make_node(cluster)
    agent = on_node(cluster, AGENT, node["metadata"]["name"], pod="toponaut-sweeper")
    probe = REPORTS.path(other["metadata"]["name"])
    wait_until(
        lambda: agent.apply(probe, report(), query="&dryRun=All").status != 403,
        deadline_s=30,
        what="the policy is in force",
    )
    return Placed(agent, node, other)


def test_it_writes_the_reports_of_its_node(placed: Placed) -> None:
    for name in (placed.name, f"{placed.name}.sweep.0", f"{placed.name}.sweep.12"):
        path = REPORTS.path(name)
        assert placed.agent.apply(path, report(placed.node)).status == 201
        assert placed.agent.apply(path, report(placed.node)).status == 200
        assert placed.agent.ask("GET", path).status == 200
        head = {"apiVersion": REPORTS.api_version, "kind": REPORTS.kind}
        status = head | {"status": made(REPORTS)["status"]}
        assert placed.agent.apply(f"{path}/status", status).status == 200


@pytest.mark.parametrize(
    "name",
    ["{other}", "{other}.sweep.0", "{own}.sweep.0x", "{own}.sweep.1.2", "{own}-b"],
)
def test_it_writes_no_report_of_another(name: str, placed: Placed, cluster: ApiServer) -> None:
    named = name.format(own=placed.name, other=placed.other["metadata"]["name"])
    answer = placed.agent.apply(REPORTS.path(named), report())
    assert answer.status == 403, answer.message
    assert f"reports of its own node {placed.name} only" in answer.message
    assert cluster.request("GET", REPORTS.path(named)).status == 404


def test_it_changes_no_report_of_another(placed: Placed, cluster: ApiServer) -> None:
    path = REPORTS.path(placed.other["metadata"]["name"])
    cluster.apply(f"{path}?fieldManager=other", named(path, report()))
    before = cluster.expect("GET", path)["metadata"]["resourceVersion"]
    head = {"apiVersion": REPORTS.api_version, "kind": REPORTS.kind}
    for answer in (
        placed.agent.apply(path, report()),
        placed.agent.apply(f"{path}/status", head | {"status": made(REPORTS)["status"]}),
        placed.agent.ask("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, form=MERGE),
        placed.agent.ask("DELETE", path),
    ):
        assert answer.status == 403, answer.message
    assert cluster.expect("GET", path)["metadata"]["resourceVersion"] == before


def test_it_is_owned_by_its_node_or_by_nobody(placed: Placed) -> None:
    path = REPORTS.path(placed.name)
    for wrong in (
        report(placed.other),
        report(placed.node, uid=placed.other["metadata"]["uid"]),
        report(placed.node, kind="Namespace", name="default"),
    ):
        answer = placed.agent.apply(path, wrong)
        assert answer.status == 403
        assert "must be its node" in answer.message
    assert placed.agent.apply(path, report()).status == 201


def test_it_writes_nothing_with_a_token_that_names_no_node(
    placed: Placed, cluster: ApiServer
) -> None:
    unbound = on_no_node(cluster, AGENT)
    answer = unbound.apply(REPORTS.path(placed.name), report())
    assert answer.status == 403
    assert "must be bound to a pod" in answer.message


def test_it_reads_the_fabric_and_nothing_else(placed: Placed, cluster: ApiServer) -> None:
    head = {"apiVersion": FABRICS.api_version, "kind": FABRICS.kind}
    fabric = FABRICS.path("default")
    cluster.apply(f"{fabric}?fieldManager=other", named(fabric, head | {"spec": {}}))
    assert placed.agent.ask("GET", fabric).status == 200
    for path in (
        FABRICS.path("another"),
        FABRICS.path(),
        REPORTS.path(),
        HYPERNODES.path(),
        HYPERNODES.path("leaf-1"),
        NODES.path(),
        NODES.path(placed.name),
        "/api/v1/pods",
        "/api/v1/namespaces/toponaut-system/secrets",
        "/apis/toponaut.io/v1alpha1/placementreservations",
    ):
        assert placed.agent.ask("GET", path).status == 403, path


def test_it_writes_no_label_no_hypernode_and_no_fabric(placed: Placed) -> None:
    labels = {"metadata": {"labels": {"toponaut.io/a": "b"}}}
    asked = [
        placed.agent.ask("PATCH", NODES.path(placed.name), labels, form=MERGE),
        placed.agent.ask("PATCH", f"{NODES.path(placed.name)}/status", labels, form=MERGE),
        placed.agent.ask("PATCH", FABRICS.path("default"), labels, form=MERGE),
        placed.agent.ask("PATCH", f"{FABRICS.path('default')}/status", labels, form=MERGE),
        placed.agent.ask("DELETE", REPORTS.path(placed.name)),
        placed.agent.ask("DELETE", REPORTS.path()),
        placed.agent.apply(
            HYPERNODES.path("leaf-1"),
            {"apiVersion": HYPERNODES.api_version, "kind": HYPERNODES.kind, "spec": {"tier": 1}},
        ),
    ]
    assert [answer.status for answer in asked] == [403] * len(asked)
