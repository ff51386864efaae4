"""An agent whose API server fails in every way: nothing is lost, and nothing is flooded."""

import logging
from pathlib import Path

import pytest

from runtime.retry import MAX_PERIODS
from tests.kube.agent_nodes import (
    ClusterAgent,
    ClusterNode,
    account_in,
    events,
)
from tests.kube.proxy import Fault, FaultProxy, status_body
from tests.lab.api_server import ApiServer
from tests.lab.wait import wait_until
from topology.model.errors import CommandTimeout

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube")]

LATE = CommandTimeout("lldpcli: late")
GONE = Fault(cut_after=0)
BUSY = Fault(status=503, body=status_body(503, "ServiceUnavailable", "starting"))
ANY = "."
WRITE = "PATCH (?!.*dryRun)"


@pytest.fixture
def node(api: ApiServer) -> ClusterNode:
    namespace = account_in(api)
    return ClusterNode(api, namespace, f"n-{namespace}")


@pytest.fixture
def agent(node: ClusterNode, proxy: FaultProxy, tmp_path: Path) -> ClusterAgent:
    return ClusterAgent(node, tmp_path, url=proxy.url)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(GONE, id="that is away"),
        pytest.param(BUSY, id="that is starting", marks=pytest.mark.long),
    ],
)
def test_it_writes_only_the_newest_state_after_an_outage(
    agent: ClusterAgent, proxy: FaultProxy, caplog: pytest.LogCaptureFixture, fault: Fault
) -> None:
    agent.run()
    proxy.fail(ANY, *[fault] * 1000)
    before = len(proxy.requests)
    for number in range(2, 32):
        agent.hear(("eth0", f"leaf{number}", "swp1"))
        agent.run()
    assert 30 / MAX_PERIODS <= len(proxy.requests) - before <= 30, "at most one attempt a round"
    proxy.relent()
    with caplog.at_level(logging.INFO):
        agent.run(2 * MAX_PERIODS)
    assert agent.heard == ["leaf31"]
    assert [what for what, _ in agent.writes()] == ["", "/status"] * 2
    assert events(caplog.records) == ["publishing failed"]
    assert "publishing works again" in events(caplog.records, least=logging.INFO)


def test_it_sends_no_request_without_changes(
    agent: ClusterAgent, proxy: FaultProxy, caplog: pytest.LogCaptureFixture
) -> None:
    agent.run()
    proxy.fail(ANY, *[GONE] * 1000)
    before = len(proxy.requests)
    agent.run(8)
    assert (len(proxy.requests), events(caplog.records)) == (before, [])


def test_it_keeps_its_published_facts_when_it_starts_during_an_outage(
    agent: ClusterAgent, proxy: FaultProxy
) -> None:
    agent.hear(("eth0", "leaf1", "swp1"))
    agent.run()
    agent.answers["neighbors"] = LATE
    proxy.fail(ANY, *[GONE] * 1000)
    agent.start()
    agent.run(10)
    proxy.relent()
    agent.run(2 * MAX_PERIODS)
    assert (agent.heard, agent.outcomes["lldpd"]) == (["leaf1"], "failed")


def test_it_prefers_facts_observed_during_an_outage_to_published_ones(
    agent: ClusterAgent, proxy: FaultProxy
) -> None:
    agent.run()
    proxy.fail(ANY, *[GONE] * 1000)
    agent.start()
    agent.hear(("eth0", "leaf2", "swp1"))
    agent.run()
    agent.answers["neighbors"] = LATE
    agent.run()
    proxy.relent()
    agent.run(2 * MAX_PERIODS)
    assert agent.heard == ["leaf2"]


def test_it_waits_as_long_as_a_busy_server_asks(agent: ClusterAgent, proxy: FaultProxy) -> None:
    agent.run()
    busy = Fault(status=429, headers={"Retry-After": "240"})
    proxy.fail("PATCH", busy)
    agent.hear(("eth0", "leaf2", "swp1"))
    agent.run()
    before = len(proxy.requests)
    agent.run(3)
    assert len(proxy.requests) == before
    agent.run(4)
    assert agent.heard == ["leaf2"]


def test_it_takes_back_a_field_of_another_client(
    agent: ClusterAgent, proxy: FaultProxy, caplog: pytest.LogCaptureFixture
) -> None:
    agent.run()
    taken = {
        "apiVersion": "toponaut.io/v1alpha1",
        "kind": "NeighborReport",
        "metadata": {"name": agent.node.name},
        "spec": {"ports": []},
    }
    path = f"/apis/toponaut.io/v1alpha1/neighborreports/{agent.node.name}"
    agent.node.api.apply(f"{path}?fieldManager=mallory&force=true", taken)
    agent.hear(("eth0", "leaf2", "swp1"))
    agent.run()
    assert agent.heard == ["leaf2"]
    assert events(caplog.records) == ["own report changed by another client"]
    assert proxy.count("force=true") == 1


@pytest.mark.parametrize(
    "half",
    [
        pytest.param("PATCH [^/]*/.*/status", id="the status"),
        pytest.param("PATCH [^?]*[?](?!dryRun)", id="the facts"),
    ],
)
def test_it_continues_after_a_lost_answer(
    agent: ClusterAgent, proxy: FaultProxy, half: str
) -> None:
    proxy.fail(half, Fault(is_lost=True))
    agent.run(2 * MAX_PERIODS)
    assert (agent.heard, agent.outcomes["lldpd"]) == (["leaf1"], "ok")
    before = proxy.count(WRITE)
    agent.run(5)
    assert proxy.count(WRITE) == before


def test_it_stops_waiting_for_a_missing_answer(
    agent: ClusterAgent, proxy: FaultProxy, caplog: pytest.LogCaptureFixture
) -> None:
    agent.start(deadline_s=0.5)
    proxy.fail(ANY, Fault(is_silent=True))
    agent.run()
    (told,) = caplog.records
    assert "no complete answer within 0.5 s" in vars(told)["error"]
    agent.start()
    agent.run()
    assert agent.heard == ["leaf1"]


def test_it_uses_a_replaced_token(agent: ClusterAgent, node: ClusterNode) -> None:
    agent.run()
    agent.token_file.write_text(node.token())
    agent.hear(("eth0", "leaf2", "swp1"))
    agent.run()
    assert agent.heard == ["leaf2"]


def test_it_waits_for_a_new_token_once_its_own_is_revoked(
    agent: ClusterAgent, node: ClusterNode, proxy: FaultProxy, caplog: pytest.LogCaptureFixture
) -> None:
    agent.run()
    node.remove_pod()

    def is_still_known() -> bool:
        agent.hear(("eth0", f"leaf{len(proxy.requests)}", "swp1"))
        agent.run()
        return not caplog.records

    wait_until(is_still_known, deadline_s=60, what="the server knows the pod is gone")
    assert " 401 " in vars(caplog.records[0])["error"]
    before = len(proxy.requests)
    agent.run(10)
    assert len(proxy.requests) - before <= 10
    node.pod_uid = node.start_pod()
    agent.token_file.write_text(node.token())
    agent.hear(("eth0", "leaf2", "swp1"))
    agent.run(MAX_PERIODS + 1)
    assert agent.heard == ["leaf2"]
    assert events(caplog.records) == ["publishing failed"]
