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
from itertools import pairwise
from operator import lt
from typing import Any, Final, NamedTuple

from topology.model.facts import Port
from topology.model.ids import Id, IdKind
from topology.reports.neighbor_report import MAX_TEXT, ReportStatus, is_guid_kind, is_mac_kind
from topology.reports.packed_devices import ShapedDevice
from topology.reports.plain_reports import MAX_PORTS, read_plain_port, read_plain_report
from topology.reports.port_shapes import PortShape, split_device, split_port

_MAX_SHAPES: Final = 128
_MIN_SEEN: Final = 3
"""So many ports of a shape are read in the usual way before its pattern is learned from the next:
learning costs as much as reading a hundred ports."""
_MAX_SEEN: Final = 4096
_MAX_LEARNED_BYTES: Final = 4096
_PORTS: Final = re.compile(r'"ports":\s*\[\s*(?=\{)')
_COMMA: Final = re.compile(r"\s*,\s*")
_END: Final = re.compile(r"\s*\]")
_TEXT: Final = rf"([ !#-\[\]-~]{{1,{MAX_TEXT}}})"
"""A text in JSON without escapes."""
_HEX: Final = "[0-9a-f]"
_MAC: Final = f"((?!00:00:00:00:00:00){_HEX}[02468ace]{f':{_HEX}{_HEX}' * 5})"
_GUID: Final = f"((?!0{{16}}|f{{16}}){_HEX}{{16}})"
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
        self._patterns: list[_PortPattern] = []
        """The one that matched last is the first."""
        self._known: set[str] = set()
        """The shapes that have a pattern, or cannot have one."""
        self._seen: Counter[str] = Counter()
        """By shape without a pattern: how many ports had it."""
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
        try:
            document = json.loads(text[: start.end()] + text[stop:])
        except (ValueError, RecursionError):
            return None
        report = read_plain_report(document)
        if report is None or document["spec"].get("ports") != []:
            return None
        head, texts = split_device(report.device)
        device = ShapedDevice(head, texts, ports.order, ports.shapes, ports.columns())
        return ShapedReport(report.name, report.status, report.device.name, device)

    def _read_ports(self, text: str, position: int, ports: _ReportPorts) -> int:
        """Add the ports of a list; return where it ends, or 0 if one is not plain."""
        last: _PortPattern | None = None
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

    def _find_pattern(self, text: str, position: int) -> _PortPattern | None:
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
        if self._is_worth_learning(shape):
            self._known.add(shape.text)
            pattern = _learn(text[position:stop], port, shape, texts)
            if pattern is not None:
                self._patterns.append(pattern)
        return shape, tuple(texts), stop

    def _is_worth_learning(self, shape: PortShape) -> bool:
        """Count a port of a shape without a pattern; return whether to learn it."""
        is_full = len(self._known) >= _MAX_SHAPES or len(shape.text) > _MAX_LEARNED_BYTES
        if is_full or shape.text in self._known:
            return False
        if len(self._seen) >= _MAX_SEEN:
            self._seen.clear()
        self._seen[shape.text] += 1
        return self._seen[shape.text] > _MIN_SEEN


class _PortPattern:
    """How the ports of one shape are written."""

    def __init__(
        self, shape: PortShape, pattern: re.Pattern[str], ascending: Sequence[tuple[int, int]]
    ) -> None:
        """Store the pattern; it has one group per text of the shape, in order.

        Args:
            shape: of the ports.
            pattern: matches such a port from its first to its last brace.
            ascending: pairs of texts that are the values of one list of ids and of one kind:
                sorted, without repeats.
        """
        self.shape, self.match, self.ascending = shape, pattern.match, tuple(ascending)


class _ReportPorts(NamedTuple):
    """The ports of one report so far."""

    order: list[int]
    """By port: the number of its shape."""
    shapes: list[PortShape]
    rows: list[list[Sequence[str]]]
    """By shape: the texts of its ports."""
    numbers: dict[str, tuple[int, _PortPattern | None]]

    def number(self, shape: PortShape, pattern: _PortPattern | None = None) -> int:
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


def _learn(text: str, port: Port, shape: PortShape, texts: Sequence[str]) -> _PortPattern | None:
    """Return the pattern of a port; None if it is not written as our writers do.

    Args:
        text: the JSON of the port.
        port: the port in it.
        shape: its shape.
        texts: its texts.
    """
    parts = text.split('"')
    places = _TextPlaces(parts, [], [], {})
    if not places.find(json.loads(number_texts(parts)), port):
        return None
    if [parts[index] for index in places.texts] != texts or places.texts != sorted(places.texts):
        return None
    chosen = set(places.texts)
    pattern = '"'.join(
        places.patterns.get(index, _TEXT) if index in chosen else re.escape(part)
        for index, part in enumerate(parts)
    )
    learned = _PortPattern(shape, re.compile(pattern), places.ascending)
    found = learned.match(text)
    is_same = found is not None and found.end() == len(text) and list(found.groups()) == texts
    return learned if is_same else None


class _TextPlaces(NamedTuple):
    """Finds the texts of a port that are not part of its shape, in the order of `split_port`."""

    parts: Sequence[str]
    texts: list[int]
    """The index of each text among the parts."""
    ascending: list[tuple[int, int]]
    """Pairs of texts, see `_PortPattern`."""
    patterns: dict[int, str]
    """By index: the pattern of a GUID or MAC."""

    def find(self, row: Any, port: Port) -> bool:  # noqa: ANN401 - JSON
        """Find the texts; return whether all lists of ids are sorted and without repeats."""
        self._add(row["name"])
        is_sorted = self._add_ids(row, "ids", port.ids)
        for field in ("bondMaster", "rdmaDevice", "pciAddress"):
            self._add(row.get(field))
        for near, neighbor in zip(row.get("neighbors", ()), port.neighbors, strict=True):
            is_sorted &= self._add_ids(near, "ids", neighbor.device_ids)
            self._add(near.get("name"))
            is_sorted &= self._add_ids(near, "portIds", neighbor.port_ids)
            self._add(near.get("portName"))
        return is_sorted

    def _add(self, number: str | None) -> int | None:
        """Add a text; return its place among the texts of the shape, None if it has none."""
        if number is None or not self.parts[int(number)]:
            return None
        self.texts.append(int(number))
        return len(self.texts) - 1

    def _add_ids(self, row: Any, field: str, expected: Sequence[Id]) -> bool:  # noqa: ANN401 - JSON
        found = []
        for one in row.get(field, ()):
            kind, value = IdKind(self._text(one["type"])), self._text(one["value"])
            subtype = self._text(one["subtype"]) if one.get("subtype") is not None else ""
            place = self._add(one["value"])
            if is_guid_kind(kind):
                self.patterns[int(one["value"])] = _GUID
            elif is_mac_kind(kind, subtype):
                self.patterns[int(one["value"])] = _MAC
            found.append((Id(kind, value, subtype), place))
        for (one, place), (following, next_place) in pairwise(found):
            if one.kind is following.kind:
                if place is None or next_place is None:
                    return False
                self.ascending.append((place, next_place))
        return [one for one, _ in found] == list(expected)

    def _text(self, number: str) -> str:
        return self.parts[int(number)]


def number_texts(parts: Sequence[str]) -> str:
    """Return the JSON in which each text is its index in `parts`; keys stay.

    Args:
        parts: a JSON text without escapes, split at its quotes.
    """
    numbered = list(parts)
    for index in range(1, len(parts) - 1, 2):
        if not parts[index + 1].lstrip().startswith(":"):
            numbered[index] = str(index)
    return '"'.join(numbered)
