"""A report in a folder is about the listed node that its name means."""

import json
from pathlib import Path

import pytest

from generator.objects.inventory import Inventory, parse_nodes
from generator.store.fabric_store import name_reports_as_listed
from tests.generator.folders import StoreFolder
from tests.generator.scenes import RAILS, Scene, run
from topology.model.ids import Id, IdKind


@pytest.fixture
def rails(tmp_path: Path) -> Scene:
    return Scene.of(tmp_path, RAILS)


def listed(scene: Scene, name: str = "10.0.4.{}") -> Path:
    """Write a list whose nodes have other names, and the names of their hosts as ids."""
    nodes = [
        {"name": name.format(number), "ids": [{"type": "hostname", "value": host}]}
        for number, host in enumerate(scene.hosts, 1)
    ]
    return scene.write("listed.json", json.dumps({"nodes": nodes}))


def inventory_of(*names: str, **host_names: str) -> Inventory:
    rows = [{"name": name} for name in names]
    rows += [
        {"name": name, "ids": [{"type": "hostname", "value": value}]}  # type: ignore[dict-item]
        for name, value in host_names.items()
    ]
    return parse_nodes(json.dumps({"nodes": rows}).encode(), source="nodes")


def test_reports_count_for_the_nodes_that_list_their_hosts(rails: Scene) -> None:
    ran = run("tree", "--reports", rails.reports(), "--nodes", listed(rails), "-o", "json")
    assert (ran.code, ran.err) == (0, "")
    tree = ran.document
    assert tree["unplaced"] == []
    placed = {node for domain in tree["tiers"][0]["domains"] for node in domain["nodes"]}
    assert placed == {f"10.0.4.{number}" for number in range(1, len(rails.hosts) + 1)}


def test_a_report_and_its_sweep_have_the_name_of_the_node(rails: Scene) -> None:
    rails.store()
    stored = StoreFolder(rails.root / "store").read_reports()
    first = rails.hosts[0]
    found = name_reports_as_listed(stored, inventory_of(*rails.hosts[1:], n1=first))
    names = [report.name for report in found.values]
    assert names == sorted(names)
    assert {"n1", "n1.sweep.0"} <= set(names)
    assert not any(name.startswith(first) for name in names)
    (report,) = (one for one in found.values if one.name == "n1")
    assert report.device is not None
    assert Id(IdKind.NODE_NAME, "n1") in report.device.ids
    assert Id(IdKind.NODE_NAME, first) not in report.device.ids


def test_a_report_keeps_its_name_if_no_single_node_is_meant(rails: Scene) -> None:
    rails.store()
    stored = StoreFolder(rails.root / "store").read_reports()
    first, *rest = rails.hosts
    for inventory in (
        None,
        inventory_of(*rails.hosts),
        inventory_of(*rails.hosts, n1=first),
        inventory_of(*rest, n1=first, n2=first),
        inventory_of(*rest, n1="other"),
    ):
        assert name_reports_as_listed(stored, inventory) is stored


def test_a_server_reads_the_same_reports_until_a_file_changes(rails: Scene) -> None:
    rails.store()
    nodes = listed(rails)
    store = StoreFolder(rails.root / "store", nodes)
    stored = store.read_reports()
    assert stored.values[0].name == "10.0.4.1"
    assert store.read_reports() is stored
    listed(rails, "10.0.5.{}")
    assert store.read_reports().values[0].name == "10.0.5.1"
