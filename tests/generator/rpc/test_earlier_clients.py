"""A request with fields that this version does not know is refused, never answered without them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from generator.rpc.published_state import PublishedState
from generator.rpc.status_errors import FailureKind
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from generator.rpc.toponaut.v1 import topology_pb2 as tb
from tests.generator.rpc.clusters import snapshot_of
from tests.generator.rpc.servers import SOON_S, failed, serving
from tests.repository import ROOT

PACKAGE = "toponaut.v1"
PLACEMENT, TOPOLOGY = f"/{PACKAGE}.PlacementService", f"/{PACKAGE}.TopologyService"


def read_earlier_messages() -> dict[str, type[Any]]:
    """Return the messages that an earlier client sends, by name."""
    pool = DescriptorPool()
    raw = (ROOT / "fixtures" / "grpc" / "earlier" / "toponaut_v1.binpb").read_bytes()
    files = FileDescriptorSet.FromString(raw).file
    for file in files:
        pool.AddSerializedFile(file.SerializeToString())
    return {
        message.name: GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{message.name}"))
        for file in files
        if file.package == PACKAGE
        for message in file.message_type
    }


EARLIER = read_earlier_messages()
LABEL, GPUS = {"key": "zone", "values": ["a"]}, {"gpu": 8}
GROUP = {"name": "w", "count": 4, "node_selector": [LABEL]}
SPEC = {"preset": "PRESET_OPTIMAL", "groups": [GROUP], "required": "leaf"}


@pytest.fixture
def channel() -> Iterator[grpc.Channel]:
    published = PublishedState(snapshot_of(("a1", "a2"), ("b1", "b2", "b3")))
    with serving(published) as server, grpc.insecure_channel(server.address) as made:
        yield made


def serialize(message: Message) -> bytes:
    return message.SerializeToString()


EARLIER_REQUESTS: list[tuple[str, str, dict[str, Any], str]] = [
    (f"{PLACEMENT}/Place", "PlaceRequest", {"spec": SPEC}, "field 1"),
    (f"{PLACEMENT}/PlaceBatch", "PlaceBatchRequest", {"specs": [SPEC]}, "field 1"),
    (f"{PLACEMENT}/Candidates", "CandidatesRequest", {"spec": SPEC}, "field 1"),
    (f"{PLACEMENT}/Reserve", "ReserveRequest", {"spec": SPEC}, "field 2"),
    (f"{PLACEMENT}/Capacity", "CapacityRequest", {"node_selector": [LABEL]}, "field 2"),
    (f"{PLACEMENT}/Capacity", "CapacityRequest", {"request": {"quantities": GPUS}}, "field 1"),
    (f"{TOPOLOGY}/WatchFeasible", "WatchFeasibleRequest", {"spec": SPEC}, "field 1"),
]


def test_it_says_that_a_client_is_older(channel: grpc.Channel) -> None:
    for path, name, fields, number in EARLIER_REQUESTS:
        message = EARLIER[name](**fields)
        code, failure = failed(channel.stream_stream(path, serialize), iter([message]))
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert failure.kind is FailureKind.INVALID_REQUEST
        assert f"{number} of {name} is of an earlier version: update the client" in failure.problem


def test_it_names_the_row_with_a_field_of_an_earlier_version(channel: grpc.Channel) -> None:
    pods = EARLIER["RunningPods"](node="a1", request={"quantities": {"gpu": 8}})
    message = pb.PlaceRequest(
        spec=pb.PlacementSpec(groups=[pb.Group(name="w", count=1)]),
        running=[pb.RunningPods(node="a2"), pb.RunningPods.FromString(pods.SerializeToString())],
    )
    _, failure = failed(channel.unary_unary(f"{PLACEMENT}/Place", serialize), message)
    assert failure.field == "running[1]"
    assert "field 2 of RunningPods is of an earlier version" in failure.problem


def test_it_says_that_a_client_is_newer(channel: grpc.Channel) -> None:
    group = pb.Group.FromString(pb.Group(name="w", count=1).SerializeToString() + b"\xa0\x06\x01")
    message = pb.PlaceRequest(spec=pb.PlacementSpec(groups=[group]))
    _, failure = failed(channel.unary_unary(f"{PLACEMENT}/Place", serialize), message)
    assert failure.field == "spec.groups[0]"
    assert failure.problem == (
        "field 100 of Group is not known to this version: update the server first"
    )


def list_reserved(message: type[Message]) -> set[int]:
    described = DescriptorProto()
    message.DESCRIPTOR.CopyToProto(described)
    return {number for row in described.reserved_range for number in range(row.start, row.end)}


@pytest.mark.parametrize(
    "message",
    [pb.RunningPods]
    + [
        GetMessageClass(method.input_type)
        for file in (pb.DESCRIPTOR, tb.DESCRIPTOR)
        for service in file.services_by_name.values()
        for method in service.methods
    ],
    ids=lambda message: message.__name__,
)
def test_it_gives_no_number_of_an_earlier_field_another_meaning(message: type[Message]) -> None:
    descriptor = message.DESCRIPTOR
    for earlier in EARLIER[descriptor.name].DESCRIPTOR.fields:
        field = descriptor.fields_by_number.get(earlier.number)
        if field is None:
            assert earlier.number in list_reserved(message)
            continue
        assert (field.name, field.type) == (earlier.name, earlier.type)
        kind = field.message_type.name if field.message_type else ""
        assert kind in {"", "RunningPods", "NodeTerm"}


def test_it_answers_requests_that_did_not_change(channel: grpc.Channel) -> None:
    message = EARLIER["GetTopologyRequest"](page_size=7)
    call: Any = channel.unary_unary(f"{TOPOLOGY}/GetTopology", serialize)
    answer = EARLIER["GetTopologyResponse"].FromString(call(message, timeout=SOON_S))
    assert [row.name for row in answer.domains] == ["leaf-1", "leaf-2", "spine"]
