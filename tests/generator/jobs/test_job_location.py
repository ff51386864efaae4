"""`toponaut where`: the pods of a job, their location, and a better placement."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from generator.cli.exit_codes import ExitCode
from generator.jobs.running_jobs import find_job, parse_job_pod
from generator.simulation.replay.replay import build_tree_of_shape
from tests.generator.scenes import Ran, run
from topology.model.errors import ConfigError
from topology.model.tree import render_tree

GPU = "nvidia.com/gpu"
TREE = build_tree_of_shape("2x2x2")
"""Nodes node-1-1-1 to node-2-2-2: spines, leaves, nodes."""


def pod(name: str, node: str | None, *, gpus: int = 8, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return a pod of a Job; fields are of its metadata."""
    labels = {"batch.kubernetes.io/job-name": "train"} | fields.pop("labels", {})
    spec: dict[str, Any] = {"containers": [{"resources": {"requests": {GPU: gpus}}}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ml", "labels": labels} | fields,
        "spec": spec if node is None else spec | {"nodeName": node},
        "status": {"phase": "Running" if node else "Pending"},
    }


def ranked(name: str, node: str, rank: int) -> dict[str, Any]:
    return pod(name, node, annotations={"batch.kubernetes.io/job-completion-index": str(rank)})


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    file = tmp_path / "tree.json"
    file.write_text(json.dumps(render_tree(TREE)), encoding="utf-8")
    return file


def where(tree: Path, documents: object, *words: object, job: str = "train") -> Ran:
    pods = tree.parent / "pods.json"
    if isinstance(documents, list):
        documents = {"apiVersion": "v1", "kind": "List", "items": documents}
    pods.write_text(json.dumps(documents), encoding="utf-8")
    return run("where", job, "--tree", tree, "--pods", pods, *words)


SPREAD = [
    ranked("train-a", "node-2-1-1", 1),
    ranked("train-b", "node-1-1-1", 0),
    ranked("train-c", "node-1-1-2", 2),
]


def test_it_prints_the_location_of_a_job_in_the_order_of_ranks(tree: Path) -> None:
    found = where(tree, SPREAD, "-o", "json").document
    assert (found["job"], found["tier"]) == ("ml/train", "cluster")
    assert found["domains"] == {"node": 3, "leaf": 2, "spine": 2}
    assert found["crossings"] == {"leaf": 2, "spine": 2}
    assert [(row["name"], row["domain"]) for row in found["pods"]] == [
        ("train-b", "leaf-1-1"),
        ("train-a", "leaf-2-1"),
        ("train-c", "leaf-1-1"),
    ]


def test_it_prints_how_often_the_ring_over_the_ranks_leaves_a_domain(tree: Path) -> None:
    nodes = ("node-1-1-1", "node-1-2-1", "node-1-1-2", "node-1-2-2")
    job = [ranked(f"w{rank}", node, rank) for rank, node in enumerate(nodes)]
    printed = where(tree, job).out
    assert "RING OVER  RANKS FROM               LEAVES A LEAF  LEAVES A SPINE\n" in printed
    assert "pods       the indices of the pods  4 (fewest 2)   0\n" in printed
    assert where(tree, job, "-o", "json").document["ranks"] == [
        {
            "name": "pods",
            "ranksFrom": "the indices of the pods",
            "tiers": [
                {"tier": "leaf", "now": 4, "fewest": 2},
                {"tier": "spine", "now": 0, "fewest": 0},
            ],
        }
    ]


def test_the_ring_over_unknown_ranks_is_unknown(tree: Path) -> None:
    job = [pod("w1", "node-1-1-1"), pod("w2", "node-2-1-1")]
    assert "pods       unknown     -              -\n" in where(tree, job).out
    found = where(tree, job, "-o", "json").document["ranks"]
    assert found == [{"name": "pods", "ranksFrom": None, "tiers": []}]


def test_it_finds_a_placement_with_a_smaller_spread(tree: Path) -> None:
    better = where(tree, SPREAD, "-o", "json").document["better"]
    assert (better["tier"], better["moved"], better["proved"]) == ("spine", 1, True)
    assert better["domains"] == {"node": 3, "leaf": 2, "spine": 1}


def test_it_does_not_use_the_nodes_of_other_jobs(tree: Path) -> None:
    other = {"batch.kubernetes.io/job-name": "other"}
    nodes = ("node-1-2-1", "node-1-2-2", "node-2-1-2", "node-2-2-1")
    taken = [pod(f"o-{node}", node, labels=other) for node in nodes]
    found = where(tree, [*SPREAD, *taken], "-o", "json").document
    assert found["better"] is None


def test_it_finds_no_better_placement_than_the_best(tree: Path) -> None:
    near = [ranked("a", "node-1-1-1", 0), ranked("b", "node-1-1-2", 1)]
    ran = where(tree, near)
    assert ran.code == ExitCode.OK
    headline, header, row, _, ring, crossings, _, better = ran.out.splitlines()
    assert headline == "ml/train: 2 pods within one leaf; using 2 nodes, 1 leaf, 1 spine"
    assert header.split() == ["GROUP", "PODS", "DOMAIN", "NODES"]
    assert row.split() == ["pods", "0-1", "leaf-1-1", "node-1-1-[1-2]"]
    assert ring.split("  ")[0] == "RING OVER"
    assert crossings.split("  ")[-1].strip() == "0"
    assert better == "better: no closer place is free"


def test_it_reports_pending_pods_and_nodes_that_are_not_in_the_tree(tree: Path) -> None:
    ran = where(tree, [*SPREAD[:2], pod("w", None), pod("x", "elsewhere")])
    assert "1 on no node yet" in ran.out
    assert "not in the tree: elsewhere" in ran.out
    assert "better: within one spine, using 4 nodes, 2 leaves, 1 spine; " in ran.out
    assert "; 3 pods would move" in ran.out


def test_it_uses_the_capacity_of_the_nodes(tree: Path, tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.yaml"
    rows = [{"name": name, "capacity": {"slots": 8}} for name in TREE.nodes]
    nodes.write_text(json.dumps({"nodes": rows}), encoding="utf-8")
    halves = [pod(f"h{at}", node, gpus=4) for at, node in enumerate(("node-1-1-1", "node-2-1-1"))]
    found = where(tree, halves, "--nodes", nodes, "-o", "json").document
    assert found["better"]["tier"] == "node"
    other = pod("o", "node-1-1-1", gpus=5, labels={"batch.kubernetes.io/job-name": "o"})
    crowded = where(tree, [*halves, other], "--nodes", nodes, "-o", "json").document
    assert "node-1-1-1" not in crowded["better"]["assignment"]["pods"]


def test_it_counts_crossings_within_groups(tree: Path) -> None:
    def role(name: str, node: str) -> dict[str, Any]:
        return pod(name, node, labels={"volcano.sh/task-spec": name[0]})

    pods = [role("a1", "node-1-1-1"), role("a2", "node-1-1-2"), role("b1", "node-2-1-1")]
    found = where(tree, pods, "-o", "json").document
    assert found["crossings"] == {"leaf": 0, "spine": 0}
    assert {name: row["tier"] for name, row in found["groups"].items()} == {
        "a": "leaf",
        "b": "node",
    }


def test_it_reads_pods_as_a_mapping(tree: Path) -> None:
    found = where(tree, {"w-10": "node-1-2-1", "w-9": "node-1-1-1"}, "-o", "json").document
    assert (found["job"], found["tier"]) == ("train", "spine")
    assert [row["name"] for row in found["pods"]] == ["w-9", "w-10"]


def test_it_reads_running_gangs(tree: Path, tmp_path: Path) -> None:
    running = tmp_path / "running.yaml"
    gangs = [
        {"gang": "g", "pods": [{"node": "node-1-1-1"}, {"node": "node-2-2-2", "group": "ps"}]},
        {"gang": "h", "pods": [{"node": "node-1-1-2"}]},
    ]
    running.write_text(json.dumps(gangs), encoding="utf-8")
    found = run("where", "g", "--tree", tree, "--running", running, "-o", "json").document
    assert (found["tier"], set(found["groups"])) == ("cluster", {"pods", "ps"})
    assert found["better"]["tier"] == "leaf"
    assert "node-1-1-2" not in json.dumps(found["better"]["assignment"])


NAMES = [
    pytest.param("train", id="the label of its Job"),
    pytest.param("ml/train", id="its namespace and name"),
    pytest.param("Job.train", id="its owner with its kind"),
    pytest.param("pg", id="its group"),
]


@pytest.mark.parametrize("name", NAMES)
def test_it_finds_a_job_by(name: str) -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "controller": True}
    notes = {"scheduling.k8s.io/group-name": "pg"}
    found = parse_job_pod(pod("p", "n", ownerReferences=[owner], annotations=notes))
    assert found is not None
    assert [one.name for one in find_job(name, [found]).pods] == ["p"]


def test_it_ignores_pods_that_have_ended() -> None:
    assert parse_job_pod(pod("p", "n") | {"status": {"phase": "Succeeded"}}) is None


def test_it_requires_the_namespace_if_two_have_the_job() -> None:
    pods = [parse_job_pod(pod("p", "n", namespace=space)) for space in ("a", "b")]
    with pytest.raises(ConfigError, match="use a/train or b/train"):
        find_job("train", [one for one in pods if one is not None])


REFUSED = [
    pytest.param([], "give the source of pods: --pods, --running or --kube", id="no pods"),
    pytest.param(
        ["--pods", "x", "--running", "{tree}"], "give only one of --pods", id="pods twice"
    ),
    pytest.param(
        ["--pods", "{tree}", "--reports", "."], "--tree is already a tree", id="two trees"
    ),
    pytest.param(["--pods", "missing.json"], "missing.json", id="a file that is not there"),
]


@pytest.mark.parametrize(("words", "why"), REFUSED)
def test_it_refuses(tree: Path, words: list[str], why: str) -> None:
    ran = run("where", "train", "--tree", tree, *(word.format(tree=tree) for word in words))
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert why in ran.err


def test_it_reports_pods_that_it_cannot_read(tree: Path, tmp_path: Path) -> None:
    file = tmp_path / "pods.yaml"
    file.write_text("a: !!python/name:os.system\n", encoding="utf-8")
    ran = run("where", "train", "--tree", tree, "--pods", file)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert "is not accepted" in ran.err


def test_it_reports_that_an_empty_object_has_no_pod(tree: Path, tmp_path: Path) -> None:
    file = tmp_path / "pods.json"
    file.write_text("{}", encoding="utf-8")
    ran = run("where", "train", "--tree", tree, "--pods", file)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert f"{file}: no pod belongs to job 'train'" in ran.err


def test_it_lists_the_jobs_if_none_has_the_name(tree: Path) -> None:
    ran = where(tree, SPREAD, job="trian\x1b")
    assert ran.code == ExitCode.USAGE
    assert r"no pod belongs to job 'trian\x1b'; names of jobs: train" in ran.err


def test_it_skips_an_invalid_pod(tree: Path) -> None:
    broken = pod("bad", "node-1-1-1") | {"spec": {"containers": 1, "nodeName": "node-1-1-1"}}
    ran = where(tree, [*SPREAD, broken], "-o", "json")
    assert (ran.code, len(ran.document["pods"])) == (ExitCode.SKIPPED, 3)
    assert "Pod 'bad': spec.containers: expected a list" in ran.err
