"""Requests: what is parsed, what is refused, and the path in the error."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.placement.presets import Preset
from generator.placement.request import parse_request
from tests.effort import examples
from tests.generator.placement.documents import document, request, workers
from topology.model.errors import PlacementRequestError


def test_it_fills_in_the_defaults() -> None:
    found = request()
    assert (found.preset, found.gang, found.least) == (Preset.OPTIMAL, "self", 0)
    assert (found.plane, found.across_islands, found.deadline_s) == ("compute", False, None)
    assert found.groups[0].request == (("slots", 1),)
    assert found.groups[0].least == 2


def test_it_takes_a_tier_by_its_integer() -> None:
    assert request(required=1, strategies=[[2, "rack"]]).strategies == (("2", "rack"),)


@pytest.mark.parametrize(
    ("spec", "field", "problem"),
    [
        pytest.param(
            {"groups": workers(-1)},
            "groups[0].count",
            "expected a non-negative integer, got -1",
            id="a negative count",
        ),
        pytest.param(
            {"groups": workers(0)},
            "groups[0].count",
            "expected a positive integer, got 0",
            id="no pods",
        ),
        pytest.param(
            {"groups": [{"name": "a", "count": True}]},
            "groups[0].count",
            "expected an integer, got True",
            id="a boolean count",
        ),
        pytest.param(
            {"groups": workers(2, min=3)},
            "groups[0].min",
            "expected at most 2, the count, got 3",
            id="a minimum above the count",
        ),
        pytest.param({"min": 3}, "min", "expected at most 2, got 3", id="a minimum above all pods"),
        pytest.param(
            {"groups": workers(1) + workers(2)},
            "groups[1].name",
            "two groups are named workers",
            id="two groups with one name",
        ),
        pytest.param(
            {"groups": [{"name": "a"}]},
            "groups[0].count",
            "expected either count or children",
            id="neither count nor children",
        ),
        pytest.param({"groups": []}, "groups", "expected at least 1 item", id="no groups at all"),
        pytest.param({"colour": 1}, "colour", "is not a known field", id="an unknown field"),
        pytest.param({"required": True}, "required", "expected a text", id="a boolean tier"),
        pytest.param(
            {"groups": workers(1, request={"gpu": -1})},
            "groups[0].request.gpu",
            "expected a non-negative integer, got -1",
            id="a negative quantity",
        ),
        pytest.param(
            {"groups": workers(1, slices=[{"size": "x\n"}])},
            "groups[0].slices[0].size",
            r"expected an integer, got 'x\n'",
            id="foreign text shown escaped",
        ),
        pytest.param(
            {"preset": "best"}, "preset", "expected 'koordinator'", id="an unknown preset"
        ),
    ],
)
def test_it_names_the_invalid_field(spec: dict[str, Any], field: str, problem: str) -> None:
    with pytest.raises(PlacementRequestError) as caught:
        request(**spec)
    assert caught.value.field == field
    assert caught.value.problem.startswith(problem)
    assert str(caught.value).startswith(f"{field}: {problem}")


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        pytest.param({"kind": "Pod"}, "kind", id="another kind"),
        pytest.param({"apiVersion": "v1"}, "apiVersion", id="another version"),
        pytest.param({"spec": None}, "spec", id="no mapping below spec"),
        pytest.param({"extra": 1}, "extra", id="an unknown top-level field"),
    ],
)
def test_it_refuses_documents_of_another_kind(changed: dict[str, Any], field: str) -> None:
    with pytest.raises(PlacementRequestError) as caught:
        parse_request(document() | changed)
    assert caught.value.field == field


def nested(depth: int) -> dict[str, Any]:
    """Return a group inside this many groups."""
    row: dict[str, Any] = {"name": "leaf", "count": 1}
    for index in range(depth):
        row = {"name": f"g{index}", "children": [row]}
    return row


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param({"groups": [nested(20)]}, "children", id="groups nested too deeply"),
        pytest.param(
            {"groups": [{"name": "a", "min": 3, "children": workers(1)}]},
            "groups[0].min",
            id="more members than there are",
        ),
        pytest.param(
            {"groups": [{"name": "a", "children": [{"name": "a", "count": 1}]}]},
            "groups[0].children[0].name",
            id="one name at two levels",
        ),
        pytest.param(
            {"groups": [{"name": "a", "node_selector": {"x": "y"}, "children": workers(1)}]},
            "groups[0].node_selector",
            id="a selector on a group with children",
        ),
        pytest.param(
            {"groups": [{"name": "a", "count": 1, "leader_of": "b", "required": "rack"}]},
            "groups[0].leader_of",
            id="a leader without workers",
        ),
        pytest.param(
            {"affinity": {"attract": [["workers", "chief"]]}}, "affinity", id="an unknown role"
        ),
        pytest.param(
            {"affinity": {"repel": [["workers", "workers"]]}}, "affinity", id="a role twice"
        ),
        pytest.param(
            {"traffic": [["workers", "ps", 1]]}, "traffic[0]", id="traffic with an unknown group"
        ),
        pytest.param(
            {"options": {"weight": {"n0": -1}}}, "options.node_weights.n0", id="a negative weight"
        ),
        pytest.param(
            {"options": {"node_weights": {"n0": 1}, "score_weight": 1.0}},
            "options.score_weight",
            id="weights of two presets",
        ),
        pytest.param(
            {"groups": [{"name": "p", "count": 1, "children": workers(1)}]},
            "groups[0].count",
            id="pods beside children",
        ),
        pytest.param(
            {
                "groups": [
                    {"name": "a", "count": 1, "leader_of": "b", "required": "rack"},
                    {"name": "b", "count": 1, "leader_of": "a", "required": "rack"},
                ]
            },
            "groups[1].leader_of",
            id="two groups that lead each other",
        ),
        pytest.param(
            {"groups": workers(1, leader_of="workers")},
            "groups[0].leader_of",
            id="a group that leads itself",
        ),
        pytest.param(
            {"groups": [{"name": "set", "children": workers(2), "max_per_node": 1}]},
            "groups[0].max_per_node",
            id="a limit per node of a group with children",
        ),
        pytest.param(
            {"groups": workers(2, spread={"rack": {"min": 3}})},
            "groups[0].spread.rack.min",
            id="more domains than pods",
        ),
        pytest.param(
            {"groups": workers(4, spread={"rack": {"min": 3, "max": 2}})},
            "groups[0].spread.rack.max",
            id="fewer domains at most than at least",
        ),
    ],
)
def test_it_names_the_field_of_a_contradiction(spec: dict[str, Any], field: str) -> None:
    with pytest.raises(PlacementRequestError) as caught:
        request(**spec)
    assert field in caught.value.field


def test_it_flattens_nested_groups() -> None:
    found = request(
        groups=[
            {
                "name": "replica",
                "required": "rack",
                "min": 1,
                "children": [{"name": "a", "count": 1}, {"name": "b", "count": 2}],
            },
            {"name": "leader", "count": 1, "required": "block", "leader_of": "workers"},
            *workers(3),
        ]
    )
    assert [group.name for group in found.groups] == ["a", "b", "leader", "workers"]
    assert [group.is_optional for group in found.groups] == [True, True, False, False]
    assert [(row.groups, row.required, row.least) for row in found.sets] == [
        ((0, 1), "rack", 1),
        ((2, 3), "block", 2),
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
NAMES = st.sampled_from(["groups", "required", "strategies", "min", "preset", "max_domains"])


@settings(max_examples=examples(60))
@given(spec=st.dictionaries(NAMES, JSON))
def test_it_raises_nothing_but_its_own_error(spec: dict[str, Any]) -> None:
    texts = ["read"]
    try:
        request(**spec)
    except PlacementRequestError as error:
        texts.append(str(error))
    assert texts[-1].isprintable()


@pytest.mark.parametrize("required", [None, "rack"])
def test_a_child_with_a_leader_counts_as_one_child(required: str | None) -> None:
    leader = {"name": "leader", "count": 1, "leader_of": "workers", "required": required}
    pair = {"name": "pair", "children": [leader, {"name": "workers", "count": 1}]}
    parent = {"name": "parent", "children": [pair, {"name": "rest", "count": 1}]}
    request = parse_request(document(groups=[parent]))
    (found,) = (one for one in request.sets if one.name == "parent")
    assert found.least == 2, "both children are needed"
