"""Faults while everything runs: agents on hosts, switches by SNMP, and a generator above.

What is waited for is what a person would look at: HyperNodes in the store and lines in the log.
Each host has a NIC on both leaves of its pair, so one fault never takes a host off the fabric.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.agents import Agents
from tests.lab.servers import Generator, serve_command
from tests.lab.snmp import COMMUNITY, MANAGEMENT, NETWORK, SnmpFabric
from topology.model.facts import PortName
from topology.synthetic import Wiring

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("lldpd")]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all of them."""
    return tmp_path_factory.mktemp("serving") / "store"


@pytest.fixture(scope="module")
def host_agents(snmp_fabric: SnmpFabric, lldp_wiring: Wiring, store: Path) -> Iterator[Agents]:
    """An agent on each host."""
    hosts = [host.name for host in lldp_wiring.hosts]
    store.mkdir(parents=True)
    agents = Agents(snmp_fabric, store.parent, devices=hosts, publish=store / "neighborreports")
    yield agents
    agents.end()


@pytest.fixture(scope="module")
def running(
    snmp_fabric: SnmpFabric, host_agents: Agents, lldp_wiring: Wiring, store: Path
) -> Iterator[Generator]:
    """The generator; its configuration names one leaf, and it discovers the other switches."""
    folder = store.parent
    secret = folder / "community"
    secret.write_text(COMMUNITY)
    secret.chmod(0o600)
    first = snmp_fabric.addresses[min(snmp_fabric.switches)]
    group = {"addresses": [first], "communityFile": "community"}
    config = folder / "switches.yaml"
    config.write_text(json.dumps({"switches": [group], "discover": {"networks": [NETWORK]}}))
    host_agents.settle()
    options = ("--switches", str(config), "--switch-period", "2s", "--switch-deadline", "10s")
    log = folder / "serve.log"
    snmp_fabric.sandbox.start(*serve_command(store, *options), namespace=MANAGEMENT, log=log)
    yield Generator(store, log, lldp_wiring)
    snmp_fabric.sandbox.kill("python*", namespace=MANAGEMENT, signal="KILL")
    assert "Traceback" not in log.read_text()


@pytest.fixture(autouse=True)
def _whole_before_and_after(running: Generator) -> Iterator[None]:
    running.settle()
    yield
    running.settle()


def leaf_end(wiring: Wiring, host: int, nic: int) -> PortName:
    """Return the leaf's port that a NIC of a host is cabled to."""
    low = PortName(wiring.hosts[host].name, wiring.hosts[host].nics[nic].port)
    return next(cable.high for cable in wiring.cables if cable.low == low)


def test_it_walks_every_switch_that_the_first_one_leads_to(
    running: Generator, snmp_fabric: SnmpFabric, lldp_wiring: Wiring
) -> None:
    named = [json.loads(file.read_text())["spec"] for file in running.reports.glob("switch-*")]
    assert {spec["device"]["name"] for spec in named} == snmp_fabric.switches
    hosts = {host.name for host in lldp_wiring.hosts}
    assert {file.stem for file in running.reports.iterdir()} >= hosts


@pytest.mark.long
def test_it_keeps_the_hypernodes_when_a_cable_is_cut(
    running: Generator, snmp_fabric: SnmpFabric, lldp_wiring: Wiring
) -> None:
    before = running.files()
    port = leaf_end(lldp_wiring, host=0, nic=0)
    host = snmp_fabric.far_end(port).device
    with snmp_fabric.cutting(port):
        running.await_findings(
            lambda said: ("missing-link", host) in said, what="a finding about the cut cable"
        )
        assert running.files() == before


def test_it_keeps_the_hypernodes_when_the_lldpd_of_a_host_restarts(
    running: Generator, snmp_fabric: SnmpFabric, lldp_wiring: Wiring
) -> None:
    before = running.files()
    with snmp_fabric.stopping(lldp_wiring.hosts[2].name):
        running.await_findings(
            lambda said: "one-sided-link" in {kind for kind, _ in said},
            what="a finding about the one-sided link",
        )
        assert running.files() == before


@pytest.mark.long
def test_it_keeps_the_hypernodes_when_the_lldpd_of_a_leaf_stops(
    running: Generator, snmp_fabric: SnmpFabric
) -> None:
    before = running.files()
    leaf = min(snmp_fabric.switches)
    with snmp_fabric.stopping(leaf):
        running.await_findings(bool, what="any finding")
        assert running.files() == before


@pytest.mark.long
def test_it_takes_out_the_hosts_whose_cables_are_swapped_and_puts_them_back(
    running: Generator, snmp_fabric: SnmpFabric, lldp_wiring: Wiring
) -> None:
    first, other = lldp_wiring.hosts[0].name, lldp_wiring.hosts[4].name
    left, right = leaf_end(lldp_wiring, host=0, nic=0), leaf_end(lldp_wiring, host=4, nic=0)
    with snmp_fabric.swapping(left, right):
        running.settle(but_for=(first, other))
        running.await_findings(
            lambda said: "swapped-cable" in {kind for kind, _ in said},
            what="a finding about the swap",
        )


@pytest.mark.long
def test_it_keeps_what_a_killed_agent_told(
    running: Generator, host_agents: Agents, lldp_wiring: Wiring
) -> None:
    before = running.files()
    host = lldp_wiring.hosts[5].name
    with host_agents.killing(host):
        running.await_findings(
            lambda said: said == {("stale-report", host)}, what="a finding about its age"
        )
        assert running.files() == before


@pytest.mark.long
def test_it_keeps_what_a_switch_told_whose_snmpd_was_killed(
    running: Generator, snmp_fabric: SnmpFabric
) -> None:
    before = running.files()
    switch = max(snmp_fabric.switches)
    (report,) = (
        file.stem
        for file in running.reports.glob("switch-*")
        if json.loads(file.read_text())["spec"]["device"]["name"] == switch
    )
    with snmp_fabric.muting(switch):
        running.await_findings(
            lambda said: said == {("stale-report", report)}, what="a finding about the failure"
        )
        assert running.files() == before
