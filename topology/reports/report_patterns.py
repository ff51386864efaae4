"""How the reports of a writer are written: a pattern per shape of a port, and of a device. Pure.

A pattern is learned from a report that was read in the usual way. It matches equal text with other
names and values of ids, as long as these are canonical and need no escape.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from topology.model.facts import Port
from topology.model.ids import Id, IdKind
from topology.reports.neighbor_report import MAX_TEXT, is_guid_kind, is_mac_kind
from topology.reports.plain_reports import PlainReport
from topology.reports.port_shapes import DeviceShape, PortShape

_TEXT: Final = rf"([ !#-\[\]-~]{{1,{MAX_TEXT}}})"
"""A text in JSON without escapes."""
_HEX: Final = "[0-9a-f]"
_MAC: Final = f"((?!00:00:00:00:00:00){_HEX}[02468ace]{f':{_HEX}{_HEX}' * 5})"
_GUID: Final = f"((?!0{{16}}|f{{16}}){_HEX}{{16}})"


class PortPattern:
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


class HeadPattern(NamedTuple):
    """How that is written which precedes the ports of devices of one shape."""

    shape: DeviceShape
    match: Callable[[str, int, int], re.Match[str] | None]
    """Has a group for the name of the report, then one per text of the shape."""
    ascending: list[tuple[int, int]]
    """As in `PortPattern`."""


def learn_port(text: str, port: Port, shape: PortShape, texts: Sequence[str]) -> PortPattern | None:
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
    pattern = _compile(parts, places.texts, places.patterns)
    if pattern is None:
        return None
    learned = PortPattern(shape, pattern, places.ascending)
    found = learned.match(text)
    is_same = found is not None and found.end() == len(text) and list(found.groups()) == texts
    return learned if is_same else None


def learn_head(
    text: str, start: int, report: PlainReport, shape: DeviceShape
) -> HeadPattern | None:
    """Return the pattern of what precedes the ports; None if our writers write it otherwise.

    Args:
        text: a report without ports.
        start: where they would be.
        report: the report.
        shape: that of its device.
    """
    parts = text.split('"')
    numbered = json.loads(number_texts(parts))
    places = _TextPlaces(parts, [], [], {})
    row, device = numbered["spec"]["device"], report.device
    places.add(row["name"])
    if not places.add_ids(row, "ids", device.ids):
        return None
    name = int(numbered["metadata"]["name"])
    pattern = _compile(text[:start].split('"'), [name, *places.texts], places.patterns)
    found = pattern.match(text) if pattern is not None else None
    if pattern is None or found is None or found.end() != start:
        return None
    is_same = shape.fill(iter(found.groups()[1:])) == device and found[1] == report.name
    return HeadPattern(shape, pattern.match, places.ascending) if is_same else None


def _compile(
    parts: Sequence[str], places: Sequence[int], patterns: Mapping[int, str]
) -> re.Pattern[str] | None:
    """Return the pattern of a text that is split at its quotes, with a group for each place.

    None if the places are not in order.
    """
    if list(places) != sorted(places) or not places or places[-1] >= len(parts):
        return None
    chosen = set(places)
    return re.compile(
        '"'.join(
            patterns.get(index, _TEXT) if index in chosen else re.escape(part)
            for index, part in enumerate(parts)
        )
    )


class _TextPlaces(NamedTuple):
    """Finds the texts of a port that are not part of its shape, in the order of `split_port`."""

    parts: Sequence[str]
    texts: list[int]
    """The index of each text among the parts."""
    ascending: list[tuple[int, int]]
    """Pairs of texts, see `PortPattern`."""
    patterns: dict[int, str]
    """By index: the pattern of a GUID or MAC."""

    def find(self, row: Any, port: Port) -> bool:  # noqa: ANN401 - JSON
        """Find the texts; return whether all lists of ids are sorted and without repeats."""
        self.add(row["name"])
        is_sorted = self.add_ids(row, "ids", port.ids)
        for field in ("bondMaster", "rdmaDevice", "pciAddress"):
            self.add(row.get(field))
        for near, neighbor in zip(row.get("neighbors", ()), port.neighbors, strict=True):
            is_sorted &= self.add_ids(near, "ids", neighbor.device_ids)
            self.add(near.get("name"))
            is_sorted &= self.add_ids(near, "portIds", neighbor.port_ids)
            self.add(near.get("portName"))
        return is_sorted

    def add(self, number: str | None) -> int | None:
        """Add a text; return its place among the texts of the shape, None if it has none."""
        if number is None or not self.parts[int(number)]:
            return None
        self.texts.append(int(number))
        return len(self.texts) - 1

    def add_ids(self, row: Any, field: str, expected: Sequence[Id]) -> bool:  # noqa: ANN401 - JSON
        """Add the values of ids; return whether they are the expected ids, in their order."""
        found = []
        for one in row.get(field, ()):
            kind, value = IdKind(self._text(one["type"])), self._text(one["value"])
            subtype = self._text(one["subtype"]) if one.get("subtype") is not None else ""
            place = self.add(one["value"])
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
