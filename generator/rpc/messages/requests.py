"""Requests as protobuf messages, both ways: what they may hold, and placement requests.

protobuf ignores a field that it does not know. In a request it would be a bound that the answer
does not keep, so a request with such a field is refused. The numbers of fields that had another
form in an earlier version are reserved in the proto files: a sender of such a field is an earlier
client.

The JSON form of a message is the `spec` of a PlacementRequest document, so one parser validates all
requests and names problems by the same paths. Oversized messages are refused before it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from google.protobuf.descriptor_pb2 import DescriptorProto
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from generator.placement.request import PlacementRequest, parse_request, validate_document
from generator.placement.wire import MAX_GROUPS, MAX_PODS
from generator.rpc.status_errors import FailureKind, build_abort
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from topology.model.errors import PlacementRequestError, show
from topology.model.tree import API_VERSION

_EARLIER: Final = (
    "is of an earlier version: update the client, or generate its code again from the proto files"
)
_LATER: Final = "is not known to this version: update the server first"
_UNCHECKED_BYTES: Final = 16_384
"""Smaller messages cannot contain a list that is too long."""
MAX_NAME_CHARS: Final = 4096
"""Characters of any name in a larger message."""
MAX_LIST_ROWS: Final = 4096
"""Rows of any list except those of nodes."""


def encode_request(document: Mapping[str, Any]) -> pb.PlacementSpec:
    """Return the message of a document of kind PlacementRequest.

    Raises:
        PlacementRequestError: a field is malformed, or no message can hold it, for example a number
            beyond 64 bits.
    """
    spec = validate_document(document).model_dump(mode="json", exclude_defaults=True)
    try:
        return pb.PlacementSpec(**spec)
    except ValueError as error:
        raise PlacementRequestError("spec", f"cannot be sent: {show(str(error))}") from error


def decode_request(spec: pb.PlacementSpec) -> PlacementRequest:
    """Return the request of a message.

    Raises:
        PlacementRequestError: the request is malformed; paths are relative to the message.
    """
    if spec.ByteSize() > _UNCHECKED_BYTES:
        _check_sizes(spec)
    document = MessageToDict(spec, preserving_proto_field_name=True)
    return parse_request({"apiVersion": API_VERSION, "kind": "PlacementRequest", "spec": document})


def _check_sizes(spec: pb.PlacementSpec) -> None:
    """Refuse long names, and lists so long that validating them would take long."""
    num_groups = 0
    for path, message in walk_messages(spec):
        limit = MAX_PODS if isinstance(message, pb.Options) else MAX_LIST_ROWS
        for field, value in message.ListFields():
            if field.message_type is pb.Group.DESCRIPTOR:
                num_groups += len(value)
                _check_count(f"{path}{field.name}", num_groups, MAX_GROUPS)
            elif field.is_repeated:
                _check_count(f"{path}{field.name}", len(value), limit)
            elif isinstance(value, str) and len(value) > MAX_NAME_CHARS:
                problem = f"expected at most {MAX_NAME_CHARS} characters, got {len(value)}"
                raise PlacementRequestError(f"{path}{field.name}", problem)


def _check_count(field: str, count: int, limit: int) -> None:
    if count > limit:
        raise PlacementRequestError(field, f"expected at most {limit}, got {count}")


def walk_messages(message: Message, path: str = "") -> Iterator[tuple[str, Message]]:
    """Yield a message and all messages in it, each with the path before its fields."""
    yield path, message
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if not field.is_repeated:
            yield from walk_messages(value, f"{path}{field.name}.")
        elif isinstance(value, Mapping):
            for key, child in value.items():
                if isinstance(child, Message):
                    yield from walk_messages(child, f"{path}{field.name}.{key}.")
        else:
            for index, child in enumerate(value):
                yield from walk_messages(child, f"{path}{field.name}[{index}].")


def check_fields(message: Message) -> None:
    """Check that this version knows all fields of a message.

    Raises:
        CallAbortedError: it does not; says whether the client or the server is older.
    """
    known = type(message)()
    known.CopyFrom(message)
    known.DiscardUnknownFields()
    if known.ByteSize() == message.ByteSize():
        return
    for path, part in walk_messages(message):
        unknown = UnknownFieldSet(part)
        if len(unknown):
            number = unknown[0].field_number
            advice = _EARLIER if _is_reserved(part, number) else _LATER
            problem = f"field {number} of {part.DESCRIPTOR.name} {advice}"
            raise build_abort(FailureKind.INVALID_REQUEST, problem, path.removesuffix("."))


def _is_reserved(message: Message, number: int) -> bool:
    described = DescriptorProto()
    message.DESCRIPTOR.CopyToProto(described)
    return any(row.start <= number < row.end for row in described.reserved_range)
