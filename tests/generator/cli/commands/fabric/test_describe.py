"""`toponaut describe`: a device with its cables, a port, and a domain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from generator.cli.exit_codes import ExitCode
from tests.generator.scenes import RAILS, Scene, run


@pytest.fixture(scope="module")
def rails(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return Scene.of(tmp_path_factory.mktemp("rails"), RAILS)


def describe(scene: Scene, *words: str) -> dict[str, Any]:
    document = run("describe", *words, scene.sweep(), "-o", "json").document
    assert isinstance(document, dict)
    return document


def test_both_ends_of_each_cable_of_a_host_name_each_other(rails: Scene) -> None:
    host = rails.hosts[0]
    ports = describe(rails, "node", host)["ports"]
    assert isinstance(ports, list)
    assert len(ports) == 4
    for port in ports:
        (link,) = port["links"]
        far = describe(rails, "port", f"{link['device']}:{link['port']}")
        assert [(row["device"], row["port"]) for row in far["links"]] == [(host, port["name"])]


def test_a_node_has_the_domains_of_the_tree_lowest_first(rails: Scene) -> None:
    tree = run("tree", rails.sweep(), "--node", rails.hosts[0], "-o", "json").document
    domains = describe(rails, "node", rails.hosts[0])["domains"]
    assert [(row["tier"], row["name"]) for row in domains] == [
        (tier["name"], tier["domains"][0]["name"]) for tier in tree["tiers"]
    ]


def test_a_device_is_found_by_its_ids(rails: Scene) -> None:
    first = describe(rails, "node", rails.hosts[0])
    row = next(row for row in first["ids"] if row["type"] != "hostname")
    assert describe(rails, "node", f"0x{row['value']}".upper()) == first


def test_a_domain_lists_its_nodes_switches_and_parents(rails: Scene) -> None:
    tree = run("tree", rails.sweep(), "-o", "json").document
    for tier in tree["tiers"]:
        row = tier["domains"][-1]
        found = describe(rails, "domain", row["name"])
        parents = [one["name"] for one in found["parents"]]
        assert found["switches"] == row["switches"]
        assert (found["children"] or found["nodes"]) == row.get("children", row.get("nodes"))
        assert parents[:1] == ([row["parent"]] if row["parent"] else [])


def test_it_shows_the_findings_of_a_device_as_text(tmp_path: Path) -> None:
    out = tmp_path / "fabric"
    words = ("--hosts", "16", "--rails", "2", "--radix", "8", "--swap", "1", "--out", out)
    assert run("simulate", "fabric", *words).code == ExitCode.OK
    sources = ("--reports", out / "reports")
    (swap,) = run("findings", *sources, "--kind", "swapped-cable", "-o", "json").document
    device = swap["evidence"]["swap"][0][0]["device"]
    kind = "node" if device.startswith("node") else "switch"
    text = run("describe", kind, device, *sources).out
    assert "swapped-cable" in text
    assert "no findings" not in text


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("node", "no-such"), "there is no node 'no-such' in these sources"),
        (("switch", "node-0001"), "there is no switch 'node-0001' in these sources"),
        (("domain", "no-such"), "there is no domain 'no-such' in these sources"),
        (("port", "node-0001:no-such"), "there is no port 'node-0001:no-such' in these sources"),
        (("port", "node-0001"), "'node-0001': expected DEVICE:PORT, such as node-0001:mlx5_0/1"),
    ],
)
def test_it_refuses(rails: Scene, words: tuple[str, str], problem: str) -> None:
    ran = run("describe", *words, rails.sweep())
    assert (ran.code, ran.err) == (ExitCode.USAGE, f"error: {problem}\n")


def test_a_gang_is_where_its_pods_run(rails: Scene, tmp_path: Path) -> None:
    pods = tmp_path / "pods.yaml"
    pods.write_text(f"w-0: {rails.hosts[0]}\nw-1: {rails.hosts[1]}\n")
    found = run("describe", "gang", "llm", rails.sweep(), "--pods", pods, "-o", "json")
    same = run("where", "llm", rails.sweep(), "--pods", pods, "-o", "json")
    assert found.document == same.document
    assert rails.hosts[0] in json.dumps(found.document)


def test_ports_of_one_rail_have_its_number(rails: Scene) -> None:
    host, other = (describe(rails, "node", name)["ports"] for name in rails.hosts[:2])
    assert [port["rail"] for port in host] == [1, 2, 3, 4]
    assert {port["name"]: port["rail"] for port in host} == {
        port["name"]: port["rail"] for port in other
    }
    for port in host:
        leaf = describe(rails, "switch", port["links"][0]["device"])
        to_hosts = [row["rail"] for row in leaf["ports"] if row["plane"] is None and row["rail"]]
        assert set(to_hosts) == {port["rail"]}


def test_it_lists_the_gangs_on_a_node_below_a_switch_and_in_a_domain(
    rails: Scene, tmp_path: Path
) -> None:
    here, there = rails.hosts[0], rails.hosts[-1]
    gangs = [
        {"gang": "ml/llm", "pods": [{"node": here}, {"node": there}]},
        {"gang": "ml/eval", "pods": [{"node": there}]},
    ]
    file = tmp_path / "running.yaml"
    file.write_text(json.dumps(gangs))
    running = ("--running", str(file))
    assert describe(rails, "node", here)["jobs"] is None
    assert describe(rails, "node", here, *running)["jobs"] == [{"gang": "ml/llm", "nodes": [here]}]
    (leaf, *_) = describe(rails, "node", here)["domains"]
    jobs = [{"gang": "ml/llm", "nodes": [here]}]
    assert describe(rails, "domain", leaf["name"], *running)["jobs"] == jobs
    switch = describe(rails, "node", here)["ports"][0]["links"][0]["device"]
    assert describe(rails, "switch", switch, *running)["jobs"] == jobs


def test_pods_of_a_cluster_show_the_gangs(rails: Scene, tmp_path: Path) -> None:
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"w-{number}",
                "namespace": "ml",
                "annotations": {"scheduling.k8s.io/group-name": "llm"},
            },
            "spec": {"nodeName": host, "containers": []},
            "status": {"phase": "Running" if number else "Succeeded"},
        }
        for number, host in enumerate(rails.hosts[:3])
    ]
    file = tmp_path / "pods.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))
    found = [describe(rails, "node", name, "--pods", str(file))["jobs"] for name in rails.hosts[:2]]
    assert found == [[], [{"gang": "ml/llm", "nodes": [rails.hosts[1]]}]]
    text = run("describe", "node", rails.hosts[1], rails.sweep(), "--pods", file).out
    assert f"job: ml/llm on {rails.hosts[1]}" in text


def test_a_document_without_an_object_is_skipped_and_reported(rails: Scene, tmp_path: Path) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "w-0", "namespace": "ml"},
        "spec": {"nodeName": rails.hosts[0], "containers": []},
    }
    file = tmp_path / "pods.yaml"
    file.write_text(f"{json.dumps(pod)}\n---\nno pod\n")
    ran = run("describe", "node", rails.hosts[0], rails.sweep(), "--pods", file)
    assert ran.code == ExitCode.SKIPPED
    assert "skipped: " in ran.err
    assert "expected pods" in ran.err
    assert rails.hosts[0] in ran.out
