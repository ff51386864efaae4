"""A message has the form of its document, and requests and answers keep all fields in it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf.message import Message
from hypothesis import given, settings
from pydantic import BaseModel

from generator.placement import wire
from generator.placement.answer import Placement
from generator.placement.request import parse_request
from generator.rpc.messages.answers import decode_placement, encode_placement
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
    sent = encode_request(document).SerializeToString()
    assert decode_request(pb.PlacementSpec.FromString(sent)) == parse_request(document)


ROWS = [
    (wire.Spec, pb.PlacementSpec),
    (wire.GroupRow, pb.Group),
    (wire.LayerRow, pb.SliceLayer),
    (wire.LabelValuesRow, pb.LabelValues),
    (wire.NodeTermRow, pb.NodeTerm),
    (wire.NodeRequirementRow, pb.NodeRequirement),
    (wire.TolerationRow, pb.Toleration),
    (wire.SpreadRow, pb.DomainSpread),
    (wire.StrategyRow, pb.Strategy),
    (wire.SortRow, pb.SortRule),
    (wire.AffinityRow, pb.Affinity),
    (wire.RolesRow, pb.Roles),
    (wire.TrafficRow, pb.Traffic),
    (wire.RunningPodsRow, pb.RunningPods),
]


@pytest.mark.parametrize(("model", "message"), ROWS, ids=lambda row: row.__name__)
def test_a_message_has_the_fields_of_its_document(
    model: type[BaseModel], message: type[Message]
) -> None:
    assert set(message.DESCRIPTOR.fields_by_name) == set(model.model_fields)


def test_options_have_a_field_for_each_form_of_weight() -> None:
    fields = set(wire.OptionsRow.model_fields) - {"weight", "arguments"}
    assert set(pb.Options.DESCRIPTOR.fields_by_name) == fields


@settings(max_examples=examples(60))
@given(placements)
def test_it_keeps_an_answer_and_its_order(placement: Placement) -> None:
    sent = encode_placement(placement).SerializeToString()
    back = decode_placement(pb.Placement.FromString(sent))
    assert back == placement
    assert json.dumps(back.render()) == json.dumps(placement.render())


REFUSED = [
    pytest.param(pb.PlacementSpec(), "groups", id="no spec at all"),
    pytest.param(spec_of(groups=[pb.Group(name="w")]), "groups[0].count", id="a count of 0"),
    pytest.param(spec_of(preset="best"), "preset", id="a preset of a later version"),
    pytest.param(spec_of(required=""), "required", id="a tier without a name"),
    pytest.param(spec_of(deadline_s=float("nan")), "deadline_s", id="a time that is not a number"),
    pytest.param(
        spec_of(groups=[pb.Group(name="w", count=1, request={"gpu": str(2**53 + 1)})]),
        "groups[0].request.gpu",
        id="a quantity beyond exact JSON numbers",
    ),
    pytest.param(
        spec_of(
            groups=[
                pb.Group(
                    name="w",
                    count=1,
                    node_affinity=[pb.NodeTerm(requirements=[pb.NodeRequirement(key="a")])],
                )
            ]
        ),
        "groups[0].node_affinity[0].requirements[0].operator",
        id="a requirement without an operator",
    ),
    pytest.param(spec_of(gang="x" * 2**21), "gang", id="a name of two megabytes"),
    pytest.param(spec_of(preferred=[""] * 100_000), "preferred", id="a very long list"),
    pytest.param(spec_of(groups=[pb.Group()] * 100_000), "groups", id="very many groups"),
    pytest.param(
        spec_of(groups=[pb.Group(name="p", children=[pb.Group()] * 100_000)]),
        "groups[0].children",
        id="very many groups in one",
    ),
    pytest.param(
        spec_of(groups=[pb.Group(name="w", count=1, tolerations=[pb.Toleration()] * 100_000)]),
        "groups[0].tolerations",
        id="a very long list in a group",
    ),
    pytest.param(
        spec_of(options=pb.Options(preferred_nodes=["n"] * 100_000 + [""])),
        "options.preferred_nodes[100000]",
        id="a node without a name, after many",
    ),
    pytest.param(
        spec_of(options=pb.Options(score_weight=float("nan"))),
        "options.score_weight",
        id="a weight that is not a number",
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
        encode_request(document)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(pb.Placement(reason=pb.Reason(kind="later")), id="kind of reason"),
        pytest.param(pb.Placement(reason=pb.Reason()), id="reason without a kind"),
        pytest.param(pb.Placement(domains=[pb.DomainVerdict()]), id="domain without a verdict"),
    ],
)
def test_it_refuses_an_answer_with_a(message: pb.Placement) -> None:
    with pytest.raises(ValueError, match="is not a valid"):
        decode_placement(message)
