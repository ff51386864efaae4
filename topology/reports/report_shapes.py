"""Reports read by the shapes of their ports, without a JSON object per id. Pure.

One writer rendered the reports of a cluster, and their ports have few shapes. So the text of a
port is matched against the patterns of the shapes seen so far, which yields the texts in which it
differs. A port of a new shape is read in the usual way, and its pattern is learned. As the shape is
that of a port and not of a report, it does not matter which ports of a switch are down.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from operator import lt
from typing import Final, NamedTuple

from topology.reports.neighbor_report import ReportStatus
from topology.reports.packed_devices import ShapedDevice
from topology.reports.plain_reports import (
    MAX_NAME,
    MAX_PORTS,
    PlainReport,
    read_plain_port,
    read_plain_report,
)
from topology.reports.port_shapes import DeviceShape, PortShape, split_device, split_port
from topology.reports.report_patterns import HeadPattern, PortPattern, learn_head, learn_port

_MAX_SHAPES: Final = 128
_MIN_SEEN: Final = 3
"""So many ports of a shape are read in the usual way before its pattern is learned from the next:
learning costs as much as reading a hundred ports."""
_MAX_SEEN: Final = 4096
_MAX_LEARNED_BYTES: Final = 4096
_PORTS: Final = re.compile(r'"ports":\s*\[\s*(?=\{)')
_COMMA: Final = re.compile(r"\s*,\s*")
_END: Final = re.compile(r"\s*\]")
_LEAST_HEAD: Final = (
    '{"metadata": {"name": "x"}, "spec": {"device": {"kind": "host", "name": ""}, "ports": ['
)
"""Precedes the ports of a report of which only the status is read."""
_decode: Final = json.JSONDecoder().raw_decode


class ShapedReport(NamedTuple):
    """A report that was read by the shapes of its ports."""

    name: str
    status: ReportStatus
    device_name: str
    device: ShapedDevice


class ReportShapes:
    """The shapes of the ports read so far; a bounded number of them."""

    def __init__(self) -> None:
        """Start without shapes."""
        self._patterns: list[PortPattern] = []
        """The one that matched last is the first."""
        self._heads: list[HeadPattern] = []
        """Of what precedes the ports, in the same order."""
        self._seen: Counter[str] = Counter()
        """By shape without a pattern: how many ports or devices had it."""
        self.num_by_pattern = 0
        """How many ports were read by a pattern."""

    @property
    def num_shapes(self) -> int:
        """The number of shapes that have a pattern."""
        return len(self._patterns)

    def read(self, raw: bytes) -> ShapedReport | None:
        """Return the report in a file; None if it must be read in the usual way.

        Equal to what `read_plain_report` returns for the decoded file. Cost: 2 µs a port.
        """
        if not raw.startswith(b"{") or b"\\" in raw or not raw.isascii():
            return None  # a text may hold an escape or a character that our writers escape
        text = raw.decode("ascii")
        start = _PORTS.search(text)
        if start is None or text.count('"ports"') > 1:
            return None
        ports = _ReportPorts([], [], [], {})
        stop = self._read_ports(text, start.end(), ports)
        if not stop or not ports.are_sorted() or len(ports.order) > MAX_PORTS:
            return None
        head = self._match_head(text, start.end(), stop) or self._read_head(text, start.end(), stop)
        if head is None:
            return None
        device = ShapedDevice(head.shape, head.texts, ports.order, ports.shapes, ports.columns())
        return ShapedReport(head.name, head.status, head.device_name, device)

    def _match_head(self, text: str, start: int, stop: int) -> _Head | None:
        """Return what precedes the ports, if a pattern matches it, and the status after them.

        Args:
            text: the report.
            start: where the ports start.
            stop: where they end.
        """
        for index, pattern in enumerate(self._heads):
            found = pattern.match(text, 0, start)
            if found is not None and found.end() == start:
                self._heads.insert(0, self._heads.pop(index))
                break
        else:
            return None
        name, *texts = found.groups()
        rest = _read_without_ports(_LEAST_HEAD + text[stop:])
        if rest is None or len(name) > MAX_NAME or not _is_sorted(texts, pattern.ascending):
            return None
        device_name = texts[0] if pattern.shape.device.name else ""
        return _Head(name, rest.status, device_name, pattern.shape, texts)

    def _read_head(self, text: str, start: int, stop: int) -> _Head | None:
        """Return what surrounds the ports, read in the usual way; may learn its pattern."""
        bare = text[:start] + text[stop:]
        report = _read_without_ports(bare)
        if report is None:
            return None
        shape, texts = split_device(report.device)
        if self._is_worth_learning(shape.text, len(self._heads)):
            pattern = learn_head(bare, start, report, shape)
            if pattern is not None and _read_without_ports(_LEAST_HEAD + text[stop:]) is not None:
                self._heads.append(pattern)
        return _Head(report.name, report.status, report.device.name, shape, texts)

    def _read_ports(self, text: str, position: int, ports: _ReportPorts) -> int:
        """Add the ports of a list; return where it ends, or 0 if one is not plain."""
        last: PortPattern | None = None
        append, number, texts = ports.order.append, 0, tuple[str, ...]()
        while True:
            found = last.match(text, position) if last is not None else None
            if found is None:
                last = self._find_pattern(text, position)
                found = last.match(text, position) if last is not None else None
                if last is None or found is None:
                    one = self._read_port(text, position)
                    if one is None:
                        return 0
                    shape, texts, position = one
                    number = ports.number(shape)
                    last = None
                else:
                    number = ports.number(last.shape, last)
            if found is not None:
                texts, position = found.groups(), found.end()
                self.num_by_pattern += 1
            append(number)
            ports.rows[number].append(texts)
            if text.startswith(", ", position):
                position += 2
            elif (comma := _COMMA.match(text, position)) is not None:
                position = comma.end()
            else:
                return position if _END.match(text, position) else 0

    def _find_pattern(self, text: str, position: int) -> PortPattern | None:
        for index, pattern in enumerate(self._patterns):
            if pattern.match(text, position) is not None:
                self._patterns.insert(0, self._patterns.pop(index))
                return pattern
        return None

    def _read_port(self, text: str, position: int) -> tuple[PortShape, tuple[str, ...], int] | None:
        """Return shape, texts and end of a port that no pattern matches; None if it is not plain.

        Learns its pattern if several ports of its shape were seen.
        """
        try:
            row, stop = _decode(text, position)
        except (ValueError, RecursionError):
            return None
        port = read_plain_port(row)
        if port is None:
            return None
        shape, texts = split_port(port)
        if self._is_worth_learning(shape.text, len(self._patterns)):
            pattern = learn_port(text[position:stop], port, shape, texts)
            if pattern is not None:
                self._patterns.append(pattern)
        return shape, tuple(texts), stop

    def _is_worth_learning(self, shape: str, num_patterns: int) -> bool:
        """Count a shape without a pattern; return whether to learn it, which happens once."""
        is_full = num_patterns >= _MAX_SHAPES or len(self._seen) >= _MAX_SEEN
        if is_full or len(shape) > _MAX_LEARNED_BYTES:
            return False
        self._seen[shape] += 1
        return self._seen[shape] == _MIN_SEEN + 1


class _Head(NamedTuple):
    """A report without its ports."""

    name: str
    status: ReportStatus
    device_name: str
    shape: DeviceShape
    texts: Sequence[str]


def _read_without_ports(text: str) -> PlainReport | None:
    """Return the report in a JSON text, if it is plain and has an empty list of ports."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    report = read_plain_report(document)
    return report if report is not None and document["spec"].get("ports") == [] else None


def _is_sorted(texts: Sequence[str], ascending: Sequence[tuple[int, int]]) -> bool:
    return all(texts[lower] < texts[upper] for lower, upper in ascending)


class _ReportPorts(NamedTuple):
    """The ports of one report so far."""

    order: list[int]
    """By port: the number of its shape."""
    shapes: list[PortShape]
    rows: list[list[Sequence[str]]]
    """By shape: the texts of its ports."""
    numbers: dict[str, tuple[int, PortPattern | None]]

    def number(self, shape: PortShape, pattern: PortPattern | None = None) -> int:
        """Return the number of a shape."""
        known = self.numbers.get(shape.text)
        if known is not None and (known[1] or pattern is None):
            return known[0]
        number = len(self.shapes) if known is None else known[0]
        self.numbers[shape.text] = number, pattern
        if known is None:
            self.shapes.append(shape)
            self.rows.append([])
        return number

    def are_sorted(self) -> bool:
        """Return whether the ids are sorted where a pattern matched."""
        for number, pattern in self.numbers.values():
            if pattern is not None and pattern.ascending:
                columns = list(zip(*self.rows[number], strict=True))
                for lower, upper in pattern.ascending:
                    if not all(map(lt, columns[lower], columns[upper])):
                        return False
        return True

    def columns(self) -> list[list[Sequence[str]]]:
        """Return the texts by shape, then by text of the shape."""
        return [list(zip(*rows, strict=True)) for rows in self.rows]
