"""All methods by name, called with messages from documents: for `toponaut rpc`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from generator.placement.request import parse_request
from generator.rpc.client.connection import Connection, ServerDeadlineError
from generator.rpc.messages.requests import encode_request
from generator.rpc.toponaut.v1 import placement_pb2, topology_pb2
from topology.model.errors import ConfigError, show
from topology.model.tree import API_VERSION

_KIND: Final = "PlacementRequest"


class RpcMethod(NamedTuple):
    """A method of a service."""

    path: str
    """Full name in gRPC: `/SERVICE/METHOD`."""
    request_type: type[Message]
    response_type: type[Message]
    is_client_streaming: bool
    is_server_streaming: bool


def _find_methods(service: ServiceDescriptor) -> Iterator[tuple[str, RpcMethod]]:
    for method in service.methods:
        yield (
            method.name,
            RpcMethod(
                f"/{service.full_name}/{method.name}",
                GetMessageClass(method.input_type),
                GetMessageClass(method.output_type),
                method.client_streaming,
                method.server_streaming,
            ),
        )


METHODS: Final[Mapping[str, RpcMethod]] = dict(
    pair
    for file in (placement_pb2.DESCRIPTOR, topology_pb2.DESCRIPTOR)
    for service in file.services_by_name.values()
    for pair in _find_methods(service)
)
"""By name, in the order of the proto files."""


def parse_message(method: RpcMethod, document: object, source: str) -> Message:
    """Return the message of a document.

    The format is protobuf JSON, with fields spelled as in the proto file, and `spec` and `specs` as
    in a PlacementRequest. A whole PlacementRequest is accepted by a method that has a `spec`.

    Raises:
        ConfigError: the document does not match the message; PlacementRequestError if it is a
            malformed PlacementRequest.
    """
    if not isinstance(document, dict):
        raise ConfigError(f"{source}: expected an object, got {type(document).__name__}")
    fields = method.request_type.DESCRIPTOR.fields_by_name
    if document.get("kind") == _KIND and "spec" in fields:
        return method.request_type(spec=_parse_request(document))
    requests: dict[str, Any] = {}
    if "spec" in fields and "spec" in document:
        requests["spec"] = _parse_spec(document["spec"])
    if "specs" in fields and isinstance(document.get("specs"), list):
        requests["specs"] = [_parse_spec(spec) for spec in document["specs"]]
    rest = {name: value for name, value in document.items() if name not in requests}
    try:
        return ParseDict(rest, method.request_type(**requests))
    except (ParseError, ValueError, TypeError, AttributeError, RecursionError) as error:
        name = method.request_type.DESCRIPTOR.name
        raise ConfigError(f"{source}: not a {name}: {show(str(error), 300)}") from error


def _parse_spec(spec: object) -> Message:
    return _parse_request({"apiVersion": API_VERSION, "kind": _KIND, "spec": spec})


def _parse_request(document: Mapping[str, Any]) -> Message:
    """Return the message of a request that keeps all rules."""
    parse_request(document)
    return encode_request(document)


def call_method(
    connection: Connection, method: RpcMethod, messages: Iterable[Message]
) -> Iterator[dict[str, Any]]:
    """Yield the answers of a method as documents; a stream ends when its time is up.

    Raises:
        TopologyError: as Connection.call.
    """
    serialize, parse = method.request_type.SerializeToString, method.response_type.FromString
    if not method.is_server_streaming:
        (message,) = messages
        call_unary = connection.channel.unary_unary(method.path, serialize, parse)
        yield _render_message(connection.call(call_unary, message))
        return
    if method.is_client_streaming:
        open_stream = connection.channel.stream_stream(method.path, serialize, parse)
        yield from map(
            _render_message, connection.stream(open_stream, iter(messages), connection.timeout_s)
        )
        return
    (message,) = messages
    watch = connection.channel.unary_stream(method.path, serialize, parse)
    try:
        yield from map(_render_message, connection.stream(watch, message, connection.timeout_s))
    except ServerDeadlineError:
        return


def _render_message(message: Message) -> dict[str, Any]:
    """Return a message with all its fields, also the defaults, such as `feasible: false`."""
    return MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
