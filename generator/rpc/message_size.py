"""Messages that no server takes, and what makes them so large.

gRPC itself refuses them with RESOURCE_EXHAUSTED before it has read them, so no server can say more;
callers look before they send.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter

from google.protobuf.message import Message

from generator.rpc.limits import MAX_MESSAGE_BYTES
from topology.model.errors import PlacementRequestError

_NUMBER_BYTES = 8
"""Of a number in a message, about."""


def check_size(message: Message, most: int = MAX_MESSAGE_BYTES) -> None:
    """Look whether a message may be sent.

    Raises:
        PlacementRequestError: it has more bytes than that; names the field that most of it is.
    """
    num_bytes = message.ByteSize()
    if num_bytes <= most:
        return
    path, size = "", num_bytes
    inside: object = message
    while isinstance(inside, Message):
        size, name, inside = _find_largest_field(inside)
        path = f"{path}.{name}"
    problem = f"takes {size} of the {num_bytes} bytes of the message; a server takes {most} at most"
    raise PlacementRequestError(path.removeprefix(".").removeprefix("spec."), problem)


def _find_largest_field(message: Message) -> tuple[int, str, object]:
    """Return the largest field of a message: its size, its name and its value.

    Of several messages in it the one that is more than half of it, if there is such a one.
    """
    fields = [(_estimate_bytes(value), field.name, value) for field, value in message.ListFields()]
    size, name, value = max(fields, key=itemgetter(0))
    if isinstance(value, Sequence) and isinstance(value[0], Message):
        sizes = [_estimate_bytes(row) for row in value]
        at = sizes.index(max(sizes))
        if 2 * sizes[at] > size:
            return sizes[at], f"{name}[{at}]", value[at]
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
