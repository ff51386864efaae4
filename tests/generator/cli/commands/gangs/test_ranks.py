"""`toponaut ranks`: the ring of a job in the tree, and a better order as a file for launchers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from generator.cli.exit_codes import ExitCode
from generator.simulation.replay.replay import build_tree_of_shape
from tests.generator.scenes import Ran, run
from topology.model.tree import render_tree

TREE = build_tree_of_shape("2x2x2")
NODES = ("node-1-1-1", "node-2-1-1", "node-1-1-2", "node-2-1-2")


def ranked_pod(rank: int, node: str) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {
            "name": f"train-{rank}",
            "namespace": "ml",
            "labels": {
                "batch.kubernetes.io/job-name": "train",
                "batch.kubernetes.io/job-completion-index": str(rank),
            },
        },
        "spec": {
            "nodeName": node,
            "containers": [{"resources": {"requests": {"nvidia.com/gpu": "2"}}}],
        },
        "status": {"phase": "Running", "podIP": f"10.0.0.{rank}", "hostIP": f"10.1.0.{rank}"},
    }


@pytest.fixture
def job(tmp_path: Path) -> list[object]:
    """Return the words that name the job train on four nodes."""
    tree, pods = tmp_path / "tree.json", tmp_path / "pods.json"
    tree.write_text(json.dumps(render_tree(TREE)), encoding="utf-8")
    items = [ranked_pod(rank, node) for rank, node in enumerate(NODES)]
    pods.write_text(json.dumps({"kind": "List", "items": items}), encoding="utf-8")
    return ["train", "--tree", tree, "--pods", pods]


def test_it_compares_the_ring_with_the_best_order(job: list[object]) -> None:
    ran = run("ranks", *job)
    assert ran.out.splitlines() == [
        "ml/train, pods: 4 pods, ranks from the indices of the pods",
        "TIER   LEAVES A DOMAIN  FEWEST",
        "leaf   4                2",
        "spine  4                2",
        "best order: node-1-1-[1-2],node-2-1-[1-2]",
        (
            "This counts neighbors in a ring over the ranks. Trees and all-to-all have other best "
            "orders."
        ),
    ]


def test_it_prints_the_rings_of_parallel_groups(job: list[object]) -> None:
    (world,) = run("ranks", *job, "--tensor", 2, "--pipeline", 2, "-o", "json").document["worlds"]
    assert world["ranksFrom"] == "the indices of the pods"
    assert world["groups"] == [
        {"kind": "tensor", "groups": 4, "size": 2, "now": 0, "inTreeOrder": 0},
        {"kind": "data", "groups": 4, "size": 2, "now": 8, "inTreeOrder": 0},
        {"kind": "pipeline", "groups": 4, "size": 2, "now": 0, "inTreeOrder": 8},
    ]


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("ranks", "0 node-1-1-1\n1 node-1-1-1\n2 node-1-1-2\n3 node-1-1-2\n4 node-2-1-1\n"),
        ("hostfile", "node-1-1-1 slots=2\nnode-1-1-2 slots=2\nnode-2-1-1 slots=2\n"),
        ("rankfile", "rank 0=node-1-1-1 slot=0\nrank 1=node-1-1-1 slot=1\n"),
        ("slurm-hostfile", "node-1-1-1\nnode-1-1-1\nnode-1-1-2\n"),
        ("dlrover", '{\n  "10.0.0.0": "leaf-1-1",\n  "10.1.0.0": "leaf-1-1",\n'),
    ],
)
def test_it_prints_the_best_order_for_launchers(
    form: str, expected: str, job: list[object]
) -> None:
    assert run("ranks", *job, "-o", form).out.startswith(expected)


def hosts(job: list[object], names: str, *words: object) -> Ran:
    return run("ranks", "--hosts", names, *job[1:3], *words)


def test_it_orders_a_list_of_nodes(job: list[object]) -> None:
    ran = hosts(job, "node-2-1-[1-2],node-1-1-1,node-9", "-o", "hostfile", "--per-pod", 8)
    assert ran.out == (
        "node-1-1-1 slots=8\nnode-2-1-1 slots=8\nnode-2-1-2 slots=8\nnode-9 slots=8\n"
    )


def test_an_order_that_is_best_is_called_so(job: list[object]) -> None:
    assert "No other order crosses fewer domains." in hosts(job, "node-1-1-[1-2]").out


@pytest.mark.parametrize(
    ("names", "words", "problem"),
    [
        ("node-[1", (), "no name at character 1"),
        ("node-1-1-1", ("-o", "dlrover"), "no address is known for node-1-1-1"),
        (
            "node-1-1-1,a b",
            ("-o", "hostfile"),
            "a host list cannot hold these names of nodes: 'a b'",
        ),
        ("node-1-1-[1-2]", ("--tensor", 3), "tensor 3 x data 1 x pipeline 1 is 3"),
    ],
    ids=["a broken list", "no address", "a name with a space", "sizes that do not fit"],
)
def test_bad_input_is_refused(
    names: str, words: tuple[object, ...], problem: str, job: list[object]
) -> None:
    ran = hosts(job, names, *words)
    assert (ran.code, problem in ran.err) == (ExitCode.USAGE, True), ran.err


@pytest.mark.parametrize("words", [(), ("train", "--hosts", "node-1-1-1")])
def test_it_needs_a_job_or_hosts(words: tuple[object, ...], job: list[object]) -> None:
    ran = run("ranks", *words, *job[1:])
    assert (ran.code, "give JOB or --hosts" in ran.err) == (ExitCode.USAGE, True)
