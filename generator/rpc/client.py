"""The client of a server: one channel, with retries and translated errors.

It places gangs for `toponaut place --server`, and calls any method with documents for
`toponaut rpc`. Repeating a call is safe for every method. The module imports no server code.
"""

from __future__ import annotations

import logging
import random  # noqa: TID251 - this is an edge: it spreads retries
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Event
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, TypeVar

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from generator.placement.answer import Placement
from generator.placement.cluster.nodes import RunningGang
from generator.placement.request import parse_request
from generator.rpc.auth.key_files import NO_TLS, ClientIdentity, read_key_file
from generator.rpc.auth.loopback import parse_listen_address, parse_loopback_address
from generator.rpc.limits import MAX_MESSAGE_BYTES
from generator.rpc.messages.answers import decode_placement
from generator.rpc.messages.requests import encode_request
from generator.rpc.reported_pods import encode_running_pods
from generator.rpc.status_errors import CallFailure, FailureKind, decode_failure
from generator.rpc.toponaut.v1 import placement_pb2, placement_pb2_grpc, topology_pb2
from runtime.retry import Backoff
from topology.model.errors import ConfigError, PlacementRequestError, TopologyError, show
from topology.model.tree import API_VERSION

Metadata = tuple[tuple[str, str], ...]
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.enable_http_proxy", 0),  # a proxy cannot reach this machine's loopback
)
PARSE_LOGGER: Final = "grpc._common"
"""Where gRPC logs a message that it cannot read."""
_NOT_HTTP2: Final = "Failed parsing HTTP/2"
"""Part of the details of a call to a server of another protocol, such as HTTP/1.1 or SSH."""
_TOO_MANY_CALLS: Final = "Concurrent RPC limit exceeded!"
"""Details of a call that gRPC itself refused; other exhaustion concerns sizes and is permanent."""
_KIND: Final = "PlacementRequest"
METHODS: Final[Mapping[str, MethodDescriptor]] = {
    method.name: method
    for file in (placement_pb2.DESCRIPTOR, topology_pb2.DESCRIPTOR)
    for service in file.services_by_name.values()
    for method in service.methods
}
"""By name, in the order of the proto files."""
AnswerT = TypeVar("AnswerT")


class PlacementServerError(TopologyError):
    """A server was reached and gave no answer."""


class Retries(NamedTuple):
    """Number and delays of the attempts of a call that may fail transiently."""

    max_attempts: int = 4
    """Including the first attempt."""
    backoff: Backoff = Backoff(first_s=0.1, limit_s=2.0)
    uniform: Callable[[float, float], float] = random.SystemRandom().uniform


def _warn_without_traceback(record: logging.LogRecord) -> bool:
    """Log an unreadable answer as one line: the call fails, and its caller gets the error."""
    record.exc_info = record.exc_text = None
    record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
    return True


def _is_late(error: grpc.RpcError) -> bool:
    # Errors of calls are of a class of their own, with a code.
    code = getattr(error, "code", None)
    return callable(code) and code() is grpc.StatusCode.DEADLINE_EXCEEDED


class PlacementClient:
    """A channel to a server; thread-safe."""

    def __init__(
        self,
        address: str,
        timeout_s: float,
        identity: ClientIdentity = NO_TLS,
        *,
        retries: Retries = Retries(),  # noqa: B008 - immutable
    ) -> None:
        """Store the address; the first call connects.

        Args:
            address: `HOST:PORT`; must be loopback without an identity, because there is no TLS.
            timeout_s: deadline of each call with all its attempts, and the time limit of a search.
            identity: TLS files and token, for servers that require them.
            retries: how calls that fail transiently are tried again.

        Raises:
            ConfigError: the address is malformed, or not loopback without an identity, or a file is
                unusable.
        """
        logging.getLogger(PARSE_LOGGER).addFilter(_warn_without_traceback)
        self.timeout_s = timeout_s
        self._retries = retries
        self._token = identity.token
        self._is_plain = is_plain = not any(identity)
        self.address = (
            parse_loopback_address(address) if is_plain else parse_listen_address(address)
        )
        self.channel = (
            grpc.insecure_channel(self.address, options=_OPTIONS)
            if is_plain
            else _open_secure_channel(self.address, identity)
        )

    def __enter__(self) -> Self:
        """Return the client; `with` closes it."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the channel."""
        self.channel.close()

    def place(
        self,
        document: Mapping[str, Any],
        running: RunningGang | None = None,
        *,
        take_running: bool = False,
    ) -> Placement:
        """Request a placement.

        Args:
            document: a document of kind PlacementRequest.
            running: pods of the gang that run already, and stay.
            take_running: whether the server must subtract them from the free capacity.

        Raises:
            TopologyError: as `call`.
        """
        message = placement_pb2.PlaceRequest(
            spec=encode_request(document),
            running=encode_running_pods(running),
            take_running=take_running,
        )
        stub = placement_pb2_grpc.PlacementServiceStub(self.channel)
        try:
            return decode_placement(self.call(stub.Place, message).placement)
        except ValueError as error:
            problem = f"the server at {self.address} has another version: {error}"
            raise PlacementServerError(problem) from error

    def call_method(
        self, method: MethodDescriptor, messages: Sequence[Message]
    ) -> Iterator[dict[str, Any]]:
        """Yield the answers of a method as documents; a watch ends when its time is up.

        Raises:
            TopologyError: as `call`.
        """
        kinds = {True: "stream", False: "unary"}
        name = f"{kinds[method.client_streaming]}_{kinds[method.server_streaming]}"
        open_call = getattr(self.channel, name)(
            f"/{method.containing_service.full_name}/{method.name}",
            GetMessageClass(method.input_type).SerializeToString,
            GetMessageClass(method.output_type).FromString,
        )
        if not method.server_streaming:
            yield _render_message(self.call(open_call, messages[0]))
            return
        sent = iter(messages) if method.client_streaming else messages[0]
        try:
            yield from map(_render_message, self._stream(open_call, sent))
        except ServerDeadlineError:
            if method.client_streaming:
                raise

    def call(self, method: Callable[..., AnswerT], message: Message) -> AnswerT:
        """Call a method; repeating a call must be safe, as it is for all toponaut methods.

        A transient failure is retried with growing delays, within the deadline.

        Raises:
            PlacementRequestError: the server refuses the request, or the message is too large.
            ConfigError: no server answers at the address, or it is another service, or the token
                file cannot be read.
            PlacementServerError: the server gave no answer in time, has no tree yet, or failed.
        """
        _check_size(message)
        ends_at = time.monotonic() + self.timeout_s
        attempt = 1
        before: grpc.RpcError | None = None
        while True:
            left_s = max(ends_at - time.monotonic(), 0.0)
            try:
                return method(message, timeout=left_s, metadata=self._metadata())
            except grpc.RpcError as error:
                wait_s = self._retries.backoff.delay_s(attempt, self._retries.uniform)
                is_late = time.monotonic() + wait_s >= ends_at
                if attempt >= self._retries.max_attempts or is_late or not is_transient(error):
                    # A retry that is cut short hides why the attempt before it failed.
                    cause = before if before is not None and _is_late(error) else error
                    raise self._translate_error(cause) from error
                before = error
            Event().wait(wait_s)
            attempt += 1

    def _stream(
        self, method: Callable[..., Any], message: Message | Iterator[Message]
    ) -> Iterator[Message]:
        """Yield the answers of one call, without retries. Closing the iterator cancels the call."""
        if isinstance(message, Message):
            _check_size(message)
        call = method(message, timeout=self.timeout_s, metadata=self._metadata())
        try:
            yield from call
        except grpc.RpcError as error:
            raise self._translate_error(error) from error
        finally:
            call.cancel()

    def _metadata(self) -> Metadata:
        if self._token is None:
            return ()
        token = read_key_file(self._token).decode("ascii", "replace").strip()
        if not token.isascii() or not token.isprintable() or not token:
            raise ConfigError(f"{self._token}: contains no bearer token")
        return (("authorization", f"Bearer {token}"),)

    def _translate_error(self, error: object) -> TopologyError:
        """Return the error of this project for an error of gRPC."""
        if not isinstance(error, grpc.Call):
            return PlacementServerError(f"the call to {self.address} failed: {show(str(error))}")
        failure = decode_failure(error)
        return self._build_refused_error(failure) if failure else self._build_status_error(error)

    def _build_refused_error(self, failure: CallFailure) -> TopologyError:
        field, problem = show(failure.field.removeprefix("spec."), 200), show(failure.problem, 500)
        match failure.kind:
            case FailureKind.INVALID_REQUEST:
                return PlacementRequestError(field or "spec", problem)
            case FailureKind.UNSUPPORTED_REQUEST:
                return ConfigError(f"the server at {self.address}: {problem}")
            case _:
                return RefusedCallError(f"the server at {self.address}: {problem}", failure.kind)

    def _build_status_error(self, call: grpc.Call) -> TopologyError:
        match call.code():
            case grpc.StatusCode.UNAVAILABLE if _NOT_HTTP2 in (call.details() or ""):
                return ConfigError(f"the server at {self.address} is not a gRPC server")
            case grpc.StatusCode.UNAVAILABLE if not self._is_plain:
                reason = show(call.details() or "", 300)
                return ConfigError(f"no TLS connection to {self.address}: {reason}")
            case grpc.StatusCode.UNAVAILABLE:
                return ConfigError(
                    f"no server answers at {self.address}: start one with toponaut serve --store "
                    f"DIR --insecure-loopback --listen {self.address}; "
                    "a server with TLS requires --ca-file"
                )
            case grpc.StatusCode.UNIMPLEMENTED:
                return ConfigError(f"the server at {self.address} is not a placement server")
            case grpc.StatusCode.DEADLINE_EXCEEDED:
                problem = f"gave no answer within {self.timeout_s:g} s"
                return ServerDeadlineError(f"the server at {self.address} {problem}")
            case code:
                reason = f"{code.name}: {show(call.details() or '', 500)}"
                return PlacementServerError(f"the server at {self.address} failed: {reason}")


class RefusedCallError(PlacementServerError):
    """A toponaut server refused the call and said why."""

    def __init__(self, message: str, kind: FailureKind) -> None:
        """Store the kind of failure."""
        super().__init__(message, kind)
        self.kind = kind

    def __str__(self) -> str:
        """Return the message for people."""
        return str(self.args[0])


class ServerDeadlineError(PlacementServerError):
    """The deadline of a call has passed."""


def is_transient(error: object) -> bool:
    """Return whether the same call may succeed a little later."""
    if not isinstance(error, grpc.Call):
        return False
    details, failure = error.details() or "", decode_failure(error)
    match error.code():
        case grpc.StatusCode.UNAVAILABLE:
            return _NOT_HTTP2 not in details
        case grpc.StatusCode.RESOURCE_EXHAUSTED:
            return details == _TOO_MANY_CALLS or (failure is not None and failure.kind.is_transient)
        case _:
            return False


def _open_secure_channel(address: str, identity: ClientIdentity) -> grpc.Channel:
    if (identity.cert is None) != (identity.key is None):
        raise ConfigError("give both the client certificate and its key")
    credentials = grpc.ssl_channel_credentials(
        root_certificates=read_key_file(identity.ca) if identity.ca else None,
        private_key=read_key_file(identity.key) if identity.key else None,
        certificate_chain=read_key_file(identity.cert) if identity.cert else None,
    )
    name_options = (
        (("grpc.ssl_target_name_override", identity.server_name),) if identity.server_name else ()
    )
    return grpc.secure_channel(address, credentials, options=(*_OPTIONS, *name_options))


def parse_message(method: MethodDescriptor, document: object, source: str) -> Message:
    """Return the message of a document.

    The format is protobuf JSON, with fields spelled as in the proto file, and `spec` and `specs` as
    in a PlacementRequest. A whole PlacementRequest is accepted by a method that has a `spec`.

    Raises:
        ConfigError: the document does not match the message; PlacementRequestError if it is a
            malformed PlacementRequest.
    """
    if not isinstance(document, dict):
        raise ConfigError(f"{source}: expected an object, got {type(document).__name__}")
    fields, build_message = method.input_type.fields_by_name, GetMessageClass(method.input_type)
    if document.get("kind") == _KIND and "spec" in fields:
        return build_message(spec=_parse_request(document))
    requests: dict[str, Any] = {}
    if "spec" in fields and "spec" in document:
        requests["spec"] = _parse_spec(document["spec"])
    if "specs" in fields and isinstance(document.get("specs"), list):
        requests["specs"] = [_parse_spec(spec) for spec in document["specs"]]
    rest = {name: value for name, value in document.items() if name not in requests}
    try:
        return ParseDict(rest, build_message(**requests))
    except (ParseError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(
            f"{source}: not a {method.input_type.name}: {show(str(error), 300)}"
        ) from error


def _parse_spec(spec: object) -> Message:
    return _parse_request({"apiVersion": API_VERSION, "kind": _KIND, "spec": spec})


def _parse_request(document: Mapping[str, Any]) -> Message:
    """Return the message of a request, after a check of all rules."""
    parse_request(document)
    return encode_request(document)


def _render_message(message: Message) -> dict[str, Any]:
    """Return a message with all its fields, also the defaults, such as `feasible: false`."""
    return MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )


def _check_size(message: Message) -> None:
    """Check that a message is not too large to send: gRPC would refuse it before it is read.

    Raises:
        PlacementRequestError: it has more bytes than the limit.
    """
    num_bytes = message.ByteSize()
    if num_bytes > MAX_MESSAGE_BYTES:
        problem = f"takes {num_bytes} bytes; a server takes {MAX_MESSAGE_BYTES} at most"
        raise PlacementRequestError("spec", problem)
