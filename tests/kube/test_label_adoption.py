"""Labels that an admin set are taken over on a real API server, at no instant without a value."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from generator.cli.exit_codes import ExitCode
from generator.kube.resources import NODES
from tests.generator.scenes import PAIRS, Scene
from tests.kube.servers import OFTEN, OutputCluster, serving
from tests.lab.api_server import ApiServer
from topology.model.tree import parse_tree

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube outputs")]

TIER_0, TIER_1 = "fabric.topograph.run/tier-0", "fabric.topograph.run/tier-1"
OUTPUT = {"type": "labels", "compat": ["topograph"]}


@pytest.fixture
def cluster(other_api: ApiServer, tmp_path: Path) -> Iterator[OutputCluster]:
    made = OutputCluster.of_consumers(other_api, Scene.of(tmp_path / "scene", PAIRS))
    made.choose(OUTPUT)
    yield made
    made.clear()


@pytest.fixture
def leaves(cluster: OutputCluster) -> list[tuple[str, ...]]:
    """The nodes of each leaf."""
    tree = parse_tree(cluster.toponaut("tree", "-o", "json").document)
    return [domain.nodes for domain in tree.domains if domain.tier == 1]


def label(cluster: OutputCluster, leaves: Sequence[Sequence[str]]) -> None:
    """Set topograph's labels by hand: `rack-a` and so on, all in one row."""
    for name, nodes in zip("abcdefghijklmnop", leaves, strict=False):
        for node in nodes:
            labels = {TIER_0: f"rack-{name}", TIER_1: "row"}
            cluster.set_labels(node, labels)


def history(cluster: OutputCluster, version: str) -> list[Mapping[str, Any]]:
    """Return every state that a node has had since a version."""
    connection = http.client.HTTPSConnection(
        "127.0.0.1", cluster.api.port, timeout=30, context=cluster.api.tls
    )
    path = f"{NODES.path()}?watch=1&resourceVersion={version}&timeoutSeconds=2"
    connection.request(
        "GET", path, headers={"Authorization": f"Bearer {cluster.api.tokens['admin']}"}
    )
    text = connection.getresponse().read().decode()
    connection.close()
    return [json.loads(line)["object"] for line in text.splitlines()]


def test_labels_are_taken_over_under_approval_and_keep_their_values(
    cluster: OutputCluster, leaves: list[tuple[str, ...]], tmp_path: Path
) -> None:
    wrong = leaves[1][0]  # is cabled to the second leaf, and labelled into the first
    label(cluster, [(*leaves[0], wrong), leaves[1][1:], *leaves[2:]])
    before = cluster.labels(TIER_0)
    assert cluster.toponaut("apply", "--namespace", cluster.namespace).code == ExitCode.INTERNAL
    assert cluster.labels(TIER_0) == before, "labels of others stay"

    held = cluster.toponaut("adopt", "--labels", "topograph", "-o", "json")
    assert held.code == ExitCode.CHECK_FAILED, held.err
    assert cluster.labels(TIER_0) == before
    plan = held.document
    assert [(row["kind"], row["node"]) for row in plan["differences"]] == [("other-domain", wrong)]
    names = [f"rack-{name}" for name, _ in zip("abcdefghijklmnop", leaves, strict=False)]
    assert set(plan["namesKept"]) >= {*names, "row"}
    changes = {(row["node"], row["key"]) for row in plan["labels"] if row["before"] != row["after"]}
    assert changes == {(wrong, TIER_0)}

    version = cluster.api.expect("GET", NODES.path())["metadata"]["resourceVersion"]
    approved = cluster.toponaut("approve", plan["hash"])
    assert approved.code == ExitCode.OK, approved.err
    words = ("adopt", "--labels", "topograph", "--namespace", cluster.namespace)
    done = cluster.toponaut(*words)
    assert done.code == ExitCode.OK, done.err
    after = before | {wrong: before[leaves[1][1]]}
    assert cluster.labels(TIER_0) == after
    states = history(cluster, version)
    assert {node["metadata"]["name"] for node in states} == set(before)
    for node in states:
        name, labels = node["metadata"]["name"], node["metadata"]["labels"]
        assert labels[TIER_0] in {before[name], after[name]}
        assert labels[TIER_1] == "row"

    again = cluster.toponaut(*words)
    assert (again.code, again.out) == (ExitCode.OK, "there is no label of others to take over\n")
    with serving(cluster, tmp_path, *OFTEN):
        cluster.await_written(OUTPUT)
    assert cluster.labels(TIER_0) == after


def test_the_label_of_a_node_with_a_gang_waits(
    cluster: OutputCluster, leaves: list[tuple[str, ...]]
) -> None:
    wrong = leaves[1][0]
    label(cluster, [(*leaves[0], wrong), leaves[1][1:], *leaves[2:]])
    before = cluster.labels(TIER_0)
    pods = cluster.run_gang(wrong, leaves[0][0])
    words = ("adopt", "--labels", "topograph", "--namespace", cluster.namespace)
    held = cluster.toponaut(*words, "-o", "json").document
    assert held["waiting"] == [wrong]
    done = cluster.toponaut(*words, "--approve", held["hash"])
    assert done.code == ExitCode.OK, done.err
    assert cluster.labels(TIER_0) == before
    cluster.end_gang(pods)
    rest = cluster.toponaut(*words, "-o", "json").document
    assert {row["node"] for row in rest["labels"]} == {wrong}
    assert cluster.toponaut(*words, "--approve", rest["hash"]).code == ExitCode.OK
    assert cluster.labels(TIER_0) == before | {wrong: before[leaves[1][1]]}


def test_it_refuses_keys_that_no_output_writes(
    cluster: OutputCluster, leaves: list[tuple[str, ...]]
) -> None:
    label(cluster, leaves)
    cluster.choose({"type": "labels"})
    refused = cluster.toponaut("adopt", "--labels", f"{TIER_1},{TIER_0}")
    assert refused.code == ExitCode.USAGE
    assert f"no output writes {TIER_1}, {TIER_0}" in refused.err
