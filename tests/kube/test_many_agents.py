"""Real agents on real daemons, a real API server, and the generator that follows them.

64 hosts and their switches in network namespaces; half an hour at rest is compressed by the
agents' clock. What is written is counted from the server's audit log.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

from generator.kube.resources import HYPERNODES, NODES, REPORTS
from generator.outputs.hypernode.forest import build_hypernode_tree
from tests.kube.agent_nodes import ClusterNode, account_in, user_of
from tests.kube.conftest import with_volcano
from tests.kube.many_agents import ManyAgents
from tests.kube.servers import PORT_OPTIONS, Cluster, Generator, Ports, serving
from tests.lab.api_server import ApiServer
from tests.lab.audit import Write
from tests.lab.lldp import LldpFabric
from tests.lab.sandbox import Sandbox
from tests.lab.tools import require_tools
from topology.model.facts import Medium, PortName
from topology.model.tree import host_partitions
from topology.synthetic import (
    Cable,
    FabricKind,
    SyntheticSpec,
    Wiring,
    build_undamaged,
    build_wiring,
    derive_truth,
)

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube")]

NUM_HOSTS = 64
REST_S = 30 * 60.0
REST_ROUNDS = 6
SPARE = "spare"
OFTEN = ("--period", "1s")
"""Short, so that the generator has rounds at rest too."""


class LabCluster(Cluster):
    """A server that knows the lab's hosts as its nodes."""

    def __init__(self, api: ApiServer, wiring: Wiring) -> None:
        self.api = with_volcano(api)
        self.namespace = account_in(api)
        self.truth = host_partitions(derive_truth(build_undamaged(wiring)))
        self.clear()
        for host in wiring.hosts:
            self.add_node(host.name)

    def reported(self) -> list[Write]:
        """Return the writes of the agents, in order."""
        return self.api.writes_by(user_of(self.namespace))

    def partitions(self) -> list[frozenset[frozenset[str]]]:
        ours = [one for one in self.hypernodes().values() if one.is_ours]
        return host_partitions(build_hypernode_tree(ours).tree)

    def await_hosts(self, wanted: list[frozenset[frozenset[str]]]) -> None:
        """Wait until the HyperNodes hold just these hosts, tier by tier."""
        self.await_that(
            lambda: (
                self.partitions() == wanted
                and self.conditions().get("Ready") == "HyperNodesWritten"
                and "silent-node" not in str(self.fabric()["status"])
            ),
            "HyperNodes as cabled",
        )


class Lab(NamedTuple):
    """All running programs."""

    wiring: Wiring
    fabric: LldpFabric
    agents: ManyAgents
    cluster: LabCluster
    generator: Generator

    def host_port(self, host: int) -> PortName:
        """Return the one port of a host."""
        return PortName(self.wiring.hosts[host].name, self.wiring.hosts[host].nics[0].port)

    def writes_of_hypernodes(self, since: int) -> list[Write]:
        return [one for one in self.cluster.writes(since) if one.resource == HYPERNODES.plural]


@pytest.fixture(scope="module")
def wiring() -> Wiring:
    """64 hosts with a NIC each, 8 leaves, 4 spines."""
    spec = SyntheticSpec(FabricKind.FAT_TREE, num_hosts=NUM_HOSTS, radix=16, medium=Medium.ETHERNET)
    return build_wiring(spec)


@pytest.fixture
def lab(spare_api: ApiServer, wiring: Wiring, tmp_path: Path) -> Iterator[Lab]:
    """All programs, once the HyperNodes match the cabling."""
    require_tools("unshare", "nsenter", "ip", "lldpd", "lldpcli", is_root_needed=True)
    spare_api.revive()
    top = max(wiring.switches, key=lambda one: one.rank).name
    switches = frozenset({SPARE, *(switch.name for switch in wiring.switches)})
    cables = [*wiring.cables, Cable(PortName(SPARE, "swp99"), PortName(top, "swp99"))]
    cluster = LabCluster(spare_api, wiring)
    # Below /tmp directly: a socket's path holds about a hundred characters.
    with TemporaryDirectory(prefix="lldp-") as folder, Sandbox() as sandbox:
        fabric = LldpFabric(sandbox, cables, switches=switches, folder=Path(folder))
        tokens = {
            name: ClusterNode(spare_api, cluster.namespace, name).token() for name in fabric.devices
        }
        for switch in switches:  # a report under the name of a node is never about a switch
            spare_api.expect("DELETE", NODES.path(switch))
        running = ManyAgents(fabric, tmp_path, tokens, url=spare_api.url, ca=spare_api.ca)
        with running as agents, serving(cluster, tmp_path, *OFTEN, *PORT_OPTIONS) as generator:
            agents.round()
            _await_reports(cluster, Ports(generator), len(fabric.devices))
            cluster.await_hosts(cluster.truth)
            yield Lab(wiring, fabric, agents, cluster, generator)
    cluster.clear()


def _await_reports(cluster: LabCluster, ports: Ports, num_devices: int) -> None:
    """Wait until a round has counted the reports of all devices.

    The HyperNodes can match the cabling one round earlier: the last switches add no node, but their
    reports change the findings in the status once more.
    """
    cluster.await_that(
        lambda: ports.metric("reports").get(("fresh",)) == num_devices, "the reports of all devices"
    )


@pytest.mark.long
def test_64_agents_lead_to_hypernodes_which_follow_a_cable_and_a_switch(lab: Lab) -> None:
    _are_owned(lab)
    _rest(lab)
    _move_a_cable(lab)
    _replace_a_leaf(lab)
    assert lab.agents.events() == []


def _are_owned(lab: Lab) -> None:
    reports = {one["metadata"]["name"]: one for one in lab.cluster.items(REPORTS)}
    hosts = {host.name for host in lab.wiring.hosts}
    assert set(reports) == hosts | lab.fabric.switches
    owners = {one["metadata"]["ownerReferences"][0]["name"]: name for name, one in reports.items()}
    assert owners == {name: name for name in reports}


def _rest(lab: Lab) -> None:
    """In half an hour without changes, the agents and the generator send no request."""
    reported, written = lab.cluster.reported(), lab.cluster.writes()
    for _ in range(REST_ROUNDS):
        lab.agents.round(after_s=REST_S / REST_ROUNDS)
    assert lab.cluster.reported() == reported
    assert lab.cluster.writes() == written


def _move_a_cable(lab: Lab) -> None:
    """A host's cable moves to the next leaf: two HyperNodes and one of each report are written."""
    cluster, near = lab.cluster, lab.host_port(0)
    reported, since = len(cluster.reported()), cluster.num_writes()
    leaf = lab.fabric.far_end(lab.host_port(NUM_HOSTS - 1)).device
    lab.fabric.replug({near: PortName(leaf, "swp98")})
    lab.agents.round()
    leaves, *above = cluster.truth
    host = frozenset({near.device})
    last = next(one for one in leaves if lab.host_port(NUM_HOSTS - 1).device in one)
    moved = frozenset(one | host if one == last else one - host for one in leaves)
    cluster.await_hosts([moved, *above])
    assert len(lab.writes_of_hypernodes(since)) <= 2
    assert len({one.name for one in cluster.reported()[reported:]}) == 3, "it and both leaves"


def _replace_a_leaf(lab: Lab) -> None:
    """A leaf's cables move to a new leaf: its domain stays the same."""
    cluster, depth = lab.cluster, len(lab.cluster.truth)
    before, since = cluster.partitions(), cluster.num_writes()
    leaf = lab.fabric.far_end(lab.host_port(NUM_HOSTS // 2)).device
    moves = {
        lab.fabric.far_end(port): PortName(SPARE, port.port) for port in lab.fabric.cabled(leaf)
    }
    lab.fabric.replug(moves)
    generation = cluster.fabric()["status"]["generation"]
    lab.agents.round()
    cluster.await_that(
        lambda: cluster.fabric()["status"]["generation"] > generation, "a new generation"
    )
    cluster.await_hosts(before)
    assert len(lab.writes_of_hypernodes(since)) <= depth + 2
