"""Requests: what is read, what is refused and at which path."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.placement.presets import Preset
from generator.placement.request import UnsupportedRequest, parse_request
from tests.generator.placement.documents import document, request, workers
from topology.errors import PlacementRequestError


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
            "expected a positive integer, got -1",
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
            "expected at most the count 2, got 3",
            id="a minimum above the count",
        ),
        pytest.param({"min": 3}, "min", "expected at most 2, got 3", id="a minimum above all pods"),
        pytest.param(
            {"groups": workers(1) + workers(2)},
            "groups[1].name",
            "two groups named workers",
            id="two groups of one name",
        ),
        pytest.param(
            {"groups": [{"name": "a"}]},
            "groups[0].count",
            "expected either count or children",
            id="neither count nor children",
        ),
        pytest.param(
            {"groups": []}, "groups", "expected at least 1 of them", id="no groups at all"
        ),
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
def test_it_names_the_field_that_is_wrong(spec: dict[str, Any], field: str, problem: str) -> None:
    with pytest.raises(PlacementRequestError) as caught:
        request(**spec)
    assert not isinstance(caught.value, UnsupportedRequest)
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


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param({"preset": "kueue"}, "preset", id="another system's preset"),
        pytest.param({"preemption": "topologyFirst"}, "preemption", id="eviction"),
        pytest.param({"traffic": [["workers", "workers", 1]]}, "traffic", id="traffic"),
        pytest.param({"sort": [{"resource": "cpu"}]}, "sort", id="sort rules"),
        pytest.param({"affinity": {"repel": [["workers"]]}}, "affinity", id="roles"),
        pytest.param(
            {"groups": [{"name": "a", "children": [{"name": "b", "count": 1}]}]},
            "groups[0].children",
            id="nested groups",
        ),
        pytest.param(
            {"groups": workers(2, slices=[{"size": 1, "placement": "consolidate"}])},
            "groups[0].slices[0].placement",
            id="consolidated slices",
        ),
        pytest.param(
            {"groups": workers(2, slices=[{"size": 1, "min": 1}])},
            "groups[0].slices[0].min",
            id="whole slices as a minimum",
        ),
        pytest.param(
            {"groups": [*workers(2, multiple_of={"rack": 2}), {"name": "b", "count": 1}]},
            "groups[0].multiple_of",
            id="multiples beside another group",
        ),
        pytest.param(
            {
                "groups": [
                    *workers(2, slices=[{"size": 2, "tier": "rack", "placement": "spread"}]),
                    {"name": "b", "count": 1},
                ]
            },
            "groups[0].slices",
            id="spread slices beside another group",
        ),
    ],
)
def test_it_tells_what_it_does_not_support_yet(spec: dict[str, Any], field: str) -> None:
    with pytest.raises(UnsupportedRequest) as caught:
        request(**spec)
    assert caught.value.field == field


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
NAMES = st.sampled_from(["groups", "required", "strategies", "min", "preset", "max_domains"])


@given(spec=st.dictionaries(NAMES, JSON))
def test_it_raises_nothing_but_its_own_error(spec: dict[str, Any]) -> None:
    texts = ["read"]
    try:
        request(**spec)
    except PlacementRequestError as error:
        texts.append(str(error))
    assert texts[-1].isprintable()
