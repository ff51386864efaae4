"""`toponaut place` and `compare` with a file whose pods run in part."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from generator.cli.cluster_input import ClusterInput, build_input_snapshot
from generator.cli.exit_codes import ExitCode
from generator.cli.request_input import LoadedRequest, load_request
from generator.objects.inventory import parse_nodes
from generator.placement.cluster.nodes import NodeSpec
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.engine import place
from generator.rpc.published_state import PublishedState
from tests.generator.placement.documents import racks
from tests.generator.rpc.servers import serving
from tests.generator.scenes import Ran, run
from topology.model.tree import render_tree

GPU = "nvidia.com/gpu"
TREE = racks(2, 3)
"""Nodes n0 and n1 in one rack, n2 to n4 in another."""


def pod(name: str, node: str = "", gpus: int = 8, group: str = "g") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {"scheduling.k8s.io/group-name": group}},
        "spec": {
            "containers": [{"name": "c", "resources": {"requests": {GPU: gpus}}}],
            **({"nodeName": node} if node else {}),
        },
    }


GROUP = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "g"},
    "spec": {"minMember": 2, "networkTopology": {"mode": "hard", "highestTierAllowed": 1}},
}


class Files:
    """The files of one question."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("tree.json", json.dumps(render_tree(TREE)))
        rows = [{"name": name, "capacity": {GPU: 8, "pods": 8}} for name in TREE.nodes]
        self.nodes = self.write("nodes.yaml", yaml.safe_dump({"nodes": rows}))

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.write_text(text)
        return path

    def gang(self, *pods: dict[str, Any]) -> Path:
        return self.write("gang.yaml", yaml.safe_dump_all([GROUP, *pods]))

    def ask(self, *pods: dict[str, Any], to: str = "place", running: Path | None = None) -> Ran:
        given = ("-f", self.gang(*pods), "--tree", self.root / "tree.json", "--nodes", self.nodes)
        return run(to, *given, "-o", "json", *(("--running", running) if running else ()))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_it_places_the_pod_that_waits_beside_the_others(files: Files) -> None:
    ran = files.ask(pod("a", "n2"), pod("b", "n3"), pod("c"))
    assert (ran.code, ran.document["assignment"]) == (ExitCode.OK, {"pods": ["n4"]})
    assert "pods of the gang run on n2, n3 and keep their nodes" in ran.err
    assert not files.ask(pod("a", "n0"), pod("b", "n1"), pod("c")).document["feasible"]


def test_it_compares_presets_with_the_same_pods(files: Files) -> None:
    ran = files.ask(pod("a", "n2"), pod("b", "n3"), pod("c"), to="compare")
    assert [row["placement"]["assignment"] for row in ran.document] == [{"pods": ["n4"]}] * 11


def test_it_counts_what_other_pods_of_the_file_use(files: Files) -> None:
    others = [pod(name, node, group="h") for name, node in (("x", "n0"), ("y", "n2"))]
    ran = files.ask(*others, pod("a"), pod("b"))
    assert set(ran.document["assignment"]["pods"]) == {"n3", "n4"}


def test_it_counts_a_pod_once_that_running_lists_too(files: Files) -> None:
    rows = [{"gang": "g", "pods": [{"node": "n2", "request": {GPU: 4}}]}]
    listed = files.write("running.json", json.dumps(rows))
    ran = files.ask(pod("a", "n2", 4), pod("b", gpus=4), running=listed)
    assert ran.document["assignment"] == {"pods": ["n2"]}


def test_it_says_which_nodes_of_pods_are_not_in_the_tree(files: Files) -> None:
    ran = files.ask(pod("a", "elsewhere"), pod("b"))
    assert "pods of the gang run on nodes that are not in the tree: elsewhere" in ran.err
    assert ran.document["feasible"]


def test_it_counts_slots_where_nodes_list_only_slots(files: Files) -> None:
    rows = [{"name": name, "capacity": {"slots": 8}} for name in TREE.nodes]
    files.write("nodes.yaml", yaml.safe_dump({"nodes": rows}))
    small = pod("x", "n3", group="h")
    small["spec"]["containers"] = [{"name": "c"}]
    ran = files.ask(pod("a", "n2"), pod("b", "n4"), small, pod("c"))
    assert ran.document["assignment"] == {"pods": ["n3"]}


def load(files: Files, *pods: dict[str, Any]) -> LoadedRequest:
    return load_request(str(files.gang(*pods)), None, {})


def test_it_subtracts_no_pod_that_the_cluster_has_counted(files: Files) -> None:
    loaded = load(files, pod("a", "n2", 4), pod("x", "n3", group="h"), pod("b", gpus=4))
    request = loaded.to_request(None)
    inventory = parse_nodes(files.nodes.read_bytes(), source="nodes.yaml")
    for counts_pods, free in ((True, [8, 8]), (False, [4, 0])):
        cluster = ClusterInput(TREE, inventory, (), counts_pods=counts_pods)
        snapshot = build_input_snapshot(cluster, None, loaded, request)
        found = snapshot.quantities(GPU, counts_free=True)
        assert [int(found[snapshot.position_of[name]]) for name in ("n2", "n3")] == free
        assert place(snapshot, request).assignment["pods"] == ("n2",)


def test_a_server_warns_of_nodes_without_a_place_as_the_command_does(files: Files) -> None:
    lost = NodeSpec("lost", {GPU: 8})
    group = {"name": "w", "count": 1, "request": {GPU: 8}}
    head = {"apiVersion": "toponaut.io/v1alpha1", "kind": "PlacementRequest"}
    gang = files.write("gang.yaml", yaml.safe_dump({**head, "spec": {"groups": [group]}}))
    with serving(PublishedState(Snapshot.from_tree(TREE, [lost]))) as server:
        ran = run("place", "-f", gang, "--server", server.address)
    assert "note: lost has no place in the tree: no source shows it" in ran.err
    assert ran.out.startswith("feasible: 1 pod within one node")


def test_a_server_of_the_cluster_places_beside_the_pods_that_run(files: Files) -> None:
    cluster = ClusterInput(TREE, parse_nodes(files.nodes.read_bytes(), source="nodes.yaml"), ())
    loaded = load(files, pod("a", "n3"), pod("b"))
    snapshot = build_input_snapshot(cluster, None, loaded, loaded.to_request(None))
    with serving(PublishedState(snapshot)) as server:
        gang = files.gang(pod("a", "n3"), pod("b"))
        ran = run("place", "-f", gang, "--server", server.address, "-o", "json")
    assert ran.document["assignment"]["pods"][0] in {"n2", "n4"}
    assert "a server that reads a cluster counts the pods that run" in ran.err
