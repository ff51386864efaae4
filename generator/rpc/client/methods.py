"""All methods by name, called with messages from documents: for `toponaut rpc`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from google.protobuf.descriptor import MethodDescriptor
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


METHODS: Final[Mapping[str, MethodDescriptor]] = {
    method.name: method
    for file in (placement_pb2.DESCRIPTOR, topology_pb2.DESCRIPTOR)
    for service in file.services_by_name.values()
    for method in service.methods
}
"""By name, in the order of the proto files."""


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
    """Return the message of a request that keeps all rules."""
    parse_request(document)
    return encode_request(document)


def call_method(
    connection: Connection, method: MethodDescriptor, messages: Sequence[Message]
) -> Iterator[dict[str, Any]]:
    """Yield the answers of a method as documents; a stream ends when its time is up.

    Raises:
        TopologyError: as Connection.call.
    """
    kinds = {True: "stream", False: "unary"}
    open_call = getattr(
        connection.channel,
        f"{kinds[method.client_streaming]}_{kinds[method.server_streaming]}",
    )
    call = open_call(
        f"/{method.containing_service.full_name}/{method.name}",
        GetMessageClass(method.input_type).SerializeToString,
        GetMessageClass(method.output_type).FromString,
    )
    if not method.server_streaming:
        yield _render_message(connection.call(call, messages[0]))
        return
    sent = iter(messages) if method.client_streaming else messages[0]
    try:
        yield from map(_render_message, connection.stream(call, sent, connection.timeout_s))
    except ServerDeadlineError:
        if method.client_streaming:
            raise


def _render_message(message: Message) -> dict[str, Any]:
    """Return a message with all its fields, also the defaults, such as `feasible: false`."""
    return MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
