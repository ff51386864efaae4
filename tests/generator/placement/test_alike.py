"""Nodes share a code exactly where no pod of a job can tell them apart."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.placement.alike import contents, node_codes
from generator.placement.capacity import NodeSpec, build_snapshot
from generator.placement.engine import place
from generator.placement.problem import build_problem
from tests.generator.placement.documents import cluster, racks, request, workers

TREE = racks(4, 3, per_block=2)
FREE = st.sampled_from([-1, 0, 1, 2, 3, 2**40, 2**40 + 1, 2**61, -(2**61)])


@settings(max_examples=100, deadline=None)
@given(
    rows=st.lists(st.tuples(FREE, FREE, FREE, st.booleans()), min_size=7, max_size=7),
    asked=st.sampled_from([("gpu",), ("gpu", "memory"), ("gpu", "memory", "nothing-has-it"), ()]),
)
def test_it_tells_nodes_apart_by_what_pods_ask_for(
    rows: list[tuple[int, int, int, bool]], asked: tuple[str, ...]
) -> None:
    nodes = {}
    for at, (gpu, memory, cpu, schedulable) in enumerate(rows):
        free = {"gpu": gpu, "memory": memory, "cpu": cpu}
        nodes[f"n{at}"] = NodeSpec(f"n{at}", free=free, schedulable=schedulable)
    groups = [
        *workers(1, request=dict.fromkeys(asked, 2)),
        {"name": "leader", "count": 1, "request": dict.fromkeys(asked, 1)},
    ]
    codes = node_codes(build_problem(build_snapshot(TREE, nodes), request(groups=groups)))
    seen = [(*(row[: len({*asked} & {"gpu", "memory"})]), row[3]) for row in rows]
    for one in range(len(rows)):
        for other in range(one):
            assert (codes[one] == codes[other]) == (seen[one] == seen[other])


@pytest.mark.parametrize(
    ("spec", "alike"),
    [
        pytest.param({}, {0, 1, 2, 3, 4, 5, 6}, id="nodes that are alike share a code"),
        pytest.param(
            {"gang": "old"}, {0, 2, 3, 4, 5, 6}, id="a node with pods of the job does not"
        ),
        pytest.param(
            {"groups": workers(1, node_selector={"zone": ["a"]})},
            {0, 1, 2, 4, 5, 6},
            id="nor does a node that a selector leaves out",
        ),
        pytest.param(
            {"groups": workers(1, node_preference={"zone": "a"})},
            {0, 1, 2, 4, 5, 6},
            id="nor one that lacks a label wished for",
        ),
    ],
)
def test_it_knows_what_else_pods_see(spec: dict[str, object], alike: set[int]) -> None:
    nodes = {
        f"n{at}": NodeSpec(f"n{at}", {"slots": 2 if at == 1 else 1}, labels={"zone": zone})
        for at, zone in enumerate("aaabaaa")
    }
    codes = node_codes(build_problem(cluster(TREE, nodes, old=["n1"]), request(**spec)))
    assert {at for at in range(7) if codes[at] == codes[0]} == alike


def test_it_tells_units_apart_by_their_parts_and_nodes() -> None:
    snapshot = cluster(racks(2, 2, 1, 3, 2, 2, per_block=2))
    codes = node_codes(build_problem(snapshot, request()))
    inside = [contents(snapshot.levels, codes, 2, block) for block in range(3)]
    assert inside[0] == inside[2] != inside[1]


def test_it_places_pods_of_two_sizes_beside_an_overfull_node() -> None:
    nodes = {
        "n0": NodeSpec("n0", {"slots": 4, "memory": 4}),
        "n1": NodeSpec("n1", {"slots": 4, "memory": 4}, free={"slots": 4, "memory": -1}),
    }
    groups = [*workers(2, request={"slots": 3}), {"name": "more", "count": 2}]
    found = place(build_snapshot(racks(2), nodes), request(groups=groups, required="rack"))
    assert found.assignment == {"workers": ("n0", "n1"), "more": ("n0", "n1")}
