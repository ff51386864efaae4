"""Requests and answers survive the conversion to a message and back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from generator.placement import wire
from generator.placement.answer import Placement, render_placement
from generator.placement.presets import Preset
from generator.placement.request import parse_request
from generator.rpc.messages.answers import decode_placement, encode_placement
from generator.rpc.messages.request_documents import render_request
from generator.rpc.messages.requests import decode_request, encode_request
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from tests.effort import examples
from tests.generator.rpc.strategies import documents, placements
from topology.model.errors import PlacementRequestError
from topology.model.tree import API_VERSION


def spec_of(**fields: Any) -> pb.PlacementSpec:  # noqa: ANN401 - any field
    fields.setdefault("groups", [pb.Group(name="w", count=1)])
    return pb.PlacementSpec(**fields)


@settings(max_examples=examples(60))
@given(documents())
def test_it_keeps_a_request(document: dict[str, Any]) -> None:
    request = parse_request(document)
    sent = encode_request(request).SerializeToString()
    assert decode_request(pb.PlacementSpec.FromString(sent)) == request


@settings(max_examples=examples(60))
@given(documents())
def test_it_renders_a_document_that_parses_to_the_same_request(document: dict[str, Any]) -> None:
    request = parse_request(document)
    assert parse_request(render_request(request)) == request


def test_it_keeps_every_field_of_a_document() -> None:
    layer = {"size": 1, "tier": "leaf"}
    spread = {"leaf": {"min": 1, "max": 2}}
    group = {"name": "a", "count": 1, "required": "leaf", "leader_of": "b", "slices": [layer]}
    group |= {"spread": spread, "exclusive": "leaf", "max_per_node": 1}
    parent = {"name": "p", "children": [group, {"name": "b", "count": 1}]}
    rest = {
        "required": "spine",
        "exclusive": "leaf",
        "deadline_s": 1.0,
        "options": {"weight": {"n": 1}},
    }
    spec = {"groups": [parent], "sort": [{"resource": "gpu"}], **rest}
    document = {"apiVersion": API_VERSION, "kind": "PlacementRequest", "spec": spec}
    found = render_request(parse_request(document))["spec"]
    (outer,) = found["groups"]
    inner = outer["children"][0]
    unsaid = {"arguments"}  # they change no placement
    assert set(found) == set(wire.Spec.model_fields)
    assert set(outer) | set(inner) == set(wire.GroupRow.model_fields)
    assert inner["spread"] == spread
    assert set(inner["slices"][0]) == set(wire.LayerRow.model_fields)
    assert set(found["sort"][0]) == set(wire.SortRow.model_fields)
    assert set(found["affinity"]) == set(wire.AffinityRow.model_fields)
    assert set(found["options"]) == set(wire.OptionsRow.model_fields) - unsaid


@settings(max_examples=examples(60))
@given(placements)
def test_it_keeps_an_answer_and_its_order(placement: Placement) -> None:
    sent = encode_placement(placement).SerializeToString()
    back = decode_placement(pb.Placement.FromString(sent))
    assert back == placement
    assert json.dumps(render_placement(back)) == json.dumps(render_placement(placement))


def test_it_fills_in_the_same_defaults_as_a_document() -> None:
    document = {
        "apiVersion": API_VERSION,
        "kind": "PlacementRequest",
        "spec": {"groups": [{"name": "w", "count": 1}]},
    }
    assert decode_request(spec_of()) == parse_request(document)


@pytest.mark.parametrize("preset", Preset)
def test_it_knows_every_preset(preset: Preset) -> None:
    number = pb.Preset.Value(f"PRESET_{preset.name}")
    assert decode_request(spec_of(preset=number)).preset is preset


REFUSED = [
    pytest.param(spec_of(groups=[]), "groups", id="no group"),
    pytest.param(spec_of(groups=[pb.Group(name="w")]), "groups[0].count", id="a count of 0"),
    pytest.param(
        spec_of(groups=[pb.Group(name="w", count=-1)]), "groups[0].count", id="a negative count"
    ),
    pytest.param(
        spec_of(groups=[pb.Group(name="w", count=1), pb.Group(name="w", count=1)]),
        "groups[1].name",
        id="two groups with the same name",
    ),
    pytest.param(spec_of(preset=99), "preset", id="a preset of a later version"),
    pytest.param(spec_of(required=""), "required", id="a tier without a name"),
    pytest.param(spec_of(deadline_s=-1.0), "deadline_s", id="a negative time to search"),
    pytest.param(spec_of(deadline_s=float("nan")), "deadline_s", id="a time that is not a number"),
    pytest.param(spec_of(min=2), "min", id="a minimum above all pods"),
    pytest.param(spec_of(max_domains={"leaf": -1}), "max_domains.leaf", id="a negative limit"),
    pytest.param(
        spec_of(
            groups=[
                pb.Group(name="w", count=1, request=pb.Resources(quantities={"gpu": 2**53 + 1}))
            ]
        ),
        "groups[0].request.gpu",
        id="a quantity beyond exact JSON numbers",
    ),
    pytest.param(
        spec_of(
            groups=[
                pb.Group(
                    name="w", count=1, node_selector=[pb.LabelSelector(key="a", values=["b"])] * 2
                )
            ]
        ),
        "groups[0].node_selector[1].key",
        id="a label twice",
    ),
    pytest.param(pb.PlacementSpec(), "groups", id="no spec at all"),
    pytest.param(spec_of(preemption=99), "preemption", id="a preemption of a later version"),
    pytest.param(spec_of(preferred=[""] * 100_000), "preferred", id="a very long list"),
    pytest.param(spec_of(groups=[pb.Group()] * 100_000), "groups", id="very many groups"),
    pytest.param(
        spec_of(groups=[pb.Group(name="p", children=[pb.Group()] * 100_000)]),
        "groups[0].children",
        id="very many groups in one",
    ),
    pytest.param(
        spec_of(groups=[pb.Group(name="w", count=1, tolerations=["x"] * 100_000)]),
        "groups[0].tolerations",
        id="a very long list in a group",
    ),
    pytest.param(
        spec_of(options=pb.Options(preferred_nodes=["n"] * 100_000 + [""])),
        "options.preferred_nodes[100000]",
        id="a node without a name, after many",
    ),
    pytest.param(
        spec_of(options=pb.Options(node_weights={"n": -1})),
        "options.node_weights.n",
        id="a negative weight",
    ),
    pytest.param(
        spec_of(options=pb.Options(node_weights={"n": 1}, score_weight=1.0)),
        "options.score_weight",
        id="weights of two presets",
    ),
    pytest.param(
        spec_of(options=pb.Options(score_weight=float("nan"))),
        "options.score_weight",
        id="a weight that is not a number",
    ),
    pytest.param(
        spec_of(groups=[pb.Group(name="p", count=1, children=[pb.Group(name="w", count=1)])]),
        "groups[0].count",
        id="pods beside children",
    ),
    pytest.param(
        spec_of(
            groups=[
                pb.Group(name="a", count=1, leader_of="b", required="leaf"),
                pb.Group(name="b", count=1, leader_of="a", required="leaf"),
            ]
        ),
        "groups[1].leader_of",
        id="two groups that lead each other",
    ),
    pytest.param(
        spec_of(groups=[pb.Group(name="a", count=1, leader_of="a")]),
        "groups[0].leader_of",
        id="a group that leads itself",
    ),
    pytest.param(
        spec_of(groups=[pb.Group(name="p", children=[pb.Group(name="p", count=1)])]),
        "groups[0].children[0].name",
        id="a group in itself",
    ),
    pytest.param(
        spec_of(traffic=[pb.Traffic(first="w", second="x", weight=1)]),
        "traffic[0]",
        id="traffic without a second group",
    ),
    pytest.param(
        spec_of(traffic=[pb.Traffic(first="w", second="w", weight=-1)]),
        "traffic[0][2]",
        id="negative traffic",
    ),
    pytest.param(
        spec_of(affinity=pb.Affinity(order=["x"])), "affinity", id="a role that is no group"
    ),
    pytest.param(spec_of(sort=[pb.SortRule()]), "sort[0].resource", id="a rule without a resource"),
    pytest.param(
        spec_of(groups=[pb.Group(name="w", count=1, slices=[pb.SliceLayer(size=1, min=-1)])]),
        "groups[0].slices[0].min",
        id="a negative number of slices",
    ),
]


@pytest.mark.parametrize(("message", "field"), REFUSED)
def test_it_names_the_field_of(message: pb.PlacementSpec, field: str) -> None:
    with pytest.raises(PlacementRequestError) as caught:
        decode_request(message)
    assert caught.value.field == field


def test_it_refuses_to_send_numbers_beyond_64_bits() -> None:
    spec = {"groups": [{"name": "w", "count": 1}], "priority": 2**63}
    document = {"apiVersion": API_VERSION, "kind": "PlacementRequest", "spec": spec}
    with pytest.raises(PlacementRequestError, match="cannot be sent"):
        encode_request(parse_request(document))


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(pb.Placement(reason=pb.Reason.FromString(b"\x08\x63")), id="kind of reason"),
        pytest.param(pb.Placement(reason=pb.Reason()), id="reason without a kind"),
        pytest.param(pb.Placement(domains=[pb.DomainVerdict()]), id="domain without a verdict"),
    ],
)
def test_it_refuses_an_answer_with_a(message: pb.Placement) -> None:
    with pytest.raises(ValueError, match="not a kind of this version"):
        decode_placement(message)
