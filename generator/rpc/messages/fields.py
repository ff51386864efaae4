"""The fields of a message: those of its inner messages, and those that are not known.

protobuf ignores a field that it does not know. In a request it would be a bound that the answer
does not keep, so a request with such a field is refused. The numbers of fields that had another
form in an earlier version are reserved in the proto files: who sends one is an earlier client.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from google.protobuf.descriptor_pb2 import DescriptorProto
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from generator.rpc.status_errors import FailureKind, build_abort

_EARLIER: Final = (
    "is of an earlier version: update the client, or generate its code again from the proto files"
)
_LATER: Final = "is not known to this version: update the server first"


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
