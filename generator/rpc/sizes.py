"""Messages that no server takes, and what makes them so large.

gRPC itself refuses them with RESOURCE_EXHAUSTED before it has read them, so no server can say more;
callers look before they send.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from google.protobuf.message import Message

from generator.rpc.limits import MAX_MESSAGE_BYTES
from topology.errors import PlacementRequestError

_NUMBER_BYTES = 8
"""Of a number in a message, about."""


def check_size(message: Message) -> None:
    """Look whether a message may be sent.

    Raises:
        PlacementRequestError: it is too large; names the field that most of it is.
    """
    num_bytes = message.ByteSize()
    if num_bytes <= MAX_MESSAGE_BYTES:
        return
    path: list[str] = []
    inside, size = cast("object", message), num_bytes
    while isinstance(inside, Message):
        sizes = [(_size(value), field.name, value) for field, value in inside.ListFields()]
        size, name, inside = max(sizes, key=lambda row: row[0])
        path.append(name)
    problem = (
        f"takes {size} of the {num_bytes} bytes of the message; a server takes no more than "
        f"{MAX_MESSAGE_BYTES}"
    )
    raise PlacementRequestError(".".join(path).removeprefix("spec."), problem)


def _size(value: object) -> int:
    """Return about how many bytes a value takes."""
    match value:
        case Message():
            return value.ByteSize()
        case str():
            return len(value.encode(errors="replace"))
        case bytes():
            return len(value)
        case Iterable():  # of repeated fields, and of the keys of maps
            return sum(map(_size, value))
        case _:
            return _NUMBER_BYTES
