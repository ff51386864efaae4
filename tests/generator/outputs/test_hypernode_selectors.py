"""Members by patterns and labels: what they select, and problems of sets on real nodes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.outputs.hypernode.lint import (
    EFFECTS,
    ProblemKind,
    find_set_problems,
    resolve_selectors,
)
from generator.outputs.hypernode.model import HyperNode, parse_manifest, render_manifest
from generator.outputs.hypernode.selectors import parse_selector

NODES = {
    "node-1": {"rack": "r1", "gpu": "a"},
    "node-2": {"rack": "r1"},
    "node-10": {"rack": "r2", "gpu": "b"},
}


def exact(name: str) -> dict[str, Any]:
    return {"exactMatch": {"name": name}}


def regex(pattern: object) -> dict[str, Any]:
    return {"regexMatch": {"pattern": pattern}}


def labels(*rows: tuple[str, str, list[str]], **values: str) -> dict[str, Any]:
    expressions = [{"key": key, "operator": word, "values": found} for key, word, found in rows]
    return {"labelMatch": {"matchLabels": values, "matchExpressions": expressions}}


def hypernode(name: str, *selectors: object, tier: int = 1, kind: str = "Node") -> HyperNode:
    rows = [{"type": kind, "selector": selector} for selector in selectors]
    manifest = {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {"tier": tier, "members": rows},
    }
    return parse_manifest(manifest)


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        (regex("node-1"), ("node-1", "node-10")),
        (regex("^node-1$"), ("node-1",)),
        (labels(rack="r1"), ("node-1", "node-2")),
        (labels(("rack", "NotIn", ["r1"])), ("node-10",)),
        (labels(("gpu", "Exists", []), rack="r1"), ("node-1",)),
        (labels(("gpu", "DoesNotExist", [])), ("node-2",)),
        (labels(), ()),
    ],
)
def test_it_selects_what_volcano_selects(
    selector: dict[str, Any], selected: tuple[str, ...]
) -> None:
    parsed = parse_selector(selector, is_child=False)
    assert parsed.select(NODES).nodes == selected
    assert resolve_selectors(hypernode("a", selector), NODES).nodes == selected


@pytest.mark.parametrize(
    ("selector", "problem"),
    [
        (None, "no selector"),
        ({}, "none of"),
        (regex("a") | labels(rack="r1"), "several of"),
        (regex(""), "expected text"),
        (regex(["a"]), "expected text"),
        (regex("(?=a)"), "invalid perl operator"),
        ({"regexMatch": "a"}, "expected an object"),
        (labels(), "is empty"),
        ({"labelMatch": {"matchLabels": ["a"]}}, "expected a label selector"),
        ({"labelMatch": {"matchExpressions": ["a"]}}, "expected objects"),
        (labels(("a", "Like", ["b"])), "unknown operator"),
        (labels(("a", "In", [])), "needs values"),
        (labels(("a", "Exists", ["b"])), "takes no values"),
        (labels(("a b", "Exists", [])), "no label key"),
        (exact("n1") | regex("^n1$"), "several of"),
        (labels(rack="a b"), "'a b' is no value of a label"),
        (labels(("rack", "In", ["r" * 64])), "is no value of a label"),
        ({"labelMatch": {"matchLabels": {"rack": 1}}}, "key 'rack': the value 1 is no text"),
    ],
)
def test_it_refuses_invalid_selectors(selector: object, problem: str) -> None:
    parsed = parse_selector(selector, is_child=False)
    selection = parsed.select(NODES)
    assert problem in selection.problem
    assert selection.nodes == ()
    kinds = [row.kind for row in find_set_problems([hypernode("a", selector)])]
    assert kinds == [ProblemKind.INVALID_SELECTOR]


SETS = [
    pytest.param(
        [hypernode("a", regex("node-1$")), hypernode("b", regex("node-([2-9]|10)$"))], [], id="good"
    ),
    pytest.param(
        [hypernode("a", regex("node-1")), hypernode("b", exact("node-2"), exact("node-10"))],
        [
            (ProblemKind.SHARED_NODE, "node node-10"),
            (ProblemKind.BROAD_PATTERN, "a"),
        ],
        id="a pattern that is not anchored",
    ),
    pytest.param(
        [hypernode("a", regex("node")), hypernode("b", exact("node-2"))],
        [(ProblemKind.SHARED_NODE, "node node-2"), (ProblemKind.BROAD_PATTERN, "a")],
        id="a pattern that selects every node",
    ),
    pytest.param(
        [hypernode("a", regex("node")), hypernode("b", regex("rack"))],
        [(ProblemKind.EMPTY_SELECTION, "b"), (ProblemKind.BROAD_PATTERN, "a")],
        id="a pattern that selects nothing",
    ),
    pytest.param(
        [hypernode("a", labels(rack="r1")), hypernode("b", exact("gone"))],
        [
            (ProblemKind.UNKNOWN_NODE, "b"),
            (ProblemKind.EMPTY_SELECTION, "b"),
            (ProblemKind.UNLISTED_NODES, "nodes"),
        ],
        id="a leaf without a node of the cluster",
    ),
    pytest.param(
        [
            hypernode("a", regex("node")),
            hypernode("top", regex("a"), exact("gone"), tier=2, kind="HyperNode"),
        ],
        [(ProblemKind.MISSING_CHILD, "top"), (ProblemKind.INEXACT_CHILD, "top")],
        id="a HyperNode by a pattern",
    ),
]


@pytest.mark.parametrize(("hypernodes", "expected"), SETS)
def test_it_reports_what_selectors_do_on_the_nodes(
    hypernodes: list[HyperNode], expected: list[tuple[ProblemKind, str]]
) -> None:
    found = find_set_problems(hypernodes, NODES)
    assert [(row.kind, row.subject) for row in found] == expected
    assert find_set_problems(hypernodes[::-1], NODES) == found


POLICY = [
    pytest.param(hypernode("a", regex(r"^node\(1\)$")), "", id="escaped brackets in pairs"),
    pytest.param(hypernode("a", regex(r"^node\(1$")), "( and )", id="an escaped bracket alone"),
    pytest.param(hypernode("a", regex("^node[(]1$")), "( and )", id="a bracket in a set"),
    pytest.param(hypernode("a", regex("^node[[]1$")), "[ and ]", id="a bracket in its own set"),
    pytest.param(hypernode("a", regex("^node-{1,2}[}]$")), "{ and }", id="a brace too many"),
    pytest.param(hypernode("a", regex(r"^node\)1$")), "", id="a closing bracket alone"),
    pytest.param(hypernode("a", regex("^node-([0-9]{1,3})$")), "", id="brackets of each kind"),
    pytest.param(hypernode("a", exact("n" * 63)), "", id="a name of 63 characters"),
    pytest.param(hypernode("a", exact("n" * 64)), "more than 63", id="a name of 64 characters"),
    pytest.param(
        hypernode("a", exact("n" * 64), kind="HyperNode", tier=2), "more than 63", id="a long child"
    ),
]


@pytest.mark.parametrize(("row", "refused"), POLICY)
def test_it_names_what_the_admission_policy_refuses(row: HyperNode, refused: str) -> None:
    found = [
        problem.text
        for problem in find_set_problems([row])
        if problem.kind is ProblemKind.ADMISSION_POLICY
    ]
    assert [refused in text for text in found] == ([True] if refused else [])


def test_each_kind_says_what_follows() -> None:
    assert set(EFFECTS) == set(ProblemKind)


ANY = st.recursive(
    st.one_of(st.none(), st.integers(0, 3), st.text("a(\x1b*", max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(
            st.sampled_from(
                ["regexMatch", "labelMatch", "pattern", "matchLabels", "matchExpressions", "key"]
            ),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=8,
)


@given(ANY, st.booleans())
def test_it_reads_any_selector(selector: object, is_child: bool) -> None:  # noqa: FBT001 - hypothesis
    parsed = parse_selector(selector, is_child=is_child)
    assert str(parsed).isprintable()
    selection = parsed.select(NODES)
    assert selection.problem.isprintable()
    assert set(selection.nodes) <= set(NODES)


def test_a_resolved_hypernode_has_exact_members_only() -> None:
    made = resolve_selectors(hypernode("a", regex("node-1$"), exact("x")), NODES)
    assert parse_manifest(render_manifest(made)) == made
    assert (made.nodes, made.selectors) == (("node-1", "x"), ())
