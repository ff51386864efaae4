"""The gRPC server: placement, topology, health and reflection.

Without TLS it listens on loopback only. Queries read an immutable snapshot, and a new tree replaces
it in one assignment: a rebuild never blocks a query, and a query in flight keeps the snapshot it
began with.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier, Thread
from typing import Final, NamedTuple

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import HealthServicer
from grpc_reflection.v1alpha import reflection

from generator.reconcile.round_results import OnQuery, QueryResult
from generator.rpc.auth.authentication import TokenCheck
from generator.rpc.auth.loopback import parse_listen_address, parse_loopback_address
from generator.rpc.auth.tls import ServerCertificates
from generator.rpc.calls import CallInterceptor, build_call_slots
from generator.rpc.limits import (
    HANDSHAKE_S,
    IDLE_S,
    MAX_CALLS,
    MAX_CONNECTIONS,
    MAX_MESSAGE_BYTES,
    MAX_WAITING,
    NUM_SPARE_THREADS,
    NUM_THREADS,
)
from generator.rpc.placement_service import (
    PlacementServicer,
    ReservationCall,
    refuse_reservation,
)
from generator.rpc.published_state import PublishedState
from generator.rpc.topology_service import TopologyServicer
from generator.rpc.toponaut.v1 import placement_pb2_grpc, topology_pb2_grpc
from topology.model.errors import ConfigError

PLACEMENT_SERVICE: Final = "toponaut.v1.PlacementService"
TOPOLOGY_SERVICE: Final = "toponaut.v1.TopologyService"
_CANCEL_S: Final = 2.0
"""The time from the end of a call to the end of its thread."""
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.so_reuseport", 0),  # otherwise a second server would receive half of the calls
    ("grpc.keepalive_time_ms", 60_000),  # ends the streams of a client that has vanished
    ("grpc.keepalive_timeout_ms", 20_000),
    # What costs a descriptor before it has proved who it is; further connections are closed.
    ("grpc.max_allowed_incoming_connections", MAX_CONNECTIONS),
    ("grpc.server_handshake_timeout_ms", round(HANDSHAKE_S * 1000)),
    ("grpc.max_connection_idle_ms", round(IDLE_S * 1000)),
    ("grpc.max_concurrent_streams", MAX_CALLS),  # of one connection
    ("grpc.http2.bdp_probe", 0),  # otherwise a waiting call buffers its whole request
)


class ServerSecurity(NamedTuple):
    """How clients verify the server, and how the server authenticates clients."""

    certificates: ServerCertificates | None = None
    """None: no TLS, so the server listens on loopback only."""
    tokens: TokenCheck | None = None
    """None: no token is required."""


LOOPBACK_SECURITY: Final = ServerSecurity()


class PlacementServer:
    """A running server; health checks report NOT_SERVING until `set_serving`."""

    def __init__(
        self,
        address: str,
        published: PublishedState,
        *,
        security: ServerSecurity = LOOPBACK_SECURITY,
        on_query: OnQuery = lambda _result, _duration_s: None,
        clock: Callable[[], float] = time.monotonic,
        call_reservation: ReservationCall = refuse_reservation,
    ) -> None:
        """Bind the address and start.

        Args:
            address: `HOST:PORT`, loopback if there is no TLS; port 0 takes a free port.
            published: the state that queries read.
            security: TLS credentials and token check.
            on_query: called with the result of each call for a placement.
            clock: seconds, for the deadlines of calls.
            call_reservation: answers the calls about reservations.

        Raises:
            ConfigError: the address is malformed, in use, or not loopback without TLS.
        """
        credentials = security.certificates.credentials if security.certificates else None
        listen_address = (
            parse_listen_address(address) if credentials else parse_loopback_address(address)
        )
        self._published = published
        call_slots = build_call_slots()
        self._calls = CallInterceptor(
            partial(on_query, QueryResult.REFUSED), call_slots, security.tokens
        )
        self._pool = ThreadPoolExecutor(
            NUM_THREADS + MAX_WAITING + NUM_SPARE_THREADS, thread_name_prefix="rpc"
        )
        _start_threads(self._pool, NUM_THREADS + MAX_WAITING + NUM_SPARE_THREADS)
        self._server = grpc.server(
            self._pool,
            interceptors=[self._calls],
            options=_OPTIONS,
            maximum_concurrent_rpcs=MAX_CALLS,
        )
        self._health = HealthServicer(experimental_non_blocking=False)
        self._register(
            PlacementServicer(published, clock, on_query, call_slots, call_reservation),
            TopologyServicer(published, clock),
        )
        try:
            self.address = _bind_address(self._server, listen_address, credentials)
            """The bound address, with the real port."""
        except ConfigError:
            self._calls.stop()
            raise
        self._server.start()

    def set_serving(self) -> None:
        """Report SERVING to health checks from now on."""
        self._set_health(health_pb2.HealthCheckResponse.SERVING)

    def stop(self, *, deadline_s: float) -> bool:
        """Refuse new calls, let calls in flight finish until the deadline, then cancel them.

        Returns whether their threads have ended; a search ends soon after its call.
        """
        self._health.enter_graceful_shutdown()
        self._published.end_waits()
        self._server.stop(deadline_s).wait()
        closing = Thread(target=self._close_threads, name="rpc-closing", daemon=True)
        closing.start()
        closing.join(_CANCEL_S)
        return not closing.is_alive()

    def _close_threads(self) -> None:
        self._pool.shutdown()
        self._calls.stop()

    def _register(self, placement: PlacementServicer, topology: TopologyServicer) -> None:
        """Add the services; health checks report NOT_SERVING for each."""
        self._set_health(health_pb2.HealthCheckResponse.NOT_SERVING)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        placement_pb2_grpc.add_PlacementServiceServicer_to_server(placement, self._server)
        topology_pb2_grpc.add_TopologyServiceServicer_to_server(topology, self._server)
        names = (
            PLACEMENT_SERVICE,
            TOPOLOGY_SERVICE,
            "grpc.health.v1.Health",
            reflection.SERVICE_NAME,
        )
        reflection.enable_server_reflection(names, self._server)

    def _set_health(self, status: int) -> None:
        for name in ("", PLACEMENT_SERVICE, TOPOLOGY_SERVICE):
            self._health.set(name, status)


def _bind_address(
    server: grpc.Server, address: str, credentials: grpc.ServerCredentials | None
) -> str:
    try:
        if credentials is None:
            port = server.add_insecure_port(address)
        else:
            port = server.add_secure_port(address, credentials)
    except RuntimeError as error:
        raise ConfigError(f"cannot listen on {address}: is another server running?") from error
    return f"{address.rpartition(':')[0]}:{port}"


def _start_threads(pool: ThreadPoolExecutor, num: int) -> None:
    """Start all threads of a pool: while searches run, a start waits long for the interpreter."""
    ready = Barrier(num + 1)
    for _ in range(num):
        pool.submit(ready.wait)
    ready.wait()
