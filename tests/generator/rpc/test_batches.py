"""Many gangs on one stream: together within a message, one message after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from queue import Queue
from typing import Any

import grpc
import pytest

from generator.placement.answer import Placement
from generator.placement.batch.joint import place_batch
from generator.placement.engine import place
from generator.placement.request import parse_request
from generator.rpc.messages.answers import decode_placement
from generator.rpc.messages.requests import encode_request
from generator.rpc.placement_service import MAX_BATCH_SPECS
from generator.rpc.published_state import PublishedState
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from tests.generator.rpc.clusters import request_for, snapshot_of
from tests.generator.rpc.servers import SOON_S, Stubs, failed, serving

MESSAGE_GANGS = 8
SNAPSHOT = snapshot_of(
    ("a1", "a2", "a3", "a4"),
    ("b1", "b2", "b3"),
    tuple(f"c{at:03}" for at in range(2 * MESSAGE_GANGS)),
)


@pytest.fixture
def address() -> Iterator[str]:
    with serving(PublishedState(SNAPSHOT)) as server:
        yield server.address


@pytest.fixture
def stubs(address: str) -> Iterator[Stubs]:
    with grpc.insecure_channel(address) as channel:
        yield Stubs(channel)


def gang(name: str, count: int, **spec: object) -> dict[str, Any]:
    return request_for(count, gang=name, **spec)


def plan(
    stubs: Stubs, requests: Sequence[dict[str, Any]], *, explain: bool = False
) -> Iterator[Placement]:
    """Plan gangs on one stream, some in each message."""
    messages = (
        pb.PlaceBatchRequest(
            specs=[*map(encode_request, requests[row : row + MESSAGE_GANGS])], explain=explain
        )
        for row in range(0, len(requests), MESSAGE_GANGS)
    )
    for answer in stubs.placement.PlaceBatch(messages, timeout=SOON_S):
        yield from map(decode_placement, answer.placements)


def place_here(requests: Sequence[dict[str, Any]]) -> list[Placement]:
    return list(place_batch(SNAPSHOT, [*map(parse_request, requests)]).placements)


def test_it_plans_the_gangs_of_a_message_together(stubs: Stubs) -> None:
    requests = [gang("x", 3), gang("y", 4), gang("z", 2, required="leaf")]
    found = plan(stubs, requests, explain=True)
    assert list(found) == place_here(requests)


def test_it_uses_no_slot_twice(stubs: Stubs) -> None:
    requests = [gang(f"g{number}", 2) for number in range(MESSAGE_GANGS + 1)]
    found = list(plan(stubs, requests))
    nodes = [node for row in found for node in row.assignment["w"]]
    assert len(nodes) == len(set(nodes)) == 2 * len(requests)


def test_it_answers_each_message_before_the_next_is_sent(stubs: Stubs) -> None:
    taken: Queue[str] = Queue()

    def messages() -> Iterator[pb.PlaceBatchRequest]:
        for number in range(3):
            specs = [encode_request(gang(f"g{number}", 1))]
            yield pb.PlaceBatchRequest(specs=specs)
            seen.append(taken.get(timeout=SOON_S))

    seen: list[str] = []
    for answer in stubs.placement.PlaceBatch(messages(), timeout=SOON_S):
        taken.put(answer.placements[0].assignment[0].nodes[0])
        assert answer.is_last
    assert len(set(seen)) == 3


def test_it_forgets_a_stream_at_its_end(stubs: Stubs) -> None:
    request = gang("x", 4)
    (found,) = plan(stubs, [request], explain=True)
    assert found == place(SNAPSHOT, parse_request(request))
    assert list(plan(stubs, [request], explain=True)) == [found]


def test_it_explains_only_on_demand(stubs: Stubs) -> None:
    whole = place(SNAPSHOT, parse_request(gang("x", 4)))
    (found,) = plan(stubs, [gang("x", 4)])
    assert found == replace(whole, objective={}, domain_verdicts=())


def test_it_answers_a_message_without_gangs(stubs: Stubs) -> None:
    (answer,) = stubs.placement.PlaceBatch(iter([pb.PlaceBatchRequest()]), timeout=SOON_S)
    assert (len(answer.placements), answer.is_last) == (0, True)


def test_it_names_the_second_gang_with_the_same_name(stubs: Stubs) -> None:
    message = pb.PlaceBatchRequest(specs=[encode_request(gang("x", 1))] * 2)
    code, failure = failed(stubs.placement.PlaceBatch, iter([message]))
    assert (code, failure.field) == (grpc.StatusCode.INVALID_ARGUMENT, "specs[1].gang")


def test_it_refuses_a_name_of_an_earlier_message(stubs: Stubs) -> None:
    message = pb.PlaceBatchRequest(specs=[encode_request(gang("x", 1))])
    code, failure = failed(stubs.placement.PlaceBatch, iter([message] * 2))
    assert (code, failure.field) == (grpc.StatusCode.INVALID_ARGUMENT, "specs[0].gang")
    assert failure.problem == "two gangs of this stream have the name x"


def test_it_refuses_very_many_gangs_at_once(stubs: Stubs) -> None:
    message = pb.PlaceBatchRequest(specs=[pb.PlacementSpec()] * (MAX_BATCH_SPECS + 1))
    code, failure = failed(stubs.placement.PlaceBatch, iter([message]))
    assert (code, failure.field) == (grpc.StatusCode.INVALID_ARGUMENT, "specs")
