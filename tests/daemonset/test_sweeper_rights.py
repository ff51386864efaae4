"""Who may publish a sweep on a real API server: agents of the DaemonSet of sweepers alone."""

from typing import Any, Final

import pytest

from generator.kube.resources import REPORTS
from tests.daemonset.callers import Caller, make_node, named, on_node
from tests.generator.ingest.swept_fabrics import sweep_by
from tests.lab.api_server import ApiServer
from tests.lab.wait import wait_until
from topology.reports.neighbor_report import build_withdrawn_part, render_report

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("chart")]
AGENT: Final = "toponaut-agent"
SUBNET: Final = "fe80000000000000"
HEAD: Final = {"apiVersion": REPORTS.api_version, "kind": REPORTS.kind}


class Agents:
    """The agent of a node, and a sweeper's on the same node."""

    def __init__(self, api: ApiServer) -> None:
        self.node = str(make_node(api)["metadata"]["name"])
        self.plain = on_node(api, AGENT, self.node)
        self.sweeper = on_node(api, AGENT, self.node, pod="toponaut-sweeper")
        self.path = REPORTS.path(f"{self.node}.sweep.0")
        (part,) = sweep_by(self.node)
        self.part = {**HEAD, "spec": render_report(part)["spec"]}

    def withdraw(self, caller: Caller) -> int:
        empty = render_report(build_withdrawn_part(f"{self.node}.sweep.0", SUBNET))
        return caller.apply(self.path, {**HEAD, "spec": empty["spec"]}).status

    def offer(self, caller: Caller) -> tuple[int, str]:
        status: dict[str, Any] = {"status": {"sweeping": {"able": True}}}
        path = f"{REPORTS.path(self.node)}/status"
        answer = caller.apply(path, HEAD | status)
        return answer.status, answer.message


@pytest.fixture
def agents(cluster: ApiServer) -> Agents:
    """The agents, after the policy took effect."""
    made = Agents(cluster)
    wait_until(
        lambda: made.plain.apply(made.path, made.part, query="&dryRun=All").status != 403,
        deadline_s=30,
        what="the policy is in force",
    )
    return made


def test_a_sweeper_publishes_sweeps_and_offers_to(agents: Agents) -> None:
    assert agents.sweeper.apply(agents.path, agents.part).status == 201
    device = {"spec": {"device": {"kind": "host", "name": agents.node}}}
    assert agents.sweeper.apply(REPORTS.path(agents.node), HEAD | device).status == 201
    assert agents.offer(agents.sweeper)[0] == 200


def test_any_other_agent_does_neither(agents: Agents, cluster: ApiServer) -> None:
    answer = agents.plain.apply(agents.path, agents.part)
    assert answer.status == 403
    assert "may publish sweeps" in answer.message
    assert cluster.request("GET", agents.path).status == 404
    device = {"spec": {"device": {"kind": "host", "name": agents.node}}}
    assert agents.plain.apply(REPORTS.path(agents.node), HEAD | device).status == 201
    status, message = agents.offer(agents.plain)
    assert status == 403
    assert "may offer to sweep" in message


def test_an_agent_that_sweeps_no_more_empties_its_parts(agents: Agents, cluster: ApiServer) -> None:
    assert agents.sweeper.apply(agents.path, agents.part).status == 201
    changed = {
        **agents.part,
        "spec": {"sweep": {**agents.part["spec"]["sweep"], "subnet": "f" * 16}},
    }
    assert agents.plain.apply(agents.path, named(agents.path, changed)).status == 403
    assert agents.withdraw(agents.plain) == 200
    assert cluster.expect("GET", agents.path)["spec"]["sweep"]["facts"] == ""


def test_any_other_agent_makes_no_empty_part(agents: Agents, cluster: ApiServer) -> None:
    assert agents.withdraw(agents.plain) == 403
    assert cluster.request("GET", agents.path).status == 404
