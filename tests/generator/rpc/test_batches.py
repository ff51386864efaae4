"""Many gangs on one stream: together within a message, one message after another."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Iterator, Sequence
from dataclasses import replace
from queue import Queue
from typing import Any

import grpc
import pytest

from generator.placement.answer import Placement, ReasonKind
from generator.placement.batch.joint import place_batch
from generator.placement.engine import place
from generator.placement.request import parse_request
from generator.rpc.client.typed_client import MAX_BATCH_GANGS, PlacementClient
from generator.rpc.limits import MAX_MESSAGE_BYTES
from generator.rpc.messages.requests import encode_request
from generator.rpc.placement_service import MAX_BATCH_SPECS
from generator.rpc.published_state import PublishedState
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from tests.generator.rpc.clusters import request_for, snapshot_of
from tests.generator.rpc.servers import SOON_S, Stubs, failed, serving
from topology.model.errors import PlacementRequestError

SNAPSHOT = snapshot_of(
    ("a1", "a2", "a3", "a4"),
    ("b1", "b2", "b3"),
    tuple(f"c{at:03}" for at in range(2 * MAX_BATCH_GANGS)),
)


@pytest.fixture
def address() -> Iterator[str]:
    with serving(PublishedState(SNAPSHOT)) as server:
        yield server.address


@pytest.fixture
def client(address: str) -> Iterator[PlacementClient]:
    with PlacementClient(address, SOON_S) as made:
        yield made


@pytest.fixture
def stubs(address: str) -> Iterator[Stubs]:
    with grpc.insecure_channel(address) as channel:
        yield Stubs(channel)


def gang(name: str, count: int, **spec: object) -> dict[str, Any]:
    return request_for(count, gang=name, **spec)


def place_here(requests: Sequence[dict[str, Any]]) -> list[Placement]:
    return list(place_batch(SNAPSHOT, [*map(parse_request, requests)]).placements)


def test_it_plans_the_gangs_of_a_message_together(client: PlacementClient) -> None:
    requests = [gang("x", 3), gang("y", 4), gang("z", 2, required="leaf")]
    found = client.place_batch(requests, explain=True)
    assert list(found) == place_here(requests)


def test_it_returns_no_answers_for_no_requests(client: PlacementClient) -> None:
    assert list(client.place_batch([])) == []


def test_it_splits_large_gangs_into_messages_within_the_limit(client: PlacementClient) -> None:
    selector = {"zone": [f"{at:0100}" for at in range(4_000)]}
    groups = [{"name": "w", "count": 1, "node_selector": selector}]
    requests = [gang(f"g{at}", 1, groups=groups, priority=at) for at in range(40)]
    found = list(client.place_batch(requests))
    assert [row.reason and row.reason.kind for row in found] == [ReasonKind.EXCLUDED] * 40


@pytest.mark.parametrize("explain", [False, True])
def test_it_sends_gangs_up_to_the_size_limit(
    client: PlacementClient,
    explain: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    asked = [gang("x" * (MAX_MESSAGE_BYTES - more), 1) for more in range(60, 0, -3)]
    refusals = []
    for one in asked:
        with pytest.raises(PlacementRequestError) as error:
            list(client.place_batch([one], explain=explain))
        refusals.append(error.value.field)
    assert set(refusals) == {"spec", "specs[0].gang"}  # not sent, and refused by the server
    assert refusals == sorted(refusals, reverse=True)


def test_it_refuses_a_gang_larger_than_a_message(client: PlacementClient) -> None:
    found = client.place_batch([gang("x", 1), gang("y" * MAX_MESSAGE_BYTES, 1), gang("z", 1)])
    assert next(found).is_feasible
    with pytest.raises(PlacementRequestError, match=r"^spec: takes 4194\d+ bytes; a server takes"):
        next(found)


def test_it_counts_the_bytes_of_names(client: PlacementClient) -> None:
    groups = [{"name": "wwww", "count": 1}]
    names = [f"{at:03}" + "\U0001f600" * 4_081 for at in range(MAX_BATCH_GANGS)]
    requests = [gang(name, 1, groups=groups) for name in ["x", *names]]
    assert len(list(client.place_batch(requests))) == 1 + MAX_BATCH_GANGS


@pytest.mark.parametrize(
    "error", [CancelledError(), KeyError("mine")], ids=["a cancellation", "an error"]
)
@pytest.mark.parametrize("more", [0, 3], ids=["between messages", "within a message"])
def test_it_answers_the_requests_before_its_source_raised(
    client: PlacementClient, error: BaseException, more: int
) -> None:
    def requests() -> Iterator[dict[str, Any]]:
        yield from (gang(f"g{at}", 1) for at in range(MAX_BATCH_GANGS + more))
        raise error

    found = client.place_batch(requests())
    assert all(next(found).is_feasible for _ in range(MAX_BATCH_GANGS + more))
    with pytest.raises(type(error)):
        next(found)


@pytest.mark.parametrize(
    "before", [0, 1, MAX_BATCH_GANGS], ids=["first", "second", "of the next message"]
)
def test_it_names_a_request_that_cannot_be_sent(client: PlacementClient, before: int) -> None:
    requests = [*(gang(f"g{at}", 1) for at in range(before)), gang("\ud800", 1)]
    found = client.place_batch(requests)
    with pytest.raises(PlacementRequestError, match="gang: "):
        list(found)


def test_it_uses_no_slot_twice(client: PlacementClient) -> None:
    requests = [gang(f"g{number}", 2) for number in range(MAX_BATCH_GANGS + 1)]
    found = list(client.place_batch(requests))
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


def test_it_continues_after_an_infeasible_gang(client: PlacementClient) -> None:
    found = list(client.place_batch([gang("x", 10_000), gang("y", 1)]))
    assert [row.is_feasible for row in found] == [False, True]


def test_it_gives_elastic_gangs_the_remaining_slots(client: PlacementClient) -> None:
    groups = [{"name": "w", "count": 1_000_000, "min": 0}]
    found = list(client.place_batch(gang(f"g{number}", 1, groups=groups) for number in range(3)))
    assert [row.is_feasible for row in found] == [True, False, False]
    assert len({*found[0].assignment["w"]} - {None}) == SNAPSHOT.num_nodes


def test_it_forgets_a_stream_at_its_end(client: PlacementClient) -> None:
    request = gang("x", 4)
    (found,) = client.place_batch([request], explain=True)
    assert found == place(SNAPSHOT, parse_request(request))
    assert list(client.place_batch([request], explain=True)) == [found]


def test_it_explains_only_on_demand(client: PlacementClient) -> None:
    whole = place(SNAPSHOT, parse_request(gang("x", 4)))
    (found,) = client.place_batch([gang("x", 4)])
    assert found == replace(whole, objective={}, domain_verdicts=())


def test_it_answers_a_message_without_gangs(stubs: Stubs) -> None:
    (answer,) = stubs.placement.PlaceBatch(iter([pb.PlaceBatchRequest()]), timeout=SOON_S)
    assert (len(answer.placements), answer.is_last) == (0, True)


def test_it_answers_a_large_message_in_parts() -> None:
    long = tuple(f"{at:0200}" for at in range(15_000))
    specs = [encode_request(gang(f"g{number}", 5000)) for number in range(3)]
    with (
        serving(PublishedState(snapshot_of(long))) as server,
        grpc.insecure_channel(server.address) as channel,
    ):
        ask = Stubs(channel).placement.PlaceBatch
        answers = list(ask(iter([pb.PlaceBatchRequest(specs=specs)]), timeout=SOON_S))
    assert [answer.is_last for answer in answers] == [False, False, True]
    assert [row.feasible for answer in answers for row in answer.placements] == [True] * 3


def test_it_names_the_second_gang_with_the_same_name(stubs: Stubs) -> None:
    message = pb.PlaceBatchRequest(specs=[encode_request(gang("x", 1))] * 2)
    code, failure = failed(stubs.placement.PlaceBatch, iter([message]))
    assert (code, failure.field) == (grpc.StatusCode.INVALID_ARGUMENT, "specs[1].gang")


def test_it_refuses_a_name_of_an_earlier_message(client: PlacementClient) -> None:
    requests = [gang(f"g{number}", 1) for number in range(MAX_BATCH_GANGS)]
    answers = client.place_batch([*requests, gang("g0", 1)])
    assert len([next(answers) for _ in requests]) == MAX_BATCH_GANGS
    with pytest.raises(PlacementRequestError, match="two gangs of this stream have the name g0"):
        next(answers)


def test_it_refuses_very_many_gangs_at_once(stubs: Stubs) -> None:
    message = pb.PlaceBatchRequest(specs=[pb.PlacementSpec()] * (MAX_BATCH_SPECS + 1))
    code, failure = failed(stubs.placement.PlaceBatch, iter([message]))
    assert (code, failure.field) == (grpc.StatusCode.INVALID_ARGUMENT, "specs")
