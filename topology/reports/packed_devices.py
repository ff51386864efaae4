"""Devices as bytes, so that ten thousand reports take ten megabytes.

A port with its neighbor is about twenty objects, and no code reads them until the fabric changes.
A packed report takes a twentieth of that memory: the shapes of its ports once each, and the texts
in which the ports differ. The join reads these texts without building the device. Pure; the bytes
never leave the process.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, repeat
from typing import Final, NamedTuple, TypeVar

from topology.model.facts import Device
from topology.model.ids import Id
from topology.reports.port_shapes import (
    DeviceShape,
    PortShape,
    parse_device_shape,
    parse_port_shape,
    split_device,
    split_port,
)

ItemT = TypeVar("ItemT")
_LEVEL: Final = 1
"""A third of the time of the usual level 6, and a third more bytes."""
_ESCAPED: Final = "\\"
"""The first line, if texts may contain line breaks, which are escaped then."""
_HEAD_BYTES: Final = 4096
"""Most devices have their own ids within so many bytes."""
_NUM_FIXED_LINES: Final = 4
"""The first line, the shape of the device, the order of the ports, and the number of shapes."""


class ShapedDevice(NamedTuple):
    """A device as shapes and texts."""

    head: DeviceShape
    head_texts: Sequence[str]
    order: Sequence[int]
    """By port: the index of its shape."""
    shapes: Sequence[PortShape]
    """Ordered by the first port of each shape."""
    columns: Sequence[Sequence[Sequence[str]]]
    """By shape, then by text of the shape: the texts of its ports, in their order."""

    @property
    def num_neighbors(self) -> int:
        """The number of neighbor entries at all ports."""
        counts = zip(self.shapes, self.port_counts(), strict=True)
        return sum(len(shape.port.neighbors) * num_ports for shape, num_ports in counts)

    @property
    def num_neighbor_ids(self) -> int:
        """The number of ids in all neighbor entries, of devices and of their ports."""
        counts = zip(self.shapes, self.port_counts(), strict=True)
        return sum(
            num_ports * sum(len(one.device_ids) + len(one.port_ids) for one in shape.port.neighbors)
            for shape, num_ports in counts
        )

    def port_counts(self) -> list[int]:
        """Return the number of ports of each shape."""
        counts: Counter[int] | None = None
        found = []
        for index, columns in enumerate(self.columns):
            if not columns and counts is None:
                counts = Counter(self.order)
            found.append(len(columns[0]) if columns else counts[index] if counts else 0)
        return found

    def texts_by_port(self, index: int) -> Iterable[tuple[str, ...]]:
        """Return the texts of each port of a shape, given by its index."""
        if not self.shapes[index].num_texts:
            return repeat(())
        return zip(*self.columns[index], strict=True)

    def texts_at(self, index: int, place: int | None) -> Iterator[str]:
        """Return one text of each port of a shape; endless empty texts if the shape has none.

        Args:
            index: of the shape.
            place: of the text; None if the shape has no such text.
        """
        return repeat("") if place is None else iter(self.columns[index][place])

    def in_order(self, by_shape: Sequence[Iterator[ItemT]]) -> list[ItemT]:
        """Return one item per port, in the order of the ports.

        Args:
            by_shape: the items of the ports of each shape.
        """
        if len(by_shape) == 1:
            return list(islice(by_shape[0], len(self.order)))
        return [next(by_shape[index]) for index in self.order]

    def build(self) -> Device:
        """Return the device. Cost: O(ports), 8 µs each."""
        ports = [
            map(shape.fill, map(iter, self.texts_by_port(index)))
            for index, shape in enumerate(self.shapes)
        ]
        return self.head.fill(iter(self.head_texts), self.in_order(ports))


def shape_device(device: Device) -> ShapedDevice:
    """Return a device as shapes and texts. Cost: O(ports), 5 µs each."""
    head, texts = split_device(device)
    return arrange_ports(head, texts, map(split_port, device.ports))


def arrange_ports(
    head: DeviceShape, head_texts: Sequence[str], ports: Iterable[tuple[PortShape, Sequence[str]]]
) -> ShapedDevice:
    """Return a device of the given shape whose ports are given as shapes and texts."""
    numbers: dict[str, int] = {}
    shapes: list[PortShape] = []
    rows: list[list[Sequence[str]]] = []
    order = []
    for shape, texts in ports:
        number = numbers.setdefault(shape.text, len(numbers))
        if number == len(shapes):
            shapes.append(shape)
            rows.append([])
        order.append(number)
        rows[number].append(texts)
    columns = [list(zip(*texts, strict=True)) for texts in rows]
    return ShapedDevice(head, head_texts, order, shapes, columns)


def pack_device(device: Device) -> bytes:
    """Return a device as bytes; equal devices give equal bytes. Cost: O(ports), 6 µs each."""
    return pack_and_measure(shape_device(device))[0]


def pack_and_measure(shaped: ShapedDevice) -> tuple[bytes, int]:
    """Return a device as bytes, and the size of its facts with the shape of each port.

    That is more than a small packed device takes.
    """
    texts = [*shaped.head_texts, *chain.from_iterable(chain.from_iterable(shaped.columns))]
    body, flag = "\n".join(texts), ""
    if "\\" in body or body.count("\n") + 1 > max(1, len(texts)):
        body, flag = "\n".join(map(_escape, texts)), _ESCAPED
    shapes = [shape.text for shape in shaped.shapes]
    order = " ".join(map(str, shaped.order))
    text = "\n".join((flag, shaped.head.text, order, str(len(shapes)), *shapes, body))
    counts = zip(shapes, shaped.port_counts(), strict=True)
    num_bytes = len(shaped.head.text) + sum(len(shape) * count for shape, count in counts)
    return zlib.compress(text.encode("utf-8", "surrogatepass"), _LEVEL), num_bytes + len(body)


def unpack_shaped(packed: bytes) -> ShapedDevice:
    """Return the device that was packed, as shapes and texts. Cost: O(texts), 50 ns each."""
    lines = zlib.decompress(packed).decode("utf-8", "surrogatepass").split("\n")
    head, order = parse_device_shape(lines[1]), list(map(int, lines[2].split()))
    start = _NUM_FIXED_LINES + int(lines[3])
    shapes = [parse_port_shape(line) for line in lines[_NUM_FIXED_LINES:start]]
    if lines[0] == _ESCAPED:
        lines[start:] = map(_unescape, lines[start:])
    stop = start + head.num_texts
    head_texts, columns, counts = lines[start:stop], [], Counter(order)
    for shape, num_ports in zip(shapes, map(counts.__getitem__, range(len(shapes))), strict=True):
        start = stop
        stop += num_ports * shape.num_texts
        starts = range(start, stop, num_ports)
        columns.append([lines[first : first + num_ports] for first in starts])
    return ShapedDevice(head, head_texts, order, shapes, columns)


def unpack_device(packed: bytes) -> Device:
    """Return the device that was packed. Cost: O(ports), 8 µs each."""
    return unpack_shaped(packed).build()


def unpack_ids(packed: bytes) -> tuple[Id, ...]:
    """Return the ids of a packed device; the texts of its ports, which follow, are not unpacked.

    Cost: O(ids), 1 µs each.
    """
    stream, lines = zlib.decompressobj(), list[bytes]()
    raw, num_lines, head = b"", _NUM_FIXED_LINES, None
    while len(lines) <= num_lines and not stream.eof:
        raw += stream.decompress(stream.unconsumed_tail if raw else packed, _HEAD_BYTES)
        lines = raw.split(b"\n", num_lines)
        if head is None and len(lines) > num_lines:
            head = parse_device_shape(lines[1].decode("utf-8", "surrogatepass"))
            num_lines += int(lines[3]) + head.num_texts
            lines = raw.split(b"\n", num_lines)
    if head is None or not head.num_texts:
        return unpack_device(packed).ids
    first = num_lines - head.num_texts
    texts = [line.decode("utf-8", "surrogatepass") for line in lines[first:num_lines]]
    is_escaped = lines[0] == _ESCAPED.encode()
    return head.fill(map(_unescape, texts) if is_escaped else iter(texts)).ids


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _unescape(text: str) -> str:
    parts = text.split("\\\\")
    return "\\".join(part.replace("\\n", "\n") for part in parts)
