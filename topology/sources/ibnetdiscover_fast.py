"""Clean pieces of `ibnetdiscover` by numpy: where lines and quotes are, for a whole piece at once.

The one file of the core that imports numpy; whoever may load it passes a `NumpyReader` to
`parse_ibnetdiscover`. It takes no decision of its own: what stands between the quotes is read by
the parts of the careful parser's own expressions, once per different text, and any piece with a
line that is not plainly the tool's is handed back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from topology.ids import parse_guid
from topology.sources.ibnetdiscover_devices import FarPort, Key, Memo, Record, Row
from topology.sources.ibnetdiscover_lines import FAR_PORT, OWN_PORT, PEER, RATE
from topology.sources.ibnetdiscover_names import RATES_BPS

_Index: TypeAlias = NDArray[np.intp]
_NEWLINE, _QUOTE, _BRACKET, _BLANK = b'\n"[ '
_QUOTES: Final = 4
"""Of a port line: the peer's node id and its description; more are inside of the latter."""

_HEX: Final = "[0-9a-f]{1,16}"
_REST: Final = r"(?:[( \t#][^\n]*+)?\n"
_HEAD: Final = re.compile(
    r"(?:(?:#[^\n]*+)?\n)*+"
    rf"(?:vendid=0x{_HEX}{_REST})?+(?:devid=0x({_HEX}){_REST})?+"
    rf"(?:sysimgguid=0x({_HEX}){_REST})?+(?:switchguid|caguid|rtguid)=0x{_HEX}{_REST}"
    r'(?:Switch|Ca|Rt)\t[0-9]+ "([SHR])-([0-9a-f]{16})"\t\t# "([^"\n]*+)"(?: [^"\n]*+)?\n'
)
_GAP: Final = re.compile(r"(?:(?:#[^\n]*+)?\n)*+\Z")
_OWN_PORT: Final = re.compile(OWN_PORT)
_PEER: Final = re.compile(PEER)
_FAR_PORT: Final = re.compile(FAR_PORT)
_RATE: Final = re.compile(RATE)


class _NotPlain(Exception):  # noqa: N818 - control flow within this file, never an error
    """A line is not plainly the tool's, so the piece is not for this reader."""


class _Run(NamedTuple):
    """Port lines without any other line in between."""

    start: int
    """Where the first one starts in the piece."""
    stop: int
    """Where the line after the last one starts."""
    first: int
    """Index of the first one among all port lines of the piece."""
    last: int
    """Index after that of the last one."""


class NumpyReader:
    """Reads pieces of one dump; keeps what it read between quotes, because dumps repeat it."""

    def __init__(self) -> None:
        """Start without anything read."""
        self._guids = Memo(parse_guid)
        self._own_ports: Memo[str, FarPort] = Memo(
            lambda text: self._port(_OWN_PORT.fullmatch(text))
        )
        self._far_ports: Memo[str, FarPort] = Memo(
            lambda text: self._port(_FAR_PORT.fullmatch(text))
        )
        self._peers = Memo(self._peer)
        self._rates = Memo(_rate)
        self._texts = Memo(str)

    def __call__(self, text: str) -> list[Record] | None:
        """Return the records of a piece that starts and ends between records, in its order.

        None where anything in it asks for care: characters beyond printable ASCII, an unusual
        line, quotes in a description, an unknown rate, a port that stands twice.
        Cost: O(characters), about 1 µs a line.
        """
        if not (text.isascii() and text.endswith("\n")):
            return None
        try:
            return list(self._records(text))
        except _NotPlain:
            return None

    def _records(self, text: str) -> Iterator[Record]:
        numbers, rows, runs = self._port_lines(text)
        waiting = iter(runs)
        at = 0
        while found := _HEAD.match(text, at):
            at = found.end()
            record = self._open(found)
            if text.startswith("[", at):
                run = next(waiting)
                at = run.stop
                _fill(record, numbers[run.first : run.last], rows[run.first : run.last])
            yield record
        if not _GAP.match(text, at):
            raise _NotPlain

    def _port_lines(self, text: str) -> tuple[list[int], list[Row], list[_Run]]:
        """Return port numbers, rows and runs of all port lines of a piece."""
        characters = np.frombuffer(text.encode("ascii"), np.uint8)
        if np.count_nonzero(characters < _BLANK) != text.count("\n") + text.count("\t"):
            raise _NotPlain
        ends = np.flatnonzero(characters == _NEWLINE)
        starts = np.concatenate(([0], ends[:-1] + 1))
        is_port = characters[starts] == _BRACKET
        starts, ends = starts[is_port], ends[is_port]
        quotes = _four_quotes(np.flatnonzero(characters == _QUOTE), starts, ends)
        own_ports = [self._own_ports[part] for part in _cut(text, starts, quotes[0])]
        rows: list[Row] = list(
            zip(
                [port_guid for _, port_guid in own_ports],
                map(self._peers.__getitem__, _cut(text, quotes[0] + 1, quotes[1])),
                map(self._far_ports.__getitem__, _cut(text, quotes[1] + 1, quotes[2])),
                map(self._texts.__getitem__, _cut(text, quotes[2] + 1, quotes[3])),
                map(self._rates.__getitem__, _cut(text, quotes[3] + 1, ends)),
                strict=True,
            )
        )
        return [number for number, _ in own_ports], rows, _runs(starts, ends)

    def _open(self, found: re.Match[str]) -> Record:
        device_id, image, letter, digits, description = found.groups()
        guid = self._guids[digits]
        if guid is None:
            raise _NotPlain
        return Record(
            letter,
            guid,
            image=self._guids[image] if image else None,
            device_id=int(device_id, 16) if device_id else 0,
            description=description,
        )

    def _port(self, found: re.Match[str] | None) -> FarPort:
        if found is None:
            raise _NotPlain
        return int(found[1]), self._guids[found[2]] if found[2] else None

    def _peer(self, text: str) -> Key:
        found = _PEER.fullmatch(text)
        guid = self._guids[found[2]] if found else None
        if found is None or guid is None:
            raise _NotPlain
        return found[1], guid


def _four_quotes(quotes: _Index, starts: _Index, ends: _Index) -> _Index:
    """Return where the quotes of port lines are: one row for each of the four, by line."""
    first = np.searchsorted(quotes, starts)
    if np.any(np.searchsorted(quotes, ends) - first != _QUOTES):
        raise _NotPlain
    return np.take(quotes, first + np.arange(_QUOTES)[:, np.newaxis])


def _cut(text: str, starts: _Index, stops: _Index) -> list[str]:
    return [text[start:stop] for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]


def _runs(starts: _Index, ends: _Index) -> list[_Run]:
    breaks = np.flatnonzero(starts[1:] != ends[:-1] + 1) + 1
    first = np.concatenate(([0], breaks)) if len(starts) else breaks
    last = np.concatenate((breaks, [len(starts)])) if len(starts) else breaks
    columns = (starts[first], ends[last - 1] + 1, first, last)
    return [_Run(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _fill(record: Record, numbers: list[int], rows: list[Row]) -> None:
    """Add ports to a record; the first parentheses of a switch port are no GUID."""
    if record.letter == "S" and any(row[0] for row in rows):
        rows = [(None, *row[1:]) for row in rows]
    record.rows = dict(zip(numbers, rows, strict=True))
    if len(record.rows) != len(rows):
        raise _NotPlain


def _rate(text: str) -> int | None:
    found = _RATE.match(text)
    token = "".join(part or "" for part in found.groups()) if found else ""
    rate = RATES_BPS.get(token)
    if rate is None and token and "?" not in token:
        raise _NotPlain
    return rate
