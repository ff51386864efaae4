"""Refuses messages that exceed the size limit of a server, and names their largest field.

gRPC refuses such messages with RESOURCE_EXHAUSTED before it has read them, so the server cannot say
why. So clients check the size before they send.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter

from google.protobuf.message import Message

from generator.rpc.limits import MAX_MESSAGE_BYTES
from topology.model.errors import PlacementRequestError

_NUMBER_BYTES = 8
"""Approximate size of a number in a message."""


def check_size(message: Message, limit: int = MAX_MESSAGE_BYTES) -> None:
    """Check that a message is not too large to send.

    Raises:
        PlacementRequestError: it has more bytes than the limit; names the field that is largest.
    """
    num_bytes = message.ByteSize()
    if num_bytes <= limit:
        return
    path, size = "", num_bytes
    value: object = message
    while isinstance(value, Message):
        size, name, value = _find_largest_field(value)
        path = f"{path}.{name}"
    problem = (
        f"takes {size} of the {num_bytes} bytes of the message; a server takes {limit} at most"
    )
    raise PlacementRequestError(path.removeprefix(".").removeprefix("spec."), problem)


def _find_largest_field(message: Message) -> tuple[int, str, object]:
    """Return the largest field of a message: its size, its name and its value.

    For a repeated field, return one of its messages if it takes more than half of the field.
    """
    fields = [(_estimate_bytes(value), field.name, value) for field, value in message.ListFields()]
    size, name, value = max(fields, key=itemgetter(0))
    if isinstance(value, Sequence) and isinstance(value[0], Message):
        sizes = [_estimate_bytes(row) for row in value]
        index = sizes.index(max(sizes))
        if 2 * sizes[index] > size:
            return sizes[index], f"{name}[{index}]", value[index]
    return size, name, value


def _estimate_bytes(value: object) -> int:
    """Return about how many bytes a value takes."""
    match value:
        case Message():
            return value.ByteSize()
        case str():
            return len(value.encode(errors="replace"))
        case bytes():
            return len(value)
        case Mapping():
            return sum(_estimate_bytes(key) + _estimate_bytes(row) for key, row in value.items())
        case Iterable():
            return sum(map(_estimate_bytes, value))
        case _:
            return _NUMBER_BYTES
