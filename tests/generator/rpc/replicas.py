"""Replicas with certificates and tokens: one leads, the others forward what only it answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock
from typing import Any, cast

import grpc

from generator.reservations.ledger import ReservationLedger
from generator.reservations.objects import ReservationObjects
from generator.reservations.records import Refusal, RefusalKind
from generator.rpc.auth.authentication import TokenCheck
from generator.rpc.auth.tls import OVERLAP_S, ServerCertificates, TlsFiles
from generator.rpc.forwarded_calls import ForwardedCalls
from generator.rpc.published_state import PublishedState
from generator.rpc.reservation_service import ReservationServicer
from generator.rpc.server import PlacementServer, ServerSecurity
from generator.rpc.status_errors import CallFailure, encode_status
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from generator.rpc.toponaut.v1 import placement_pb2_grpc
from tests.generator.reservations.worlds import MemoryStore, World, cluster, id_of
from tests.generator.rpc.credentials import ANY_PORT, SOON_S
from tests.lab.certificates import Authority

SERVICE_NAMES = ("toponaut-generator", "toponaut-generator.toponaut-system.svc")
"""The names in the chart's certificate: those of the Service, and no address."""


@dataclass
class Mount:
    """The Secret of a replica, as its kubelet mounts it."""

    folder: Path

    @property
    def files(self) -> TlsFiles:
        return TlsFiles(self.folder / "tls.crt", self.folder / "tls.key")

    def deliver(self, pair: tuple[bytes, bytes]) -> None:
        """Replace the files, each atomically."""
        self.folder.mkdir(exist_ok=True)
        for name, content in zip(("tls.key", "tls.crt"), reversed(pair), strict=True):
            fresh = self.folder / f".{name}"
            fresh.write_bytes(content)
            fresh.replace(self.folder / name)


@dataclass
class SteadyClock:
    """A monotonic clock that the test moves."""

    at_s: float = 0.0

    def seconds(self) -> float:
        return self.at_s


class SlowStore(MemoryStore):
    """A store that answers when the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.is_open = Event()
        self.is_open.set()

    def refresh(self) -> None:
        assert self.is_open.wait(SOON_S)
        super().refresh()


class Replica:
    """A running server that follows until it leads."""

    def __init__(self, files: TlsFiles, tokens: TokenCheck | None, rows: dict[str, Any]) -> None:
        self.world = World(cluster(num_nodes=2, slots=4, per_leaf=2))
        self.store = SlowStore()
        self.store.rows = rows
        world = self.world
        objects = cast("ReservationObjects", self.store)
        ledger = ReservationLedger(objects, now=world.clock.now, clock=world.clock.seconds)
        ledger.publish(world.base)
        self.clock = SteadyClock()
        certificates = ServerCertificates(files, overlap_s=OVERLAP_S, clock=self.clock.seconds)
        self.calls = ForwardedCalls(
            ReservationServicer(ledger).answer,
            ledger.find_leader,
            certificates,
            has_tokens=tokens is not None,
        )
        published = PublishedState(world.base)
        self.server = PlacementServer(
            ANY_PORT,
            published,
            security=ServerSecurity(certificates, tokens),
            call_reservation=self.calls.answer,
        )

    @property
    def address(self) -> str:
        return self.server.address

    def lead(self) -> None:
        self.store.refusal = None

    def follow(self, address: str) -> None:
        problem = f"replica x leads: send the request to {address}"
        self.store.refusal = Refusal(RefusalKind.NOT_LEADER, problem, leader=address)

    def stop(self) -> None:
        self.server.stop(deadline_s=0)
        self.calls.close()


@contextmanager
def replicated(
    files: TlsFiles, tokens: TokenCheck | None, other: TlsFiles | None = None
) -> Iterator[tuple[Replica, Replica]]:
    """Run a leader and a follower with the same reservations.

    Args:
        files: of both, unless `other` is given.
        tokens: checks the tokens of both.
        other: the files of the follower.
    """
    rows: dict[str, Any] = {}
    leader = Replica(files, tokens, rows)
    follower = Replica(other or files, tokens, rows)
    follower.follow(leader.address)
    try:
        yield leader, follower
    finally:
        leader.stop()
        follower.stop()


@dataclass
class Overheard:
    """One call, as a server saw it."""

    metadata: Mapping[str, str | bytes]
    left_s: float
    has_ended: Event = field(default_factory=Event)
    """Set when the caller has disconnected."""


class Listener:
    """A gRPC server that records calls, and answers none of them, or each with a failure."""

    def __init__(self, pair: tuple[bytes, bytes]) -> None:
        self.failure: CallFailure | None = None
        self.metadata: tuple[tuple[str, str], ...] = ()
        """Of its answers."""
        self.calls: list[Overheard] = []
        self.has_call = Event()
        self._lock = Lock()
        self._server = grpc.server(ThreadPoolExecutor(16))
        self._server.add_generic_rpc_handlers((_Everything(self._record),))
        cert, key = pair
        credentials = grpc.ssl_server_credentials([(key, cert)])
        self.address = f"127.0.0.1:{self._server.add_secure_port(ANY_PORT, credentials)}"
        self._server.start()

    def stop(self) -> None:
        self._server.stop(0)

    def _record(self, _request: bytes, context: grpc.ServicerContext) -> bytes:
        metadata = {str(key): value for key, value in context.invocation_metadata()}
        call = Overheard(metadata, context.time_remaining())
        context.add_callback(call.has_ended.set)
        with self._lock:
            self.calls.append(call)
        self.has_call.set()
        if self.failure is not None:
            context.send_initial_metadata(self.metadata)
            context.abort_with_status(encode_status(self.failure))
        call.has_ended.wait(SOON_S)
        return b""


class _Everything(grpc.GenericRpcHandler):
    """Routes each method to one function."""

    def __init__(self, behavior: Any) -> None:  # noqa: ANN401 - gRPC's
        self._handler: Any = grpc.unary_unary_rpc_method_handler(behavior)

    def service(self, _details: grpc.HandlerCallDetails) -> Any:  # noqa: ANN401 - gRPC's
        return self._handler


class Caller:
    """A caller of one replica, with a token or a client certificate."""

    def __init__(
        self,
        address: str,
        authority: Authority,
        token: str = "",
        client: tuple[bytes, bytes] | None = None,
    ) -> None:
        cert, key = client or (None, None)
        credentials = grpc.ssl_channel_credentials(authority.pem, key, cert)
        name = (("grpc.ssl_target_name_override", SERVICE_NAMES[0]),)
        self.channel = grpc.secure_channel(address, credentials, options=name)
        self.stub = placement_pb2_grpc.PlacementServiceStub(self.channel)
        self.metadata: tuple[tuple[str, str | bytes], ...] = (
            (("authorization", f"Bearer {token}"),) if token else ()
        )

    def reserve(self, number: int = 1, *, timeout_s: float = SOON_S) -> pb.ReserveResponse:
        return self.stub.Reserve(reserve_request(number), timeout=timeout_s, metadata=self.metadata)

    def confirm(self, number: int = 1) -> pb.Reservation:
        asked = pb.ConfirmRequest(id=id_of(number))
        return self.stub.Confirm(asked, timeout=SOON_S, metadata=self.metadata).reservation

    def release(self, number: int = 1) -> pb.Reservation:
        asked = pb.ReleaseRequest(id=id_of(number))
        return self.stub.Release(asked, timeout=SOON_S, metadata=self.metadata).reservation

    def fits(self, count: int) -> bool:
        spec = pb.PlacementSpec(groups=[pb.Group(name="w", count=count)])
        asked = pb.PlaceRequest(spec=spec)
        answer = self.stub.Place(asked, timeout=SOON_S, metadata=self.metadata)
        return bool(answer.placement.feasible)


def reserve_request(number: int = 1, count: int = 1) -> pb.ReserveRequest:
    spec = pb.PlacementSpec(gang=f"ns/g{number}", groups=[pb.Group(name="w", count=count)])
    return pb.ReserveRequest(request_id=id_of(number), spec=spec, ttl_s=3600)
