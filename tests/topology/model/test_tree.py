"""The tree: built from domains in any order, rendered, parsed back, and refused if invalid."""

import copy
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from topology.model.errors import ConfigError, InvariantError
from topology.model.tree import (
    DomainSpec,
    TopologyTree,
    Unplaced,
    build_tree,
    host_partitions,
    parse_tree,
    render_tree,
)

SPECS = [
    DomainSpec("leaf-10", 1, "spine", ("n10", "n2")),
    DomainSpec("leaf-2", 1, "spine", ("n1",), ("sw-2",), margin=1 / 3),
    DomainSpec("spine", 2, "core", (), ("sp-1", "sp-2")),
    DomainSpec("shallow", 1, "core", ("n3",)),
    DomainSpec("core", 3, None),
    DomainSpec("alone", 1, None, ("n4",)),
]
TIERS = ("leaf", "spine", "core")
LEFT = [Unplaced("n9", "no link"), Unplaced("n5", "undecided")]


def tree() -> TopologyTree:
    return build_tree(SPECS, tiers=TIERS, unplaced=LEFT)


def test_it_arranges_domains_in_tree_order() -> None:
    built = tree()
    assert built.nodes == ("n4", "n3", "n1", "n2", "n10")
    assert [domain.name for domain in built.domains] == [
        "alone",
        "shallow",
        "leaf-2",
        "leaf-10",
        "spine",
        "core",
    ]
    spine = built.domains[4]
    assert (spine.children, spine.parent) == ((2, 3), 5)
    assert built.nodes_of(spine) == ("n1", "n2", "n10")


def test_it_ignores_the_order_of_its_input() -> None:
    assert build_tree(SPECS[::-1], tiers=TIERS, unplaced=LEFT[::-1]) == tree()


def test_it_lists_all_nodes_and_the_partition_of_each_tier() -> None:
    assert tree().all_nodes == ("n1", "n10", "n2", "n3", "n4", "n5", "n9")
    assert host_partitions(tree())[1:] == [
        frozenset({frozenset({"n1", "n2", "n10"})}),
        frozenset({frozenset({"n1", "n2", "n3", "n10"})}),
    ]


@pytest.mark.parametrize(
    ("name", "tier"),
    [
        ("leaf", 1),
        ("core", 3),
        ("2", 2),
        ("02", 2),
        ("0", None),
        ("4", None),
        ("hall", None),
        ("-1", None),
        ("9" * 5000, None),
    ],
)
def test_it_finds_a_tier_by_name_or_number(name: str, tier: int | None) -> None:
    assert tree().tier_of(name) == tier


def test_it_parses_what_it_renders() -> None:
    document = json.loads(json.dumps(render_tree(tree())))
    assert parse_tree(document) == tree()
    assert document["tiers"][0]["domains"][1]["margin"] == 0.3333


@pytest.mark.parametrize(
    ("specs", "problem"),
    [
        pytest.param([SPECS[5], SPECS[5]], "two domains named", id="two domains with one name"),
        pytest.param([SPECS[0]], "unknown parent", id="an unknown parent"),
        pytest.param([DomainSpec("a", 1, "b"), DomainSpec("b", 1, "a")], "not above", id="a cycle"),
        pytest.param(
            [DomainSpec("a", 1, None, ("n1",)), DomainSpec("b", 1, None, ("n1",))],
            "in two domains",
            id="a node in two domains",
        ),
        pytest.param([DomainSpec("a", 1, None, ("n9",))], "unplaced", id="placed and unplaced"),
    ],
)
def test_it_refuses_domains_that_are_not_a_forest(specs: list[DomainSpec], problem: str) -> None:
    with pytest.raises(InvariantError, match=problem):
        build_tree(specs, tiers=TIERS, unplaced=LEFT)


def edited(edit: Callable[[Any], object]) -> Any:  # noqa: ANN401 - a document to spoil
    document = copy.deepcopy(render_tree(tree()))
    edit(document)
    return document


def row(document: dict[str, Any], tier: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = document["tiers"][tier]["domains"][0]
    return found


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        pytest.param([], "list of objects", id="a list"),
        pytest.param({}, "expected kind", id="an empty document"),
        pytest.param(edited(lambda d: d.update(kind="Pod")), "expected kind", id="another kind"),
        pytest.param(edited(lambda d: d.pop("tiers")), "tiers", id="no tiers"),
        pytest.param(
            edited(lambda d: d["tiers"][0].update(tier=7)), "numbered", id="a tier number too high"
        ),
        pytest.param(
            edited(lambda d: row(d).update(nodes="abc")), "expected a list", id="text for a list"
        ),
        pytest.param(
            edited(lambda d: row(d).update(nodes=[1])), "expected text", id="a number for a name"
        ),
        pytest.param(
            edited(lambda d: row(d).update(margin=10**400)), "too large", id="a huge margin"
        ),
        pytest.param(edited(lambda d: row(d).update(margin=2)), "margin", id="a margin above 1"),
        pytest.param(
            edited(lambda d: row(d).update(parent="no\none")), r"no\\none", id="an unknown parent"
        ),
        pytest.param(
            edited(lambda d: d["unplaced"][0].update(node="n1")), "unplaced", id="placed twice"
        ),
    ],
)
def test_it_refuses_an_invalid_document(document: Any, problem: str) -> None:  # noqa: ANN401 - anything
    with pytest.raises(ConfigError, match=problem):
        parse_tree(document)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@settings(max_examples=examples(150))
@given(st.data())
def test_it_raises_nothing_but_config_errors_on_any_document(data: st.DataObject) -> None:
    document: Any = render_tree(tree())
    target = document
    for _ in range(data.draw(st.integers(0, 4))):
        keys = list(target) if isinstance(target, dict) else list(range(len(target)))
        inner = [key for key in keys if isinstance(target[key], dict | list) and target[key]]
        if not inner:
            break
        target = target[data.draw(st.sampled_from(inner))]
    keys = list(target) if isinstance(target, dict) else list(range(len(target)))
    target[data.draw(st.sampled_from(keys))] = data.draw(JSON)
    with suppress(ConfigError):
        parsed = parse_tree(document)
        assert parse_tree(render_tree(parsed)) == parsed
