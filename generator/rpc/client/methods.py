"""All methods by name, to be called with messages made of documents: for `toponaut rpc`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from generator.placement.request import parse_request
from generator.rpc.client.connection import Connection, LateServerError
from generator.rpc.messages.requests import request_message
from generator.rpc.toponaut.v1 import placement_pb2, topology_pb2
from topology.model.errors import ConfigError, show

_KIND: Final = "PlacementRequest"
_MOST_DEPTH: Final = 40
"""Of messages in messages; groups may be nested to 16 levels."""


class Method(NamedTuple):
    """One method of a service."""

    path: str
    """As gRPC calls it."""
    question: type[Message]
    answer: type[Message]
    takes_many: bool
    gives_many: bool


def _methods_of(service: ServiceDescriptor) -> Iterator[tuple[str, Method]]:
    for method in service.methods:
        yield (
            method.name,
            Method(
                f"/{service.full_name}/{method.name}",
                GetMessageClass(method.input_type),
                GetMessageClass(method.output_type),
                method.client_streaming,
                method.server_streaming,
            ),
        )


METHODS: Final[Mapping[str, Method]] = dict(
    pair
    for file in (placement_pb2.DESCRIPTOR, topology_pb2.DESCRIPTOR)
    for service in file.services_by_name.values()
    for pair in _methods_of(service)
)
"""By name, in the order of the proto files."""


def message_of(method: Method, document: object, source: str) -> Message:
    """Return the message of a document.

    The form is that of protobuf's JSON, fields spelt as in the proto file. A PlacementRequest
    stands for the `spec` of methods that have one.

    Raises:
        ConfigError: the document has other fields than the message; PlacementRequestError where
            it is a PlacementRequest that makes no sense.
    """
    if not isinstance(document, dict):
        raise ConfigError(f"{source}: expected an object, got {type(document).__name__}")
    if document.get("kind") == _KIND and "spec" in method.question.DESCRIPTOR.fields_by_name:
        spec = request_message(parse_request(document))
        return method.question(spec=spec)
    try:
        return ParseDict(document, method.question(), max_recursion_depth=_MOST_DEPTH)
    except (ParseError, ValueError, TypeError, AttributeError, RecursionError) as error:
        name = method.question.DESCRIPTOR.name
        raise ConfigError(f"{source}: no {name}: {show(str(error), 300)}") from error


def call(
    connection: Connection, method: Method, messages: Iterable[Message]
) -> Iterator[dict[str, Any]]:
    """Yield the answers of a method as documents; the time of a stream that is up ends it.

    Raises:
        TopologyError: as Connection.ask.
    """
    serialize, parse = method.question.SerializeToString, method.answer.FromString
    if not method.gives_many:
        (message,) = messages
        ask = connection.channel.unary_unary(method.path, serialize, parse)
        yield _document(connection.ask(ask, message))
        return
    if method.takes_many:
        stream = connection.channel.stream_stream(method.path, serialize, parse)
        yield from map(_document, connection.stream(stream, iter(messages), connection.timeout_s))
        return
    (message,) = messages
    watch = connection.channel.unary_stream(method.path, serialize, parse)
    try:
        yield from map(_document, connection.stream(watch, message, connection.timeout_s))
    except LateServerError:
        return


def _document(message: Message) -> dict[str, Any]:
    """Return a message with all its fields: that a gang does not fit must stand there."""
    return MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
