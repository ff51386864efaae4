"""`toponaut describe`: a device with its cables, a port, and a domain."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from generator.cli.exit_codes import ExitCode
from generator.cli.group import cli
from tests.generator.scenes import RAILS, Scene, run
from topology.synthetic import FabricKind, SyntheticSpec


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
        (
            ("switch", "node-0001"),
            "'node-0001' is a node, not a switch; run toponaut describe node node-0001",
        ),
        (("domain", "no-such"), "there is no domain 'no-such' in these sources"),
        (("port", "node-0001:no-such"), "there is no port 'node-0001:no-such' in these sources"),
        (("port", "node-0001"), "'node-0001': expected DEVICE:PORT, such as node-0001:mlx5_0/1"),
    ],
)
def test_it_refuses(rails: Scene, words: tuple[str, str], problem: str) -> None:
    ran = run("describe", *words, rails.sweep())
    assert (ran.code, ran.err) == (ExitCode.USAGE, f"error: {problem}\n")


def test_a_kind_that_does_not_exist_gets_those_that_do(rails: Scene) -> None:
    ran = run("describe", "rack", "r1", rails.sweep())
    assert ran.code == ExitCode.USAGE
    kinds = "node, switch, port, domain or gang"
    assert f"there is no file 'r1' and no kind 'rack': use {kinds}" in ran.err


def test_a_kind_alone_is_answered_with_what_is_missing(rails: Scene) -> None:
    ran = run("describe", "node", "--reports", rails.reports())
    assert ran.code == ExitCode.USAGE
    assert "give the name of the node: toponaut describe node NAME" in ran.err


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
        to_hosts = [row["rail"] for row in leaf["ports"] if row["rail"]]
        assert set(to_hosts) == {port["rail"]}


def test_a_port_of_a_switch_has_the_plane_of_its_cable(rails: Scene) -> None:
    for port in describe(rails, "node", rails.hosts[0])["ports"]:
        leaf = describe(rails, "switch", port["links"][0]["device"])
        assert {row["plane"] for row in leaf["ports"]} == {port["plane"]}


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a fabric that lost 3 % of its cables."""
    out = tmp_path_factory.mktemp("lossy") / "fabric"
    words = ("--hosts", 64, "--rails", 4, "--radix", 16, "--lose-links", "3%", "--out", out)
    assert run("simulate", "fabric", *words).code == ExitCode.OK
    return out


def test_both_ends_of_a_lost_cable_name_each_other_and_stand_first(lossy: Path) -> None:
    sources = ("--reports", lossy / "reports")
    found = run("links", *sources, "--state", "missing", "-o", "json").document["links"]
    known = [row for row in found if row["a"]["port"] and row["b"]["port"]]
    assert known
    for row in known[:3]:
        for near, far in ((row["a"], row["b"]), (row["b"], row["a"])):
            words = ("describe", "port", f"{near['device']}:{near['port']}", *sources)
            port = run(*words, "-o", "json").document
            assert (port["expected"], port["links"]) == (far, [])
            assert port["findingKinds"]
            kind = "node" if near["device"].startswith("node") else "switch"
            text = run("describe", kind, near["device"], *sources).out
            rows = text[text.index("PORT ") :].partition("\n\n")[0].splitlines()[1:]
            notes = ["missing-link" in line or "down-port" in line for line in rows]
            assert notes == sorted(notes, reverse=True)
            expected = f"nothing, expected {far['device']} port {far['port']} "
            assert any(line.startswith(near["port"]) and expected in line for line in rows)


@pytest.mark.parametrize(
    ("lost", "far"),
    [
        pytest.param("spine-p02-03", "spine-p02-03", id="its peers show its name"),
        pytest.param("spine-p02-08", "a lost switch", id="its peers do not show its name"),
    ],
)
def test_the_ports_that_wait_for_a_lost_switch_say_so_everywhere(
    lost: str, far: str, tmp_path: Path
) -> None:
    words = ("--hosts", 64, "--rails", 4, "--radix", 16, "--lose", lost, "--out", tmp_path)
    assert run("simulate", "fabric", *words).code == ExitCode.OK
    sources = ("--reports", tmp_path / "reports")
    rows = run("links", *sources, "--state", "missing").out.splitlines()[1:-1]
    waiting: dict[str, set[str]] = {}
    for row in rows:
        device, port, *_ = row.split()
        assert re.split(" {2,}", row)[2] == far
        waiting.setdefault(device, set()).add(port)
    assert {name.split("-")[0] for name in waiting} == {"leaf", "core"}
    for device in ("leaf-p02-g03-r1", *(name for name in waiting if name.startswith("core"))):
        text = run("describe", "switch", device, *sources).out
        found = [line for line in text.splitlines() if f"nothing, expected {far} " in line]
        assert {line.split()[0] for line in found} == waiting[device]
    for ends, is_passed in (
        (("node-0020", "node-0030"), True),
        (("node-0020", "node-0001"), True),
        (("node-0001", "node-0009"), False),
    ):
        ways = run("path", *ends, *sources, "-o", "json").document["ways"]
        kinds = [{row["kind"] for row in way["findings"]} for way in ways]
        assert kinds == [{"lost-switch"} if is_passed else set()] * 4


def test_a_domain_lists_the_ports_inside_it_that_have_findings(lossy: Path) -> None:
    sources = ("--reports", lossy / "reports")
    found = run("findings", *sources, "-o", "json").document
    ends = {
        (end["device"], end["port"])
        for row in found
        for end in (*row["evidence"]["ports"], row["subject"])
        if end["port"]
    }
    top = run("tree", *sources, "-o", "json").document["tiers"][-1]["domains"][0]["name"]
    document = run("describe", "domain", top, *sources, "-o", "json").document
    assert {(row["device"], row["port"]) for row in document["faultyPorts"]} == ends
    assert len(ends) > 20
    text = run("describe", "domain", top, *sources).out
    assert f"\nand {len(ends) - 20} more; -o wide prints each\n" in text
    wide = run("describe", "domain", top, *sources, "-o", "wide").out
    rows = wide[wide.index("DEVICE") :].partition("\n\n")[0].splitlines()[1:]
    assert {tuple(row.split()[:2]) for row in rows} == ends


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


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("fndings",), "findings"),
        (("describe", "node", "node-001"), "node-0001"),
        (("describe", "switch", "leaf-g1-r1"), "leaf-g01-r1"),
        (("describe", "domain", "leaf-g01-r1"), "leaf-g01-r1-2"),
    ],
)
def test_a_wrong_word_gets_the_nearest_right_ones(
    words: tuple[str, ...], names: str, tmp_path: Path
) -> None:
    fabric = tmp_path / "fabric"
    run("simulate", "fabric", "--hosts", 16, "--rails", 2, "--radix", 8, "--out", fabric)
    ran = run(*words, *(("--reports", fabric / "reports") if len(words) > 1 else ()))
    assert ran.code == ExitCode.USAGE
    assert names in ran.err.partition("did you mean")[2]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """Return a fabric in which a leaf switch and its domain have one name."""
    spec = SyntheticSpec(FabricKind.FAT_TREE, 16, radix=8)
    return Scene.of(tmp_path_factory.mktemp("plain"), spec)


@pytest.mark.parametrize("kind", ["node", "switch", "domain"])
def test_a_name_alone_shows_what_its_kind_shows(rails: Scene, kind: str) -> None:
    host = describe(rails, "node", rails.hosts[0])
    name = {
        "node": rails.hosts[0],
        "switch": host["ports"][0]["links"][0]["device"],
        "domain": host["domains"][0]["name"],
    }[kind]
    assert describe(rails, name) == describe(rails, kind, name)


def test_an_id_and_a_port_alone_show_the_device_and_the_port(rails: Scene) -> None:
    host = describe(rails, "node", rails.hosts[0])
    row = next(row for row in host["ids"] if row["type"] == "node-guid")
    assert describe(rails, f"0x{row['value']}".upper()) == host
    port = f"{host['name']}:{host['ports'][0]['name']}"
    assert describe(rails, port) == describe(rails, "port", port)


@pytest.mark.parametrize("name", ["ml/llm", "llm"])
def test_the_name_of_a_gang_alone_shows_where_it_runs(
    rails: Scene, tmp_path: Path, name: str
) -> None:
    file = tmp_path / "running.yaml"
    file.write_text(json.dumps([{"gang": "ml/llm", "pods": [{"node": rails.hosts[0]}]}]))
    where = run("where", "ml/llm", rails.sweep(), "--running", file, "-o", "json")
    assert describe(rails, name, "--running", str(file)) == where.document


def test_pods_on_stdin_are_read_once_for_a_gang_without_its_kind(rails: Scene) -> None:
    pod = {
        "kind": "Pod",
        "metadata": {
            "namespace": "ml",
            "name": "w-0",
            "annotations": {"scheduling.k8s.io/group-name": "llm"},
        },
        "spec": {"nodeName": rails.hosts[0], "containers": []},
    }
    words = ["describe", "llm", str(rails.sweep()), "--pods", "-"]
    ran = CliRunner().invoke(cli, words, input=json.dumps(pod))
    assert ran.exit_code == ExitCode.OK, ran.stderr
    assert ran.stdout.startswith("ml/llm: 1 pod within one node")


def test_a_name_of_a_switch_and_of_a_domain_lists_both(plain: Scene) -> None:
    leaf = describe(plain, "node", plain.hosts[0])["domains"][0]["name"]
    ran = run("describe", leaf, plain.sweep())
    choices = f"toponaut describe switch {leaf} or toponaut describe domain {leaf}"
    message = f"error: '{leaf}' has several meanings; run {choices}\n"
    assert (ran.code, ran.err) == (ExitCode.USAGE, message)
    assert describe(plain, "domain", leaf)["switches"] == [leaf]
    assert describe(plain, "switch", leaf)["kind"] == "switch"


def test_an_unknown_name_gets_the_nearest_names_of_every_kind(rails: Scene) -> None:
    ran = run("describe", "node-01", rails.sweep())
    assert ran.code == ExitCode.USAGE
    start = "error: there is no node, switch, domain or gang 'node-01' in these sources; did you"
    assert ran.err.startswith(start)


def test_a_tree_without_devices_shows_a_domain_by_its_name(rails: Scene, tmp_path: Path) -> None:
    store = tmp_path / "store"
    applied = run("apply", rails.sweep(), "--nodes", rails.nodes(), "--store", store)
    assert applied.code == ExitCode.OK, applied.err
    leaf = describe(rails, "node", rails.hosts[0])["domains"][0]["name"]
    ran = run("describe", leaf, "--hypernodes", store / "hypernodes", "-o", "json")
    assert ran.document["name"] == leaf


def test_a_domain_is_found_by_its_label_value_and_shows_it(rails: Scene) -> None:
    (leaf, *_) = describe(rails, "node", rails.hosts[0])["domains"]
    own = describe(rails, "domain", leaf["name"])
    rows = run("export", "labels", rails.sweep()).out
    (value,) = own["otherNames"]
    assert f"/leaf: {value}" in rows
    assert describe(rails, value) == describe(rails, "domain", value) == own
    assert f"in outputs: {value}" in run("describe", value, rails.sweep()).out
    by_value = run("tree", rails.sweep(), "--domain", value).out
    assert by_value == run("tree", rails.sweep(), "--domain", leaf["name"]).out
