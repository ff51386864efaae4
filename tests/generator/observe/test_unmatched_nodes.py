"""Listed nodes without a host beside hosts without a node are one finding that says what to do."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from generator.ingest.inputs import DoubtKind, Inputs, SweepDoubt
from generator.objects.inventory import parse_nodes
from generator.observe.observation import observe_fabric
from tests.generator.scenes import RAILS, Ran, Scene, run
from tests.topology.sources.ibnetdiscover.parsed_dump import parse_ibnetdiscover
from topology.model.claims import SweptClaims
from topology.model.errors import show

KIND = "unmatched-nodes"


@pytest.fixture
def rails(tmp_path: Path) -> Scene:
    return Scene.of(tmp_path, RAILS)


def find(scene: Scene, nodes: Sequence[Mapping[str, Any]], *options: str) -> list[dict[str, Any]]:
    """Return the findings of the kind, for the sweep and a list of nodes."""
    listed = scene.write("listed.json", json.dumps({"nodes": nodes}))
    ran = run("findings", scene.sweep(), "--nodes", listed, "--kind", KIND, "-o", "json", *options)
    assert ran.code == 0, ran.err
    rows: list[dict[str, Any]] = ran.document
    return rows


def rows(scene: Scene, name: str, **fields: object) -> list[dict[str, Any]]:
    """Return one entry per host; in the name, {} is its number."""
    return [{"name": name.format(number), **fields} for number in range(1, len(scene.hosts) + 1)]


def test_nodes_that_all_have_a_host_are_no_finding(rails: Scene) -> None:
    assert find(rails, [{"name": name} for name in rails.hosts]) == []
    assert find(rails, [{"name": name} for name in rails.hosts[:4]]) == []


def test_it_is_one_error_if_no_node_has_a_host(rails: Scene) -> None:
    (row,) = find(rails, rows(rails, "10.0.4.{}"))
    assert (row["severity"], row["subject"]["device"]) == ("error", "inventory")
    message = row["message"]
    assert "16 listed nodes have no host: 10.0.4.[1-16]" in message
    assert "16 hosts have no listed node: node-[0001-0016]" in message
    assert '{name: 10.0.4.1, ids: [{type: hostname, value: "node-0001"}]}' in message
    assert "10.0.4.2 = node-0002" in message
    assert len(row["evidence"]["ports"]) == 2 * len(rails.hosts)


def test_what_it_says_to_write_matches_the_node(rails: Scene) -> None:
    nodes = rows(rails, "10.0.4.{}")
    nodes[0]["ids"] = [{"type": "hostname", "value": "node-0001"}]
    (row,) = find(rails, nodes)
    assert row["severity"] == "warning"
    assert "15 listed nodes have no host: 10.0.4.[2-16]" in row["message"]


def test_it_is_info_if_only_nodes_without_devices_have_no_host(rails: Scene) -> None:
    gpus = [{"name": name, "capacity": {"nvidia.com/gpu": 8}} for name in rails.hosts[2:]]
    (row,) = find(rails, [*gpus, {"name": "control-plane-1", "capacity": {"cpu": 8}}])
    assert row["severity"] == "info"
    (row,) = find(rails, [*gpus, {"name": "gpu-x", "capacity": {"nvidia.com/gpu": 8}}])
    assert row["severity"] == "warning"


def test_nodes_without_a_host_alone_are_no_finding(rails: Scene) -> None:
    nodes = [{"name": name} for name in (*rails.hosts, "control-plane-1")]
    assert find(rails, nodes) == []


def test_a_list_of_another_cluster_is_a_finding_without_hosts(rails: Scene) -> None:
    switches = rails.write("switches.txt", "\n\n".join(_switch_blocks(rails.sweep_text())))
    listed = rails.write("listed.json", json.dumps({"nodes": rows(rails, "other-{}")}))
    ran = run("findings", switches, "--nodes", listed, "--kind", KIND, "-o", "json")
    (row,) = ran.document
    assert row["severity"] == "error"
    assert "The sources show no host without a node either." in row["message"]


def test_nodes_without_a_report_beside_nodes_with_one_are_silent(rails: Scene) -> None:
    reports = rails.reports()
    for file in [*reports.glob("*sweep*"), *(reports / f"{name}.yaml" for name in rails.hosts[:3])]:
        file.unlink()
    ran = run("findings", "--reports", reports, "--nodes", rails.nodes(), "-o", "json")
    kinds = [row["kind"] for row in ran.document]
    assert (kinds.count("silent-node"), kinds.count(KIND)) == (3, 0)


def _switch_blocks(sweep: str) -> list[str]:
    """Return the records of switches without their cables to hosts."""
    blocks = [block for block in sweep.split("\n\n") if "\nSwitch\t" in block]
    return ["\n".join(row for row in block.splitlines() if '"H-' not in row) for block in blocks]


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        pytest.param("node-{:04}.other.example", "", id="names that match"),
        pytest.param("gpu-{}", "gpu-1 = node-0001", id="the same last number"),
        pytest.param("x{}y", "x1y = node-0001", id="the same number"),
        pytest.param("ip-10-0-4-{}.internal", "ip-10-0-4-1.internal = node-0001", id="an address"),
        pytest.param("gpu-{}00", None, id="other numbers"),
    ],
)
def test_it_shows_pairs_only_if_one_rule_pairs_all(
    rails: Scene, name: str, pair: str | None
) -> None:
    found = find(rails, rows(rails, name))
    if pair == "":
        assert found == []
    elif pair is None:
        assert "pairs may be" not in found[0]["message"]
        assert found[0]["message"].endswith("if this is its host.")
    else:
        assert f"the pairs may be {pair}" in found[0]["message"]


def test_hostile_names_are_escaped(rails: Scene) -> None:
    hostile = "evil\x1b[31m,[x]"
    text = rails.sweep_text().replace('"node-0001 ', f'"{hostile} ')
    sweep = rails.write("hostile.txt", text)
    listed = rails.write("listed.json", json.dumps({"nodes": [{"name": "a"}]}))
    ran = run("findings", sweep, "--nodes", listed, "--kind", KIND)
    assert "\x1b" not in ran.out
    assert ran.out.isprintable() or show(hostile)[:4] in ran.out


def test_it_lists_members_of_hypernodes_that_are_no_listed_nodes(rails: Scene) -> None:
    exported = run("export", "hypernodes", rails.sweep(), "-o", "yaml")
    folder = rails.write("hypernodes/all.yaml", exported.out).parent
    listed = rails.write("listed.json", json.dumps({"nodes": rows(rails, "10.0.4.{}")}))
    ran = run("findings", "--hypernodes", folder, "--nodes", listed, "-o", "json")
    (row,) = ran.document
    assert (row["kind"], row["severity"]) == (KIND, "error")
    assert "16 HyperNode members have no listed node: node-[0001-0016]" in row["message"]
    assert run("findings", "--hypernodes", folder, "--nodes", rails.nodes()).code == 0


def place(scene: Scene, *options: object) -> Ran:
    request = {
        "apiVersion": "toponaut.io/v1alpha1",
        "kind": "PlacementRequest",
        "metadata": {"name": "t"},
        "spec": {"groups": [{"name": "g", "count": 2}], "required": "leaf"},
    }
    file = scene.write("request.json", json.dumps(request))
    return run("place", "-f", file, "-o", "json", *options)


def test_a_placement_prints_the_finding_on_stderr(rails: Scene) -> None:
    listed = rails.write("listed.json", json.dumps({"nodes": rows(rails, "10.0.4.{}")}))
    ran = place(rails, "--ibnetdiscover", rails.sweep(), "--nodes", listed)
    assert "note: unmatched-nodes: 16 listed nodes have no host" in ran.err


def test_a_saved_tree_uses_the_names_of_the_list(rails: Scene) -> None:
    tree = rails.write("tree.json", run("tree", rails.sweep(), "-o", "json").out)
    nodes = rows(rails, "10.0.4.{}")
    for node, host in zip(nodes, rails.hosts, strict=True):
        node["ids"] = [{"type": "hostname", "value": host}]
    listed = rails.write("listed.json", json.dumps({"nodes": nodes}))
    ran = place(rails, "--tree", tree, "--nodes", listed)
    assert ran.document["assignment"] == {"g": ["10.0.4.1", "10.0.4.2"]}
    assert ran.err == ""


def test_nodes_of_a_saved_tree_that_are_not_listed_take_no_pods(rails: Scene) -> None:
    tree = rails.write("tree.json", run("tree", rails.sweep(), "-o", "json").out)
    listed = rails.write("listed.json", json.dumps({"nodes": [{"name": "x"}]}))
    ran = place(rails, "--tree", tree, "--nodes", listed)
    assert ran.document["reason"]["excluded"] == {"unlisted": 16}
    assert "16 nodes of the tree, which take no pods: node-[0001-0016]" in ran.err
    assert "it lists nodes that the tree lacks: x" in ran.err


def test_a_sweep_in_doubt_is_about_the_nodes_that_its_hosts_are(rails: Scene) -> None:
    """A plan that moves such a node is held under the name of the node."""
    sweep = SweptClaims(parse_ibnetdiscover(rails.sweep_text().encode()).devices)
    nodes = {"nodes": [{"name": "10.0.4.1", "ids": [{"type": "hostname", "value": "node-0001"}]}]}
    doubt = SweepDoubt(DoubtKind.SWEEPS_DISAGREE, "x", frozenset({"node-0001", "node-0002"}))
    inventory = parse_nodes(json.dumps(nodes).encode(), source="nodes")
    found = observe_fabric(Inputs((sweep,), inventory=inventory, doubts=(doubt,)))
    assert found is not None
    assert found.observation.doubts == (doubt._replace(nodes=frozenset({"10.0.4.1", "node-0002"})),)


@pytest.mark.parametrize(
    ("subnets", "unlinked"),
    [
        pytest.param((), {"gone"}, id="with a known id, if all switches report"),
        pytest.param(("fe80000000000000",), set[str](), id="but not if a subnet is unknown"),
    ],
)
def test_a_node_without_a_link_is_known(
    rails: Scene, subnets: tuple[str, ...], unlinked: set[str]
) -> None:
    sweep = SweptClaims(parse_ibnetdiscover(rails.sweep_text().encode()).devices)
    nodes: list[dict[str, Any]] = [{"name": name} for name in rails.hosts]
    nodes.append({"name": "gone", "ids": [{"type": "node-guid", "value": "00aa0000000000ff"}]})
    nodes.append({"name": "without an id"})
    inventory = parse_nodes(json.dumps({"nodes": nodes}).encode(), source="nodes")
    found = observe_fabric(Inputs((sweep,), inventory=inventory, unknown_subnets=subnets))
    assert found is not None
    assert found.observation.unlinked_nodes == unlinked
