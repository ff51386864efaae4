"""Cables to tree on Ethernet: real lldpd, real agents, real damage.

Each host has a NIC on both leaves of its pair, so one fault never takes a host off the fabric.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.lab.agents import AGENT, Agents, device_options, toponaut, write_objects
from tests.lab.lldp import LldpFabric
from topology.model.facts import PortName
from topology.model.tree import host_partitions, parse_tree
from topology.synthetic import Wiring, build_undamaged, derive_truth

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("lldpd")]


def tree_of(reports: Path) -> dict[str, Any]:
    document: dict[str, Any] = toponaut("tree", "--reports", str(reports))
    return document


def findings_of(reports: Path) -> set[tuple[str, str, str | None]]:
    rows = toponaut("findings", "--reports", str(reports))
    return {(row["kind"], row["subject"]["device"], row["subject"]["port"]) for row in rows}


def hypernodes(reports: Path, folder: Path) -> Path:
    """Write what a cluster would hold that followed every planned step."""
    empty = folder / "nothing"
    empty.mkdir()
    steps = toponaut("plan", "--reports", str(reports), "--observed", str(empty))
    return write_objects(folder / "hypernodes", [step["object"] for step in steps])


def leaf_end(wiring: Wiring, host: int, nic: int) -> PortName:
    """Return the leaf's port that a NIC of a host is cabled to."""
    low = PortName(wiring.hosts[host].name, wiring.hosts[host].nics[nic].port)
    return next(cable.high for cable in wiring.cables if cable.low == low)


def test_it_finds_the_tree_that_was_cabled(
    lldp_fabric: LldpFabric, lldp_wiring: Wiring, tmp_path: Path
) -> None:
    def collect(device: str) -> list[dict[str, Any]]:
        options = device_options(lldp_fabric, device)
        command = (*AGENT, "once", "-o", "json", *options)
        items: list[dict[str, Any]] = json.loads(
            lldp_fabric.sandbox.run(*command, namespace=device)
        )["items"]
        return items

    with ThreadPoolExecutor(max_workers=2) as pool:
        for items in pool.map(collect, lldp_fabric.devices):
            write_objects(tmp_path, items)
    found, truth = parse_tree(tree_of(tmp_path)), derive_truth(build_undamaged(lldp_wiring))
    assert host_partitions(found) == host_partitions(truth)
    assert [domain.switches for domain in found.domains] == [
        domain.switches for domain in truth.domains
    ]
    assert not found.unplaced
    assert not findings_of(tmp_path)


@pytest.mark.long
def test_it_keeps_tree_and_hypernodes_when_a_link_is_cut(
    agents: Agents, lldp_fabric: LldpFabric, lldp_wiring: Wiring, tmp_path: Path
) -> None:
    agents.settle()
    healthy, observed = tree_of(agents.folder), hypernodes(agents.folder, tmp_path)
    port = leaf_end(lldp_wiring, host=0, nic=0)
    with lldp_fabric.cutting(port):
        agents.settle()
        assert tree_of(agents.folder) == healthy
        far = lldp_fabric.far_end(port)
        assert findings_of(agents.folder) == {
            (kind, far.device, far.port) for kind in ("missing-link", "down-port")
        }
        assert toponaut("plan", "--reports", str(agents.folder), "--observed", str(observed)) == []


@pytest.mark.long
def test_it_keeps_tree_and_hypernodes_when_a_daemon_stops(
    agents: Agents, lldp_fabric: LldpFabric, lldp_wiring: Wiring, tmp_path: Path
) -> None:
    agents.settle()
    healthy, observed = tree_of(agents.folder), hypernodes(agents.folder, tmp_path)
    host = lldp_wiring.hosts[2].name
    with lldp_fabric.stopping(host):
        agents.settle()
        assert tree_of(agents.folder) == healthy
        found = findings_of(agents.folder)
        assert {kind for kind, _, _ in found} == {"one-sided-link"}
        assert len(found) == 2  # one per NIC
        assert toponaut("plan", "--reports", str(agents.folder), "--observed", str(observed)) == []


@pytest.mark.long
def test_it_keeps_tree_and_hypernodes_when_cables_are_swapped_inside_a_pair(
    agents: Agents, lldp_fabric: LldpFabric, lldp_wiring: Wiring, tmp_path: Path
) -> None:
    agents.settle()
    healthy, observed = tree_of(agents.folder), hypernodes(agents.folder, tmp_path)
    left, right = leaf_end(lldp_wiring, host=0, nic=0), leaf_end(lldp_wiring, host=1, nic=1)
    with lldp_fabric.swapping(left, right):
        agents.settle()
        assert tree_of(agents.folder) == healthy
        (finding,) = toponaut("findings", "--reports", str(agents.folder))
        assert finding["kind"] == "wrong-rail"
        assert swaps_of(finding) == {frozenset({left, right})}
        assert toponaut("plan", "--reports", str(agents.folder), "--observed", str(observed)) == []


@pytest.mark.long
def test_it_unplaces_just_the_hosts_whose_cables_are_swapped_across_pairs(
    agents: Agents, lldp_fabric: LldpFabric, lldp_wiring: Wiring
) -> None:
    agents.settle()
    healthy = tree_of(agents.folder)
    first, other = lldp_wiring.hosts[0].name, lldp_wiring.hosts[4].name
    left, right = leaf_end(lldp_wiring, host=0, nic=0), leaf_end(lldp_wiring, host=4, nic=0)
    with lldp_fabric.swapping(left, right):
        agents.settle()
        tree = tree_of(agents.folder)
        assert [row["node"] for row in tree["unplaced"]] == [first, other]
        assert all("undecided" in row["reason"] for row in tree["unplaced"])
        assert nodes_by_domain(tree) == {
            name: nodes - {first, other} for name, nodes in nodes_by_domain(healthy).items()
        }
        findings = toponaut("findings", "--reports", str(agents.folder))
        swapped = [row for row in findings if row["kind"] == "swapped-cable"]
        assert [swaps_of(row) for row in swapped] == [{frozenset({left, right})}]


def swaps_of(finding: dict[str, Any]) -> set[frozenset[PortName]]:
    """Return the pairs of ports whose plugs a finding wants exchanged."""
    return {
        frozenset(PortName(port["device"], port["port"]) for port in pair)
        for pair in finding["evidence"]["swap"]
    }


def nodes_by_domain(tree: dict[str, Any]) -> dict[str, set[str]]:
    return {row["name"]: set(row["nodes"]) for row in tree["tiers"][0]["domains"]}


def test_doctor_says_whether_lldpd_hears_anybody(
    lldp_fabric: LldpFabric, lldp_wiring: Wiring
) -> None:
    device = lldp_wiring.hosts[0].name

    def diagnose() -> dict[str, str]:
        command = (*AGENT, "doctor", "-o", "json", *device_options(lldp_fabric, device))
        rows = json.loads(lldp_fabric.sandbox.run(*command, namespace=device))
        return {row["subject"]: row["outcome"] for row in rows}

    assert diagnose()["LLDP"] == diagnose()["lldpcli"] == "ok"
    with lldp_fabric.stopping(device):
        assert diagnose()["LLDP"] == "warning"
