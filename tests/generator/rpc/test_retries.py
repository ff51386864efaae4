"""Which calls a client retries, how often, and for how long."""

from __future__ import annotations

import time

import grpc
import pytest

from generator.rpc.client import Retries
from generator.rpc.status_errors import CallFailure, FailureKind, encode_status
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from runtime.retry import Backoff
from tests.generator.rpc.clusters import request_for
from tests.generator.rpc.servers import SOON_S, scripted
from topology.model.errors import ConfigError, TopologyError

AT_ONCE = Retries(backoff=Backoff(first_s=0.001, limit_s=0.001))
Ending = CallFailure | grpc.StatusCode | None
"""How a call ends; None: with an answer."""


class Scripted:
    """Ends calls with scripted endings, then with an answer."""

    def __init__(self, *endings: Ending, details: str = "for a moment") -> None:
        self.num_calls = 0
        self._endings = list(endings)
        self._details = details

    def place(self, _: pb.PlaceRequest, context: grpc.ServicerContext) -> pb.PlaceResponse:
        self.num_calls += 1
        ending = self._endings.pop(0) if self._endings else None
        if isinstance(ending, CallFailure):
            context.abort_with_status(encode_status(ending))
        if ending is not None:
            context.abort(ending, self._details)
        return pb.PlaceResponse(placement=pb.Placement(feasible=True))


@pytest.mark.parametrize(
    "ending",
    [
        pytest.param(grpc.StatusCode.UNAVAILABLE, id="an unavailable server"),
        pytest.param(CallFailure(FailureKind.TREE_UNKNOWN, "no tree"), id="no tree yet"),
        pytest.param(CallFailure(FailureKind.OVERLOADED, "too many"), id="too many streams"),
        pytest.param(CallFailure(FailureKind.STOPPING, "stops"), id="a server that stops"),
    ],
)
def test_it_retries(ending: Ending) -> None:
    script = Scripted(ending, ending, ending)
    with scripted(script.place, retries=AT_ONCE) as client:
        assert client.place(request_for(1)).is_feasible
    assert script.num_calls == AT_ONCE.max_attempts


def test_it_retries_a_call_that_grpc_refused() -> None:
    turned_away = grpc.StatusCode.RESOURCE_EXHAUSTED
    script = Scripted(turned_away, details="Concurrent RPC limit exceeded!")
    with scripted(script.place, retries=AT_ONCE) as client:
        assert client.place(request_for(1)).is_feasible


@pytest.mark.parametrize(
    "ending",
    [
        pytest.param(grpc.StatusCode.RESOURCE_EXHAUSTED, id="a message that is too large"),
        pytest.param(
            CallFailure(FailureKind.ANSWER_TOO_LARGE, "x"), id="an answer that is too large"
        ),
        pytest.param(CallFailure(FailureKind.INVALID_REQUEST, "x", "spec"), id="a wrong field"),
        pytest.param(CallFailure(FailureKind.FORBIDDEN, "x"), id="a missing right"),
        pytest.param(CallFailure(FailureKind.INTERNAL, "x"), id="a defect"),
        pytest.param(grpc.StatusCode.DEADLINE_EXCEEDED, id="no time"),
    ],
)
def test_it_does_not_retry(ending: Ending) -> None:
    script = Scripted(ending)
    with scripted(script.place, retries=AT_ONCE) as client, pytest.raises(TopologyError):
        client.place(request_for(1))
    assert script.num_calls == 1


def test_it_gives_up_after_the_last_attempt() -> None:
    script = Scripted(*[grpc.StatusCode.UNAVAILABLE] * 9)
    with scripted(script.place, retries=AT_ONCE) as client, pytest.raises(TopologyError):
        client.place(request_for(1))
    assert script.num_calls == AT_ONCE.max_attempts


def test_it_does_not_wait_beyond_its_deadline() -> None:
    patient = Retries(max_attempts=9, backoff=Backoff(first_s=600.0, limit_s=600.0))
    script = Scripted(*[grpc.StatusCode.UNAVAILABLE] * 9)
    begun = time.monotonic()
    with scripted(script.place, retries=patient) as client, pytest.raises(TopologyError):
        client.place(request_for(1))
    assert script.num_calls == 1
    assert time.monotonic() - begun < SOON_S


def test_it_waits_with_growing_random_delays() -> None:
    asked: list[tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        asked.append((low, high))
        return 0.0

    retries = Retries(uniform=uniform)
    script = Scripted(*[grpc.StatusCode.UNAVAILABLE] * 3)
    with scripted(script.place, retries=retries) as client:
        client.place(request_for(1))
    highs = [high for _, high in asked]
    assert highs == sorted(highs)
    assert highs[0] * 4 == highs[-1]


def test_it_reports_why_a_call_failed_before_its_last_try_was_cut_short() -> None:
    script = Scripted(grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
    with (
        scripted(script.place, retries=AT_ONCE) as client,
        pytest.raises(ConfigError, match="no server answers at 127"),
    ):
        client.place(request_for(1))
    assert script.num_calls == 2
