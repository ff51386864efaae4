"""An agent publishes to the API server: what it owns, what it writes, and what it leaves out."""

from pathlib import Path

import pytest

from agent.telemetry.health import Liveness
from tests.agent.nodes import card, plant
from tests.kube.agent_nodes import (
    PERIOD_S,
    RULES,
    ClusterAgent,
    ClusterNode,
    account_in,
    events,
)
from tests.lab.api_server import ApiServer
from tests.lab.wait import wait_until
from topology.model.errors import CommandTimeout

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube")]

LATE = CommandTimeout("lldpcli: late")
HOUR_S = 3600.0


@pytest.fixture
def node(api: ApiServer) -> ClusterNode:
    namespace = account_in(api)
    return ClusterNode(api, namespace, f"n-{namespace}")


@pytest.fixture
def agent(node: ClusterNode, tmp_path: Path) -> ClusterAgent:
    return ClusterAgent(node, tmp_path)


def test_it_publishes_a_report_that_its_node_owns(agent: ClusterAgent) -> None:
    agent.run()
    name, uid = agent.node.name, agent.node.uid
    metadata = agent.node.report()["metadata"]
    assert metadata["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
    ]
    assert {one["manager"] for one in metadata["managedFields"]} == {"toponaut-agent"}
    assert (agent.heard, agent.outcomes["lldpd"]) == (["leaf1"], "ok")
    assert agent.writes() == [("", name), ("/status", name)]


def test_it_sets_no_owner_without_a_bound_token(
    agent: ClusterAgent, node: ClusterNode, tmp_path: Path
) -> None:
    other = ClusterAgent(
        ClusterNode(node.api, node.namespace, f"other-{node.name}"), tmp_path / "other"
    )
    agent.token_file.write_text(other.node.token())
    agent.run()
    assert "ownerReferences" not in agent.node.report()["metadata"]
    agent.token_file.write_text(agent.node.token())
    agent.run()
    (owner,) = agent.node.report()["metadata"]["ownerReferences"]
    assert owner["uid"] == agent.node.uid


def test_it_writes_nothing_while_nothing_changes(agent: ClusterAgent) -> None:
    agent.run(60)
    agent.start()
    agent.run(60)
    assert len(agent.writes()) == 2


def test_it_writes_only_the_status_when_an_outcome_changes(agent: ClusterAgent) -> None:
    agent.run()
    before = agent.node.report()["metadata"]["generation"]
    agent.answers["neighbors"] = LATE
    agent.run(5)
    assert agent.node.report()["metadata"]["generation"] == before
    assert (agent.heard, agent.outcomes["lldpd"]) == (["leaf1"], "failed")
    assert [what for what, _ in agent.writes()] == ["", "/status", "/status"]


def test_it_renews_the_status_six_hours_later_and_not_before(agent: ClusterAgent) -> None:
    agent.run()
    first = agent.report.status.observed_at
    agent.run(12, period_s=HOUR_S / 2 - 200)
    assert len(agent.writes()) == 2
    agent.run(3, period_s=HOUR_S / 2)
    assert [what for what, _ in agent.writes()] == ["", "/status", "/status"]
    assert agent.report.status.observed_at != first


def test_it_does_not_renew_a_status_because_it_was_restarted(agent: ClusterAgent) -> None:
    agent.run()
    for _ in range(5):
        agent.start()
        agent.run()
    assert len(agent.writes()) == 2


def test_it_keeps_facts_over_a_restart_while_their_collector_fails(agent: ClusterAgent) -> None:
    agent.run()
    agent.answers["neighbors"] = LATE
    agent.start()
    agent.run()
    assert (agent.heard, agent.outcomes["lldpd"]) == (["leaf1"], "failed")
    agent.hear(("eth0", "leaf2", "swp2"))
    agent.run()
    assert agent.heard == ["leaf2"]


def test_it_recreates_a_deleted_report(
    agent: ClusterAgent, caplog: pytest.LogCaptureFixture
) -> None:
    agent.run()
    agent.node.api.expect("DELETE", f"/apis/toponaut.io/v1alpha1/neighborreports/{agent.node.name}")
    agent.run(20)
    assert agent.heard == ["leaf1"]
    assert events(caplog.records) == ["own report deleted"]


def test_it_restores_an_edited_report(
    agent: ClusterAgent, caplog: pytest.LogCaptureFixture
) -> None:
    agent.run()
    before = agent.report.spec
    edited = agent.node.report()
    edited["spec"]["device"]["name"] = "mallory"
    agent.node.api.expect(
        "PUT", f"/apis/toponaut.io/v1alpha1/neighborreports/{agent.node.name}", edited
    )
    agent.run(20)
    assert agent.report.spec == before
    assert set(events(caplog.records)) == {"own report changed by another client"}


def test_it_leaves_out_the_neighbors_of_a_crowded_port(
    agent: ClusterAgent, caplog: pytest.LogCaptureFixture
) -> None:
    near = ("eth0", "leaf1", "swp1")
    crowd = [("eth1", f"{'ghost' * 100}{at}", f"{'port' * 120}{at}") for at in range(1000)]
    plant(agent.sysfs, card("eth1", "0000:04:00.0", "b8:ce:f6:00:00:02"))
    agent.hear(near, *crowd)
    agent.run(5)
    assert agent.heard == ["leaf1"]
    assert [port.name for port in agent.report.spec.ports] == ["eth0", "eth1"]
    (told,) = (one for one in agent.report.status.collectors if one.name == "report")
    assert (told.outcome, "eth1" in told.message) == ("failed", True)
    assert events(caplog.records) == ["report cut"]
    assert len(agent.writes()) == 2
    agent.hear(near)
    agent.run(5)
    assert "report" not in agent.outcomes


def test_it_is_not_ready_while_the_server_refuses_its_reports(agent: ClusterAgent) -> None:
    vitals = Liveness(period_s=PERIOD_S, clock=agent.clock)
    agent.start(vitals)
    agent.run()
    assert vitals.readiness_problem() == ""
    role = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{agent.node.namespace}"
    allowed = agent.node.api.expect("GET", role)
    agent.node.api.expect("PUT", role, allowed | {"rules": []})
    agent.hear(("eth0", "leaf2", "swp2"))
    wait_until(
        lambda: "forbidden" not in _after_a_round(agent, vitals), deadline_s=60, what="a refusal"
    )
    agent.node.api.expect("PUT", role, agent.node.api.expect("GET", role) | {"rules": RULES})
    wait_until(lambda: _after_a_round(agent, vitals), deadline_s=60, what="readiness")
    assert agent.heard == ["leaf2"]


def _after_a_round(agent: ClusterAgent, vitals: Liveness) -> str:
    agent.run()
    return vitals.readiness_problem()
