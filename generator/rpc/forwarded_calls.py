"""Forwards calls that only the leader can answer from a follower to the leader.

A caller behind a Service reaches any replica, and cannot call the leader's pod: it lacks a route to
it, and the certificate lacks its address. So a follower sends the call on, with the caller's proof
and what is left of the deadline, and returns the answer as it is.

- The leader must present a certificate that the replicas share. Only then the follower sends it
  anything, so no other server sees the caller's token.
- The leader reviews the token itself. A caller that has proved a client certificate instead is
  named by the follower; the leader believes the name only from a client with the replicas'
  certificate.
- A call is forwarded once. A replica that receives a forwarded call and does not lead refuses it.
- While an update rolls out, the leader and a follower may run different versions. The leader names
  its version. If it refuses a request and its version is another one, the caller may try again.
- A call ends with the caller's deadline, when the caller disconnects, and when another replica
  begins to lead. At most `MAX_FORWARDED` calls wait for the leader, so that placement never does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import version
from threading import Lock
from typing import Any, Final, NamedTuple, cast

import grpc

from generator.rpc.auth.authentication import (
    AUTHORIZATION,
    get_caller,
    identify_caller,
    set_caller,
)
from generator.rpc.auth.tls import PeerCredentials, ServerCertificates
from generator.rpc.limits import MAX_CALLER_FORWARDED, MAX_FORWARDED, MAX_MESSAGE_BYTES
from generator.rpc.placement_service import ReservationCall
from generator.rpc.status_errors import (
    CallAbortedError,
    CallFailure,
    FailureKind,
    build_abort,
    decode_failure,
)
from generator.rpc.toponaut.v1 import placement_pb2_grpc
from runtime.fair_share import FairShare
from runtime.transition_log import TransitionLog
from topology.model.errors import show

log = logging.getLogger(__name__)

FORWARDED_FOR: Final = "toponaut-forwarded-for-bin"
"""Metadata of a forwarded call: the caller's name, empty if a token proves it to the leader."""
LEADER_VERSION: Final = "toponaut-leader-version"
"""Metadata of the answer to a forwarded call: the version of the replica that leads."""
_CHECK_S: Final = 1.0
"""How often a waiting call checks who leads."""
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.enable_http_proxy", 0),  # replicas are in one cluster
    ("grpc.min_reconnect_backoff_ms", 5_000),  # also the limit of one attempt to connect
    # A leader that comes back at the same address is found soon.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2_000),
)
_CERTIFICATE: Final = "x509_pem_cert"
"""The property of a connection with the client's certificate, as gRPC names it."""
_MAX_REASON: Final = 300
"""Characters of an error of gRPC or an address that are repeated."""
_LEADER_CHANGES: Final = CallFailure(
    FailureKind.NO_LEADER, "another replica begins to lead; try again"
)
_Metadata = tuple[tuple[str, str | bytes], ...]


class _LeaderConnection(NamedTuple):
    """A channel to a leader."""

    address: str
    credentials: PeerCredentials
    channel: grpc.Channel


class ForwardedCalls:
    """The calls about reservations of a replica: answered here, or by the leader; thread-safe."""

    def __init__(
        self,
        answer_here: ReservationCall,
        find_leader: Callable[[], str],
        certificates: ServerCertificates,
        *,
        has_tokens: bool,
    ) -> None:
        """Connect to no replica yet.

        Args:
            answer_here: answers calls while this replica leads.
            find_leader: returns the leader's address; empty if this replica leads, or if no
                replica with an address is known to.
            certificates: the certificates that the replicas share.
            has_tokens: callers prove who they are with a token.
        """
        self._answer_here = answer_here
        self._find_leader = find_leader
        self._certificates = certificates
        self._has_tokens = has_tokens
        self._version = version("toponaut")
        self._lock = Lock()
        self._forwarded = FairShare(MAX_FORWARDED, per_caller=MAX_CALLER_FORWARDED)
        self._connection: _LeaderConnection | None = None
        self._unreachable_log = TransitionLog(log, "unreachable leader", level=logging.WARNING)

    def close(self) -> None:
        """Close the connection to the leader."""
        with self._lock:
            self._replace(None)

    def answer(self, method: str, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: ANN401 - any message
        """Answer the call `Reserve`, `Confirm` or `Release`, by the name in `method`.

        Raises:
            CallAbortedError: the call fails here or at the leader, or finds no leader.
        """
        names = _read_metadata(context, FORWARDED_FOR)
        if names:
            context.send_initial_metadata(((LEADER_VERSION, self._version),))
        try:
            with self._as_caller(names, context):
                return self._answer_here(method, request, context)
        except CallAbortedError as error:
            leader = error.failure.leader
            proof = self._build_proof(context)
            is_led = error.failure.kind is FailureKind.NOT_LEADER and leader
            if names or not is_led or proof is None:
                raise
        caller = identify_caller(context)
        with self._forwarded.hold(caller) as has_slot:
            if not has_slot:
                calls = f"{MAX_CALLER_FORWARDED} calls of this caller, or {MAX_FORWARDED} in all,"
                raise build_abort(FailureKind.OVERLOADED, f"{calls} wait for the leader")
            stub = placement_pb2_grpc.PlacementServiceStub(self._open_channel(leader))
            call: grpc.Future[Any] = getattr(stub, method).future(
                request, timeout=context.time_remaining(), metadata=proof
            )
            if not context.add_callback(call.cancel):  # type: ignore[arg-type]  # its answer is not used
                call.cancel()
            return self._await_answer(call, leader)

    def _as_caller(
        self, names: Sequence[str | bytes], context: grpc.ServicerContext
    ) -> AbstractContextManager[None]:
        """Return a context in which a replica's call counts as the named caller's call."""
        name = names[0] if names else b""
        if self._has_tokens or not isinstance(name, bytes) or not name:
            return nullcontext()
        # The stubs have one value for each property; gRPC has a list.
        proved = cast("Sequence[bytes]", context.auth_context().get(_CERTIFICATE, ()))
        is_replica = any(self._certificates.is_of_replica(pem) for pem in proved)
        return set_caller(name.decode("utf-8", "replace")) if is_replica else nullcontext()

    def _build_proof(self, context: grpc.ServicerContext) -> _Metadata | None:
        """Return the metadata of a forwarded call; None if the caller has no name to pass on."""
        if self._has_tokens:
            tokens = _read_metadata(context, AUTHORIZATION)
            return (FORWARDED_FOR, b""), *((AUTHORIZATION, token) for token in tokens)
        name = get_caller(context)
        return ((FORWARDED_FOR, name.encode()),) if name else None

    def _await_answer(self, call: grpc.Future[Any], address: str) -> Any:  # noqa: ANN401 - any message
        while True:
            try:
                answer = call.result(timeout=_CHECK_S)
            except grpc.FutureTimeoutError:
                if self._find_leader() == address:
                    continue
                call.cancel()
                raise CallAbortedError(_LEADER_CHANGES) from None
            except grpc.FutureCancelledError as error:
                problem = "the call was cancelled"
                raise build_abort(FailureKind.LEADER_UNREACHABLE, problem) from error
            except grpc.RpcError as error:
                failure = self._translate_error(cast("grpc.Call", error), address)
                raise CallAbortedError(failure) from error
            self._log_problem(address, "")
            return answer

    def _translate_error(self, call: grpc.Call, address: str) -> CallFailure:
        """Return the leader's own failure, or that it gave no answer."""
        failure = decode_failure(call)
        if failure is not None:
            self._log_problem(address, "")
            if failure.kind in {FailureKind.NOT_LEADER, FailureKind.NO_LEADER}:
                return _LEADER_CHANGES
            # This replica has read the request, and found no fault in it.
            is_refused = failure.kind is FailureKind.INVALID_REQUEST
            return (is_refused and self._explain_version(call, failure)) or failure
        reason = f"{call.code().name}: {show(call.details() or '', _MAX_REASON)}"
        self._log_problem(address, reason)
        problem = f"the leader at {show(address, _MAX_REASON)} gave no answer ({reason}); try again"
        return CallFailure(FailureKind.LEADER_UNREACHABLE, problem)

    def _explain_version(self, call: grpc.Call, failure: CallFailure) -> CallFailure | None:
        """Return the failure if a leader of another version refuses; None for this version."""
        named = [str(value) for key, value in call.initial_metadata() if key == LEADER_VERSION]
        if named == [self._version]:
            return None
        leader = show(named[0], _MAX_REASON) if named else "an earlier one"
        field = f"{failure.field}: " if failure.field else ""
        problem = (
            f"the leader has another version ({leader}) than this replica ({self._version}) and "
            f"does not understand the request ({field}{failure.problem}): try again once the "
            "update has reached all replicas"
        )
        return CallFailure(FailureKind.LEADER_DIFFERS, problem)

    def _log_problem(self, address: str, problem: str) -> None:
        """Log once that a leader gives no answer, and once that it answers again."""
        with self._lock:
            fields = {"address": address, "error": problem}
            self._unreachable_log.update({address: fields} if problem else {})

    def _open_channel(self, address: str) -> grpc.Channel:
        """Return the channel to the leader; a new one for another leader or certificate."""
        credentials = self._certificates.read_peer_credentials()
        with self._lock:
            current = self._connection
            if current is None or (current.address, current.credentials) != (address, credentials):
                channel = _open_channel(address, credentials)
                current = _LeaderConnection(address, credentials, channel)
                self._replace(current)
            return current.channel

    def _replace(self, connection: _LeaderConnection | None) -> None:
        if self._connection is not None:
            self._connection.channel.close()
        self._connection = connection


def _read_metadata(context: grpc.ServicerContext, name: str) -> list[str | bytes]:
    return [value for key, value in context.invocation_metadata() if key == name]


def _open_channel(address: str, peer: PeerCredentials) -> grpc.Channel:
    key, chain = peer.pair or (None, None)
    credentials = grpc.ssl_channel_credentials(peer.trusted, key, chain)
    name = (("grpc.ssl_target_name_override", peer.server_name),) if peer.server_name else ()
    # The scheme keeps gRPC from reading an address in a Lease as a path or a scheme of its own.
    return grpc.secure_channel(f"dns:///{address}", credentials, options=(*_OPTIONS, *name))
