"""Reports of one shape, read by comparing texts: they differ in names and values of ids. Pure.

The hosts of a cluster have few kinds of hardware, and one writer rendered their reports. So most of
them are equal except for some texts at the same places. Such a report is split at its quotes,
compared with the shape, and packed, without parsing JSON and without an object per id: twice as
fast. The shape is learned from a report that was read in the usual way; a report that fits no shape
is read in the usual way, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import lt
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from topology.model.facts import Device, DeviceKind
from topology.model.ids import IdKind
from topology.reports.device_texts import (
    TextPick,
    find_packed_texts,
    number_packed,
    number_texts,
    pick_texts,
)
from topology.reports.neighbor_report import (
    MAX_TEXT,
    ReportStatus,
    SweptPort,
    is_guid_kind,
    is_mac_kind,
    is_swept_port,
    swept_ports_of,
)
from topology.reports.packed_devices import render_packed
from topology.reports.plain_reports import MAX_NAME, PlainReport, read_plain_report

_MAX_SHAPES: Final = 256
_MAX_OF_OUTLINE: Final = 4
"""Shapes with one outline: a report with this outline is compared with each of them."""
_MIN_SEEN: Final = 3
"""So many reports of an outline are read in the usual way before a shape is learned from the next:
learning costs as much as reading several reports."""
_MAX_OUTLINES: Final = 4096
_MACS: Final = re.compile(r"(?:(?!00:00:00:00:00:00)[0-9a-f][02468ace](?::[0-9a-f]{2}){5}\n)*")
_GUIDS: Final = re.compile(r"(?:(?!0{16}|f{16})[0-9a-f]{16}\n)*")
_PORT_GUID_KINDS: Final = (IdKind.NODE_GUID, IdKind.PORT_GUID)


class Likeness(NamedTuple):
    """What is known of the facts of a report without unpacking them."""

    sample: PlainReport
    """A report that is equal but for names and the values of ids. Like this one, its device has no
    node name or the name of the report, as often."""
    guids: tuple[tuple[int, int], ...]
    """Node GUID and port GUID of each of its `swept_ports`; 0 if the port has none."""
    heard: tuple[int, ...]
    """For each neighbor entry the hash of its name and ids, without repeats."""


class ShapedReport(NamedTuple):
    """A report that was read by its shape."""

    name: str
    status: ReportStatus
    device_name: str
    text: str
    """The device, as `render_packed` renders it."""
    likeness: Likeness
    swept_ports: tuple[SweptPort, ...]
    """By `swept_ports_of`."""
    num_neighbors: int


class ReportShapes:
    """The shapes of the reports read so far; a bounded number of them."""

    def __init__(self) -> None:
        """Start without shapes."""
        self._shapes: dict[int, list[_ReportShape]] = {}
        self._seen: dict[int, int] = {}
        """By outline: how many reports of unknown shape had it."""
        self.num_shapes = 0

    def read(self, raw: bytes) -> ShapedReport | None:
        """Return the report in a file; None if it must be read in the usual way.

        Equal to what `read_plain_report` returns for the decoded file. Cost: 0.1 µs a text.
        """
        parts = _split(raw)
        if parts is None:
            return None
        outline = _outline(parts)
        for shape in self._shapes.get(outline, ()):
            if shape.fits(parts):
                return shape.read(parts)
        if self._is_worth_learning(outline):
            learned = _learn(parts)
            if learned is not None:
                self._shapes.setdefault(outline, []).append(learned)
                self.num_shapes += 1
        return None

    def _is_worth_learning(self, outline: int) -> bool:
        """Count a report of unknown shape; return whether to learn its shape."""
        is_full = self.num_shapes >= _MAX_SHAPES or len(self._seen) >= _MAX_OUTLINES
        if is_full or len(self._shapes.get(outline, ())) >= _MAX_OF_OUTLINE:
            return False
        self._seen[outline] = self._seen.get(outline, 0) + 1
        return self._seen[outline] > _MIN_SEEN


def _split(raw: bytes) -> list[str] | None:
    """Return a JSON text split at its quotes: entries with odd indices are the texts in it.

    None if a text may hold an escape or a character that our writers escape.
    """
    if not raw.startswith(b"{") or b"\\" in raw or not raw.isascii():
        return None
    return raw.decode("ascii").split('"')


def _outline(parts: Sequence[str]) -> int:
    """Return a number for what stands between the texts: brackets, commas and numbers.

    It differs where another port is down, so that each such kind of report has shapes of its own.
    """
    return hash(tuple(parts[::2]))


class _ReportTexts(NamedTuple):
    """The indices of the texts that may differ between reports of one shape."""

    name: int
    device: list[int | None]
    """Of the device, in the order of `find_packed_texts`; None where a report leaves a text out.
    """
    macs: list[int]
    guids: list[int]
    ascending: list[tuple[int, int]]
    """Pairs of values of one list of ids and of one kind: sorted, without repeats."""
    status: list[int]


class _EvidencePlaces:
    """Where the packed devices of one shape have what `Likeness` contains."""

    def __init__(self, device: Device, places: Sequence[int]) -> None:
        """Find the places.

        Args:
            device: a device of this shape.
            places: the indices of its texts, see `find_packed_texts`.
        """
        left = iter(places)
        next(left)
        own = {next(left): one for one in device.ids}
        self._node_names = pick_texts(
            [at for at, one in own.items() if one.kind is IdKind.NODE_NAME]
        )
        guids: list[tuple[TextPick, TextPick]] = []
        self._heard: list[_HeardPlaces] = []
        is_host = device.kind is DeviceKind.HOST
        for port in device.ports:
            ids = {one.kind: at for one, at in zip(port.ids, left, strict=False)}
            pair = [pick_texts([ids[kind]] if kind in ids else []) for kind in _PORT_GUID_KINDS]
            if is_swept_port(port):
                guids.append((pair[0], pair[1]))
            for near in port.neighbors:
                device_ids = [next(left) for _ in near.device_ids]
                name = next(left)
                for _ in (*near.port_ids, "name"):
                    next(left)
                pattern = tuple((one.kind, one.subtype) for one in near.device_ids)
                self._heard.append(_HeardPlaces(pick_texts([name, *device_ids]), pattern))
        self._guids = guids if is_host else []
        self._heard = self._heard if is_host else []

    def read(self, packed: Sequence[str], name: str, sample: PlainReport) -> Likeness | None:
        """Return what is known of a report; None if it has the node name of another."""
        if any(found != name for found in self._node_names(packed)):
            return None
        guids = tuple(
            [(_read_guid(node(packed)), _read_guid(port(packed))) for node, port in self._guids]
        )
        heard = tuple({place.read(packed) for place in self._heard}) if self._heard else ()
        return Likeness(sample, guids, heard)


class _HeardPlaces(NamedTuple):
    """Where a neighbor entry has its name, then its ids."""

    pick: TextPick
    pattern: tuple[tuple[IdKind, str], ...]
    """Kind and subtype of each id."""

    def read(self, packed: Sequence[str]) -> int:
        """Return the hash of the name and the ids."""
        name, *values = self.pick(packed)
        pairs = zip(self.pattern, values, strict=True)
        return hash((name, tuple([(kind, value, subtype) for (kind, subtype), value in pairs])))


def _read_guid(texts: Sequence[str]) -> int:
    return int(texts[0], 16) if texts else 0


class _ReportShape:
    """What reports of one shape have in common."""

    def __init__(
        self, parts: Sequence[str], texts: _ReportTexts, sample: PlainReport, status: str
    ) -> None:
        """Learn the shape of one report.

        Args:
            parts: the report, by `_split`.
            texts: which of them may differ.
            sample: the report itself.
            status: the JSON of its status in which each text is its index.
        """
        packed = render_packed(sample.device).split('"')
        places = find_packed_texts(number_packed(sample.device))
        order = list(range(len(parts), len(parts) + len(packed)))
        for place, index in zip(places, texts.device, strict=True):
            if index is not None:
                order[place] = index
        device = [index for index in texts.device if index is not None]
        varying = {texts.name, *device, *texts.status}
        self._sample, self._status, self._packed = sample, status, packed
        self._texts, self._device_name = texts, texts.device[0]
        self._reorder = pick_texts(order)
        self._evidence = _EvidencePlaces(sample.device, places)
        self._swept_ports = swept_ports_of(sample.device)
        self._num_neighbors = sum(len(port.neighbors) for port in sample.device.ports)
        self._pick_fixed = pick_texts(
            [index for index in range(len(parts)) if index not in varying]
        )
        self._pick_varying = pick_texts(sorted(varying))
        self._fixed = self._pick_fixed(parts)
        self._pick_macs, self._pick_guids = pick_texts(texts.macs), pick_texts(texts.guids)
        self._pick_lower = pick_texts([lower for lower, _ in texts.ascending])
        self._pick_upper = pick_texts([upper for _, upper in texts.ascending])

    def fits(self, parts: Sequence[str]) -> bool:
        """Return whether a report has this shape; both have the same number of texts."""
        return self._pick_fixed(parts) == self._fixed

    def read(self, parts: Sequence[str]) -> ShapedReport | None:
        """Return a report of this shape; None if only the usual way can judge its texts."""
        varying, name = self._pick_varying(parts), parts[self._texts.name]
        is_plain = (
            max(map(len, varying)) <= MAX_TEXT
            and 0 < len(name) <= MAX_NAME
            and "".join(varying).isprintable()
            and _MACS.fullmatch("\n".join((*self._pick_macs(parts), "")))
            and _GUIDS.fullmatch("\n".join((*self._pick_guids(parts), "")))
            and all(map(lt, self._pick_lower(parts), self._pick_upper(parts)))
        )
        status = self._read_status(parts) if is_plain else None
        if status is None:
            return None
        packed = self._reorder([*parts, *self._packed])
        likeness = self._evidence.read(packed, name, self._sample)
        if likeness is None:
            return None
        device_name = parts[self._device_name or 0]
        text, swept_ports = '"'.join(packed), self._swept_ports
        return ShapedReport(
            name, status, device_name, text, likeness, swept_ports, self._num_neighbors
        )

    def _read_status(self, parts: Sequence[str]) -> ReportStatus | None:
        if not self._texts.status:
            return self._sample.status
        numbered = self._status.split('"')
        for index in range(1, len(numbered), 2):
            if numbered[index].isdecimal():
                numbered[index] = parts[int(numbered[index])]
        try:
            return ReportStatus.model_validate(json.loads('"'.join(numbered)))
        except ValidationError:
            return None


def _learn(parts: Sequence[str]) -> _ReportShape | None:
    """Return the shape of a report; None if it is not plain, or is not sorted as ours are."""
    try:
        sample = read_plain_report(json.loads('"'.join(parts)))
        document = json.loads(number_texts(parts))
    except (ValueError, RecursionError):
        return None
    if sample is None:
        return None
    status = document.get("status", {})
    texts = _ReportTexts(int(document["metadata"]["name"]), [], [], [], [], [])
    if any(map(str.isdecimal, _keys_of(status))):
        return None
    texts.status.extend(map(int, _texts_of(status)))
    _TextFinder(parts, texts).find(document["spec"])
    if len(texts.device) != len(find_packed_texts(number_packed(sample.device))):
        return None  # some ids identify nothing, or are repeated
    shape = _ReportShape(parts, texts, sample, json.dumps(status))
    found = shape.read(parts)
    expected = (sample.name, sample.status, sample.device.name, render_packed(sample.device))
    return shape if found is not None and found[:4] == expected else None


def _texts_of(value: object) -> Iterable[str]:
    """Yield all texts in a JSON value, without keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts_of(inner)


def _keys_of(value: object) -> Iterable[str]:
    """Yield all keys in a JSON value."""
    if isinstance(value, dict):
        yield from value
    for inner in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        yield from _keys_of(inner)


class _TextFinder(NamedTuple):
    """Finds the texts of a report that may differ, in the order of `find_packed_texts`."""

    parts: Sequence[str]
    texts: _ReportTexts

    def find(self, spec: Any) -> None:  # noqa: ANN401 - JSON
        """Add the texts of a device and its ports."""
        self._add_name(spec["device"]["name"])
        self._add_ids(spec["device"].get("ids", ()))
        for port in spec.get("ports", ()):
            self._add_ids(port.get("ids", ()))
            for neighbor in port.get("neighbors", ()):
                self._add_ids(neighbor.get("ids", ()))
                self._add_name(neighbor.get("name"))
                self._add_ids(neighbor.get("portIds", ()))
                self._add_name(neighbor.get("portName"))

    def _add_name(self, number: str | None) -> None:
        self.texts.device.append(None if number is None else int(number))

    def _add_ids(self, ids: Sequence[dict[str, str]]) -> None:
        rows = [(self._text(one["type"]), int(one["value"]), one.get("subtype")) for one in ids]
        for kind, value, subtype in rows:
            self.texts.device.append(value)
            if is_guid_kind(IdKind(kind)):
                self.texts.guids.append(value)
            elif is_mac_kind(IdKind(kind), self._text(subtype) if subtype else ""):
                self.texts.macs.append(value)
        for (kind, value, _), (next_kind, next_value, _) in pairwise(rows):
            if kind == next_kind:
                self.texts.ascending.append((value, next_value))

    def _text(self, number: str) -> str:
        return self.parts[int(number)]
