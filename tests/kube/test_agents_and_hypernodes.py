"""Agents report to a real API server, and the generator that follows it writes HyperNodes."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from runtime.clock import utc_now
from tests.kube.agent_nodes import ClusterAgent, ClusterNode, account_in, user_of
from tests.kube.conftest import with_volcano
from tests.kube.servers import OFTEN, PORT_OPTIONS, Cluster, Ports, serving
from tests.lab.api_server import ApiServer

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube serving")]

LEAVES = {"leaf1": frozenset("abcdefgh"), "leaf2": frozenset("ijklmnop")}
BUDGET = {"nodesPercent": 100, "domainsPercent": 100}


class AgentCluster(Cluster):
    """A server that has nodes, and no report yet."""

    def __init__(self, api: ApiServer, nodes: Iterable[str]) -> None:
        self.api = with_volcano(api)
        self.namespace = account_in(api)
        self.clear()
        self.want(changeBudget=BUDGET)
        for name in nodes:
            self.add_node(name)

    def await_leaves(self, leaves: Mapping[str, frozenset[str]]) -> None:
        def found() -> set[frozenset[str]]:
            return {frozenset(one.nodes) for one in self.hypernodes().values() if one.tier == 1}

        self.await_that(lambda: found() == set(leaves.values()), "HyperNodes as cabled")


@pytest.fixture
def cluster(other_api: ApiServer) -> Iterator[AgentCluster]:
    made = AgentCluster(other_api, sorted(frozenset[str]().union(*LEAVES.values())))
    yield made
    made.clear()


def start_agents(cluster: AgentCluster, root: Path) -> dict[str, ClusterAgent]:
    """Run one round of an agent on each node, each with a port to its leaf."""
    agents = {}
    for leaf, nodes in LEAVES.items():
        for name in sorted(nodes):
            (root / name).mkdir()
            node = ClusterNode(cluster.api, cluster.namespace, name)
            agent = ClusterAgent(node, root / name, mac=f"b8:ce:f6:00:00:{ord(name):02x}")
            agent.clock.moment = utc_now()
            agent.hear(("eth0", leaf, f"swp{ord(name)}"))
            agent.run()
            agents[name] = agent
    return agents


@pytest.mark.long
def test_agents_lead_to_hypernodes_which_rest_and_follow_a_cable(
    cluster: AgentCluster, tmp_path: Path
) -> None:
    agents = start_agents(cluster, tmp_path)
    with serving(cluster, tmp_path, *OFTEN, *PORT_OPTIONS) as generator:
        cluster.await_leaves(LEAVES)
        user = user_of(cluster.namespace)
        reported = cluster.api.writes_by(user)
        for agent in agents.values():
            agent.run(5)
        cluster.check_rest(Ports(generator))
        assert cluster.api.writes_by(user) == reported
        before = cluster.versions()
        agents["a"].hear(("eth0", "leaf2", "swp98"))
        for agent in agents.values():
            agent.run()
        moved = {"leaf1": LEAVES["leaf1"] - {"a"}, "leaf2": LEAVES["leaf2"] | {"a"}}
        cluster.await_leaves(moved)
        changed = {name for name, version in cluster.versions().items() if version != before[name]}
        assert len(changed) == 2
        assert {one.name for one in cluster.api.writes_by(user)[len(reported) :]} == {"a"}
