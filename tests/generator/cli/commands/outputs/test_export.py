"""`toponaut export`: the tree in every format, to stdout and to a folder."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from generator.cli.exit_codes import ExitCode
from generator.outputs.formats import ExportFormat
from tests.generator.scenes import PAIRS, Scene, run
from tests.repository import ROOT
from topology.model.tree import DomainSpec, Unplaced, build_tree, render_tree

OBJECTS = {
    "hypernodes": "HyperNode",
    "labels": "Node",
    "kueue": "Topology",
    "kai": "Topology",
    "koordinator": "ClusterNetworkTopology",
    "grove": "ClusterTopologyBinding",
    "slinky": "Node",
    "nfd": "NodeFeature",
    "configmap": "ConfigMap",
}
KEYS = ["topology.toponaut.io/spine", "topology.toponaut.io/leaf"]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Scene.of(tmp_path_factory.mktemp("scene"), PAIRS).reports()


def test_every_format_is_tried_here() -> None:
    texts = {"slurm-tree", "slurm-block", "slurm-yaml", "topograph", "dot", "graphml"}
    assert {row.value for row in ExportFormat} == {*OBJECTS, *texts}


def test_the_help_and_the_documentation_list_every_format() -> None:
    usage = run("export", "--help").out.partition("Kubernetes objects have")[0]
    table = (ROOT / "docs/consumers.md").read_text().partition("| Format |")[2].partition("\n\n")[0]
    for chosen in ExportFormat:
        assert chosen in re.split(r"[\s,]+", usage)
        assert f"`{chosen}`" in table


@pytest.mark.parametrize(("chosen", "kind"), OBJECTS.items())
def test_it_prints_objects(reports: Path, chosen: str, kind: str) -> None:
    ran = run("export", chosen, "--reports", reports)
    assert (ran.code, ran.err) == (0, "")
    documents = list(yaml.safe_load_all(ran.out))
    assert {document["kind"] for document in documents} == {kind}
    listed = run("export", chosen, "--reports", reports, "-o", "json").document
    assert listed["items"] == documents


def test_the_keys_of_the_objects_are_the_labels_of_the_nodes(reports: Path) -> None:
    nodes = run("export", "labels", "--reports", reports, "-o", "json").document["items"]
    assert {tuple(node["metadata"]["labels"]) for node in nodes} == {tuple(KEYS)}
    levels = [*KEYS, "kubernetes.io/hostname"]
    for chosen in ("kueue", "kai"):
        (topology,) = run("export", chosen, "--reports", reports, "-o", "json").document["items"]
        assert [level["nodeLabel"] for level in topology["spec"]["levels"]] == levels
    (binding,) = run("export", "grove", "--reports", reports, "-o", "json").document["items"]
    assert [level["key"] for level in binding["spec"]["levels"]] == levels
    (found,) = run("export", "koordinator", "--reports", reports, "-o", "json").document["items"]
    rows = found["spec"]["networkTopologySpec"]
    assert [row.get("labelKey") for row in rows] == [[KEYS[0]], [KEYS[1]], None]
    assert [row["topologyLayer"] for row in rows] == [
        "SpineLayer",
        "LeafLayer",
        "NodeTopologyLayer",
    ]
    assert [row.get("parentTopologyLayer") for row in rows] == [None, "SpineLayer", "LeafLayer"]


def test_it_writes_one_file_and_leaves_an_equal_one_alone(reports: Path, tmp_path: Path) -> None:
    words = ("export", "slurm-tree", "--reports", reports, "--out", tmp_path / "new")
    first = run(*words)
    assert (first.code, first.out) == (0, "")
    file = tmp_path / "new/topology.conf"
    assert first.err == f"wrote the topology to {file}\n"
    assert file.read_text() == run(*words[:-2]).out
    stamp = file.stat().st_mtime_ns
    assert run(*words).err == f"unchanged: {file}\n"
    assert file.stat().st_mtime_ns == stamp


def test_a_flavor_selects_nodes_by_labels(reports: Path) -> None:
    ran = run(
        *("export", "kueue", "--reports", reports, "-o", "json", "--name", "fabric"),
        *("--flavor", "gpu", "--flavor-label", "node-role=gpu"),
    )
    topology, flavor = ran.document["items"]
    assert topology["metadata"]["name"] == "fabric"
    assert flavor["spec"] == {"nodeLabels": {"node-role": "gpu"}, "topologyName": "fabric"}


def test_it_writes_the_keys_of_other_tools(reports: Path) -> None:
    words = ("export", "labels", "--reports", reports, "-o", "json")
    nodes = run(*words, "--compat", "nvidia", "--compat", "topograph").document["items"]
    labels = nodes[0]["metadata"]["labels"]
    assert labels["network.topology.nvidia.com/leaf"] == labels[KEYS[1]]
    assert labels["fabric.topograph.run/tier-1"] == labels[KEYS[0]]


def test_topograph_reads_the_nearest_domain_first(reports: Path) -> None:
    document = run("export", "topograph", "--reports", reports).document
    nodes = run("export", "labels", "--reports", reports, "-o", "json").document["items"]
    labels = {node["metadata"]["name"]: node["metadata"]["labels"] for node in nodes}
    assert [row["id"] for row in document["instances"]] == list(labels)
    for row in document["instances"]:
        assert row["network_layers"] == [labels[row["id"]][key] for key in reversed(KEYS)]


def test_the_drawings_have_every_domain_and_node(reports: Path) -> None:
    tree = run("tree", "--reports", reports, "-o", "json").document
    names = [domain["name"] for tier in tree["tiers"] for domain in tier["domains"]]
    nodes = [node for domain in tree["tiers"][0]["domains"] for node in domain["nodes"]]
    dot = run("export", "dot", "--reports", reports).out
    assert all(f'\\n{name}"' in dot for name in (*names, *nodes))
    root = ET.fromstring(run("export", "graphml", "--reports", reports).out)  # noqa: S314 - our own
    space = "{http://graphml.graphdrawing.org/xmlns}"
    drawn = [data.text for data in root.iter(f"{space}data") if data.get("key") == "name"]
    assert sorted(drawn, key=str) == sorted((*names, *nodes))


BAD = [
    pytest.param(("labels", "--label-prefix", "k8s.io"), "belongs to Kubernetes", id="a prefix"),
    pytest.param(("slurm-tree", "-o", "json"), "give no --output", id="JSON of a text"),
    pytest.param(("kueue", "--flavor", "gpu"), "both --flavor and", id="a flavor without labels"),
    pytest.param(
        ("kueue", "--flavor", "gpu", "--flavor-label", "x"), "not KEY=VALUE", id="half a label"
    ),
    pytest.param(("labels", "--tier-names", "a b,c"), "cannot be in a label key", id="a tier"),
    pytest.param(("grove", "--tier-names", "1st,2nd"), "cannot be a domain", id="a tier of Grove"),
    pytest.param(("nothing",), "is not one of", id="an unknown format"),
]


@pytest.mark.parametrize(("words", "said"), BAD)
def test_it_refuses(reports: Path, words: tuple[str, ...], said: str) -> None:
    ran = run("export", *words, "--reports", reports)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def write_tree(folder: Path, *specs: DomainSpec, unplaced: Iterable[Unplaced] = ()) -> Path:
    file = folder / "tree.json"
    tree = build_tree(specs, tiers=("leaf", "spine"), unplaced=unplaced)
    file.write_text(json.dumps(render_tree(tree)))
    return file


LONG = "gpu-node-0000.cluster-a.building-1.prod.internal.operator-net.example"
HOLDS_LONG = {"hypernodes", "labels", "kueue", "kai", "koordinator", "grove"}
HOLDS_ANY = {"kueue", "kai", "koordinator", "grove", "configmap", "topograph", "dot", "graphml"}
HOSTS = [
    pytest.param("Rack_1,A", HOLDS_ANY, id="a host that is no node of Kubernetes"),
    pytest.param(LONG, HOLDS_LONG | HOLDS_ANY, id="a node with more than 63 characters"),
]


@pytest.mark.parametrize(("host", "holding"), HOSTS)
@pytest.mark.parametrize("chosen", [row.value for row in ExportFormat])
def test_a_node_that_the_reader_cannot_hold_is_left_out_with_its_domain_and_named(
    tmp_path: Path, chosen: str, host: str, holding: set[str]
) -> None:
    file = write_tree(
        tmp_path,
        DomainSpec("spine-1", 2, None),
        DomainSpec("leaf-1", 1, "spine-1", (host,)),
        DomainSpec("leaf-2", 1, "spine-1", ("n1", "n2")),
    )
    ran = run("export", chosen, "--tree", file)
    if chosen in holding:
        assert (ran.code, ran.err) == (0, "")
        return
    assert ran.code == ExitCode.SKIPPED
    assert f"1 name that {chosen} cannot hold: {host}" in ran.err
    assert host not in ran.out
    assert "leaf-1" not in ran.out


@pytest.mark.parametrize("chosen", ["hypernodes", "slinky", "nfd"])
def test_a_node_that_a_format_never_names_is_not_left_out(tmp_path: Path, chosen: str) -> None:
    lost = [Unplaced("Rack_1,A", "no report")]
    file = write_tree(tmp_path, DomainSpec("leaf-1", 1, None, ("n1",)), unplaced=lost)
    assert run("export", chosen, "--tree", file).code == ExitCode.OK


@pytest.mark.parametrize("chosen", ["slurm-tree", "nfd"])
def test_an_empty_export_never_replaces_a_good_file(tmp_path: Path, chosen: str) -> None:
    good = write_tree(tmp_path, DomainSpec("leaf-1", 1, None, ("n1",)))
    words = ("export", chosen, "--tree", good, "--out", tmp_path / "out")
    assert run(*words).code == ExitCode.OK
    (file,) = (tmp_path / "out").iterdir()
    before = file.read_text()
    for specs, unplaced in (
        ([DomainSpec("leaf-1", 1, None, (LONG,))], ()),
        ([], [Unplaced("n1", "no report")]),
    ):
        write_tree(tmp_path, *specs, unplaced=unplaced)
        ran = run(*words)
        assert (ran.code, ran.out) == (ExitCode.NOTHING, "")
        assert f"no node has a place that {chosen} can hold" in ran.err
        assert (LONG in ran.err) is bool(specs)
        assert file.read_text() == before


def test_a_saved_tree_is_exported_as_its_source(reports: Path, tmp_path: Path) -> None:
    file = tmp_path / "tree.json"
    file.write_text(run("tree", "--reports", reports, "-o", "json").out)
    for chosen in ("hypernodes", "slurm-yaml", "labels", "html"):
        assert run("export", chosen, "--tree", file).code == ExitCode.OK
    saved = run("export", "hypernodes", "--tree", file).out
    assert saved == run("export", "hypernodes", "--reports", reports).out


def test_nodes_restrict_a_saved_tree(tmp_path: Path) -> None:
    file = write_tree(tmp_path, DomainSpec("leaf-1", 1, None, ("n1", "n2")))
    nodes = tmp_path / "nodes.json"
    nodes.write_text(json.dumps({"nodes": [{"name": "n1"}, {"name": "n3"}]}))
    document = run("export", "topograph", "--tree", file, "--nodes", nodes).document
    assert document["instances"] == [
        {"id": "n1", "network_layers": ["leaf-0001", "leaf-0001-pad0002"], "labels": {}},
        {"id": "n3", "network_layers": [], "labels": {}},
    ]


@pytest.mark.parametrize("words", [("--reports", "."), ("--tier-names", "a,b")])
def test_a_saved_tree_is_the_only_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    write_tree(tmp_path, DomainSpec("leaf-1", 1, None, ("n1",)))
    monkeypatch.chdir(tmp_path)
    ran = run("export", "dot", "--tree", "tree.json", *words)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert "--tree" in ran.err


def test_a_stream_of_json_is_a_list_for_kubectl(reports: Path) -> None:
    document = json.loads(run("export", "nfd", "--reports", reports, "-o", "json").out)
    assert (document["apiVersion"], document["kind"]) == ("v1", "List")
    feature = document["items"][0]
    assert feature["metadata"]["namespace"] == "toponaut"
    elements = feature["spec"]["features"]["attributes"]["toponaut.topology"]["elements"]
    assert list(elements) == ["leaf", "spine"]
