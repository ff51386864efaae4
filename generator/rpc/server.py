"""The gRPC server: placement, health, reflection; without TLS and proof of callers, loopback only.

Queries work on an immutable snapshot that a new tree replaces in one assignment, so a rebuild
never blocks a query and a query in flight keeps the state that it began with.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import HealthServicer
from grpc_reflection.v1alpha import reflection

from generator.outcome import OnQuery, QueryResult
from generator.placement.capacity import Snapshot
from generator.placement.engine import place
from generator.placement.request import UnsupportedRequest
from generator.rpc.address import loopback_address, open_address
from generator.rpc.authentication import Authentication, TokenCheck
from generator.rpc.convert import placement_message, request_of
from generator.rpc.failures import Failure, FailureKind, status_of
from generator.rpc.faults import quiet_faults
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from generator.rpc.toponaut.v1 import placement_pb2_grpc
from topology.errors import ConfigError, PlacementRequestError

log = logging.getLogger(__name__)

MAX_MESSAGE_BYTES: Final = 4 * 1024 * 1024
NUM_THREADS: Final = 8
MAX_CALLS: Final = 64
"""Calls that are served or wait; further ones get RESOURCE_EXHAUSTED at once."""
MAX_DEADLINE_S: Final = 3600.0
"""What is longer is no deadline; gRPC gives one of some 300 billion years to a call without."""
REPLY_SHARE: Final = 0.1
"""Part of a call's remaining time that is kept for sending the answer."""
SERVICE: Final = "toponaut.v1.PlacementService"
_RESULTS: Final = {
    FailureKind.TREE_UNKNOWN: QueryResult.UNAVAILABLE,
    FailureKind.ANSWER_TOO_LARGE: QueryResult.FAILED,
    FailureKind.INTERNAL: QueryResult.FAILED,
}
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.so_reuseport", 0),  # else a second server would take half of the calls
)


@dataclass
class Published:
    """The state that queries see; written by the reconcile loop, read by any thread."""

    snapshot: Snapshot | None = None
    """None until the first tree is known."""


class Security(NamedTuple):
    """How callers know the server, and how it knows them."""

    credentials: grpc.ServerCredentials | None = None
    """None: no TLS, hence loopback only."""
    tokens: TokenCheck | None = None
    """None: no token is asked for."""


LOOPBACK: Final = Security()


class PlacementServicer(placement_pb2_grpc.PlacementServiceServicer):
    """Answers calls from the published snapshot."""

    def __init__(self, published: Published, clock: Callable[[], float], on_query: OnQuery) -> None:
        """Keep where the snapshot is, the clock of deadlines, and who is told of each call."""
        self._published = published
        self._clock = clock
        self._on_query = on_query

    def Place(self, request: pb.PlaceRequest, context: grpc.ServicerContext) -> pb.PlaceResponse:  # noqa: N802 - gRPC's
        """Answer one call."""
        started = self._clock()
        try:
            answer = self._answer(request, context.time_remaining())
        except Exception:  # what went wrong is ours to read, not the caller's
            log.exception("placement call failed")
            answer = Failure(FailureKind.INTERNAL, "internal error; the server's log tells more")
        self._on_query(_result_of(answer), self._clock() - started)
        if isinstance(answer, Failure):
            context.abort_with_status(status_of(answer))
        return answer

    def _answer(self, message: pb.PlaceRequest, remaining_s: float) -> pb.PlaceResponse | Failure:
        if remaining_s > MAX_DEADLINE_S:
            problem = "set a deadline of an hour at most: it is the time that the search may take"
            return Failure(FailureKind.DEADLINE_MISSING, problem)
        snapshot = self._published.snapshot
        try:
            request = request_of(message)
            if snapshot is None:
                return Failure(FailureKind.TREE_UNKNOWN, "the tree is not known yet; try again")
            budget_s = remaining_s * (1 - REPLY_SHARE)
            bounded = replace(request, deadline_s=min(budget_s, request.deadline_s or budget_s))
            placement = place(snapshot, bounded, clock=self._clock)
        except UnsupportedRequest as error:
            return Failure(FailureKind.UNSUPPORTED_REQUEST, error.problem, error.field)
        except PlacementRequestError as error:
            return Failure(FailureKind.INVALID_REQUEST, error.problem, error.field)
        response = pb.PlaceResponse(placement=placement_message(placement))
        if response.ByteSize() > MAX_MESSAGE_BYTES:
            problem = f"the answer has {response.ByteSize()} bytes, more than {MAX_MESSAGE_BYTES}"
            return Failure(FailureKind.ANSWER_TOO_LARGE, problem)
        return response


def _result_of(answer: pb.PlaceResponse | Failure) -> QueryResult:
    if isinstance(answer, Failure):
        return _RESULTS.get(answer.kind, QueryResult.REFUSED)
    return QueryResult.PLACED if answer.placement.feasible else QueryResult.INFEASIBLE


class PlacementServer:
    """A running server; not yet serving, in the words of health, until it is told otherwise."""

    def __init__(
        self,
        address: str,
        published: Published,
        *,
        security: Security = LOOPBACK,
        on_query: OnQuery = lambda _result, _duration_s: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Bind and start.

        Args:
            address: `HOST:PORT`, loopback where there is no TLS; port 0 takes a free one.
            published: where the snapshot will be.
            security: how both sides prove who they are.
            on_query: told how each call for a placement ended.
            clock: seconds, to keep the deadlines of calls.

        Raises:
            ConfigError: the address is none, or not loopback without TLS, or taken.
        """
        quiet_faults()
        is_open = security.credentials is not None
        wanted = open_address(address) if is_open else loopback_address(address)
        self._pool = ThreadPoolExecutor(NUM_THREADS, thread_name_prefix="rpc")
        self._server = grpc.server(
            self._pool,
            interceptors=_interceptors(security, on_query),
            options=_OPTIONS,
            maximum_concurrent_rpcs=MAX_CALLS,
        )
        self._health = HealthServicer()
        self._register(PlacementServicer(published, clock, on_query))
        self.address = _bind(self._server, wanted, security.credentials)
        """As bound, with the real port."""
        self._server.start()

    def set_serving(self) -> None:
        """Tell health checks that queries are answered from now on."""
        self._set_health(health_pb2.HealthCheckResponse.SERVING)

    def stop(self, *, deadline_s: float) -> None:
        """Take no new calls, let those in flight finish until the deadline, then cut them."""
        self._health.enter_graceful_shutdown()
        self._server.stop(deadline_s).wait()
        self._pool.shutdown(wait=False)

    def _register(self, servicer: PlacementServicer) -> None:
        """Add the services; none of them is healthy yet."""
        self._set_health(health_pb2.HealthCheckResponse.NOT_SERVING)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        placement_pb2_grpc.add_PlacementServiceServicer_to_server(servicer, self._server)
        names = (SERVICE, "grpc.health.v1.Health", reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self._server)

    def _set_health(self, status: int) -> None:
        for name in ("", SERVICE):
            self._health.set(name, status)


def _interceptors(security: Security, on_query: OnQuery) -> list[grpc.ServerInterceptor]:
    if security.tokens is None:
        return []

    def on_refused(duration_s: float) -> None:
        on_query(QueryResult.REFUSED, duration_s)

    return [Authentication(security.tokens, on_refused=on_refused)]


def _bind(server: grpc.Server, address: str, credentials: grpc.ServerCredentials | None) -> str:
    try:
        if credentials is None:
            port = server.add_insecure_port(address)
        else:
            port = server.add_secure_port(address, credentials)
    except RuntimeError as error:
        raise ConfigError(f"cannot listen on {address}: is another server running?") from error
    return f"{address.rpartition(':')[0]}:{port}"
