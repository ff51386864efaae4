"""Oversized messages are refused before they are sent, with their largest field."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from google.protobuf.message import Message

from generator.rpc.client.message_size import check_size
from generator.rpc.client.typed_client import PlacementClient
from generator.rpc.limits import MAX_MESSAGE_BYTES
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from tests.generator.rpc.clusters import request_for
from topology.model.errors import PlacementRequestError

MIB = 1024 * 1024


def place(**fields: object) -> pb.PlaceRequest:
    return pb.PlaceRequest(spec=pb.PlacementSpec(**fields))  # type: ignore[arg-type]  # any of them


# Built within the test: they are large, and every worker collects all tests.
@pytest.mark.parametrize(
    ("build", "field"),
    [
        pytest.param(
            lambda: place(
                gang="x", groups=[pb.Group(name=f"{at:0200}", count=1) for at in range(25_000)]
            ),
            "groups",
            id="very many groups",
        ),
        pytest.param(
            lambda: place(gang="ä" * 3 * MIB, preferred=["x" * 5 * MIB]),
            "gang",
            id="letters of two bytes",
        ),
        pytest.param(lambda: place(preferred=["x" * 1000] * 9000), "preferred", id="many tiers"),
        pytest.param(
            lambda: place(
                groups=[pb.Group(name="a"), pb.Group(name="b" * 5 * MIB), pb.Group(name="c" * MIB)]
            ),
            "groups[1].name",
            id="one group of several",
        ),
        pytest.param(
            lambda: pb.PlaceBatchRequest(specs=[pb.PlacementSpec(gang="x" * MIB)] * 9),
            "specs",
            id="a batch",
        ),
        pytest.param(
            lambda: pb.CapacityRequest(request={f"{at:0200}": "1" for at in range(25_000)}),
            "request",
            id="very many resources",
        ),
    ],
)
def test_it_names_the_field_that_is_too_large(build: Callable[[], Message], field: str) -> None:
    with pytest.raises(PlacementRequestError, match=f"takes {MAX_MESSAGE_BYTES} at most") as e:
        check_size(build())
    assert e.value.field == field


def test_it_accepts_a_message_within_the_limit() -> None:
    message = place(gang="x" * (MAX_MESSAGE_BYTES - 10))
    while message.ByteSize() < MAX_MESSAGE_BYTES:
        message.spec.gang += "x"
    check_size(message)
    message.spec.gang += "x"
    with pytest.raises(PlacementRequestError):
        check_size(message)


def test_a_client_sends_no_oversized_message() -> None:
    asked = request_for(1, preferred=["x" * MAX_MESSAGE_BYTES])
    with (
        PlacementClient("127.0.0.1:1", 1.0) as client,
        pytest.raises(PlacementRequestError) as error,
    ):
        client.place(asked)
    assert error.value.field == "preferred"
