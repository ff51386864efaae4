"""`toponaut capacity`: what is free in each domain, and how many gangs of a size fit there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from generator.simulation.replay.replay import build_tree_of_shape
from tests.generator.scenes import run
from topology.model.tree import render_tree

TREE = build_tree_of_shape("2x2x2")
"""Nodes node-1-1-1 to node-2-2-2: spines, leaves, nodes."""


@pytest.fixture
def cluster(tmp_path: Path) -> list[object]:
    """Return the options of a cluster with nodes of 8 GPUs, on two of which gangs run."""
    tree, nodes, running = (tmp_path / name for name in ("tree.json", "nodes.json", "running.json"))
    tree.write_text(json.dumps(render_tree(TREE)), encoding="utf-8")
    rows: list[dict[str, object]] = [
        {"name": name, "capacity": {"nvidia.com/gpu": 8}} for name in TREE.nodes
    ]
    rows[-1]["schedulable"] = False
    nodes.write_text(json.dumps({"nodes": rows}), encoding="utf-8")
    gang = {
        "gang": "llama",
        "pods": [
            {"node": "node-1-1-1", "request": {"nvidia.com/gpu": 8}},
            {"node": "node-1-1-2", "request": {"nvidia.com/gpu": 2}},
        ],
    }
    running.write_text(json.dumps([gang]), encoding="utf-8")
    return ["--tree", tree, "--nodes", nodes, "--running", running]


def test_it_prints_the_freest_domains_of_each_tier_first(cluster: list[object]) -> None:
    ran = run("capacity", *cluster)
    assert ran.out.splitlines() == [
        "TIER   DOMAIN    NODES  FREE GPUS  FREE NODES  GANGS OF 8",
        "leaf   leaf-1-2  2      16         2           2",
        "leaf   leaf-2-1  2      16         2           2",
        "leaf   leaf-2-2  2      8          1           1",
        "leaf   leaf-1-1  2      6          0           0",
        "spine  spine-2   4      24         3           3",
        "spine  spine-1   4      22         2           2",
        "6 domains; free counts nvidia.com/gpu",
    ], ran.err
    csv = run("capacity", *cluster, "-o", "csv").out
    assert csv.startswith("tier,domain,nodes,free,free nodes,gangs")


@pytest.mark.parametrize(
    ("size", "gangs"),
    [(2, [8, 8, 4, 3]), (6, [2, 2, 1, 1]), (16, [1, 1, 0, 0]), (17, [0, 0, 0, 0])],
)
def test_it_counts_gangs_of_a_size(size: int, gangs: list[int], cluster: list[object]) -> None:
    words = ("--tier", "leaf", "--slots", size, "-o", "json")
    rows = run("capacity", *cluster, *words).document["domains"]
    assert [row["gangs"] for row in rows] == gangs


def test_it_refuses_a_tier_that_the_tree_lacks(cluster: list[object]) -> None:
    ran = run("capacity", *cluster, "--tier", "rack")
    assert (ran.code, "expected one of leaf, spine" in ran.err) == (ExitCode.USAGE, True)


def test_it_says_where_no_list_gives_the_capacity(cluster: list[object]) -> None:
    ran = run("capacity", *cluster[:2])
    assert "no node list: each node counts as one slot" in ran.err
