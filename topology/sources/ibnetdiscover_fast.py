"""Plain pieces of `ibnetdiscover` by numpy: port lines are taken apart a whole piece at once.

The one file of the core that imports numpy; whoever may load it passes a `NumpyReader` to
`parse_ibnetdiscover`. It takes lines exactly as the tool prints them and decides nothing: a piece
with any other line is handed back to the careful reader, which is the measure of what is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise, repeat
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from topology.ids import parse_guid
from topology.sources.ibnetdiscover_devices import FarPort, Key, Memo, Record, Row
from topology.sources.ibnetdiscover_lines import RATE
from topology.sources.ibnetdiscover_names import RATES_BPS

_Characters: TypeAlias = NDArray[np.uint8]
_Index: TypeAlias = NDArray[np.intp]
_Flags: TypeAlias = NDArray[np.bool_]

_QUOTES: Final = 4
"""Of a port line: around the peer's node id and its description; more are inside of the latter."""
_PAD: Final = "\n" * 8  # so that looking a few characters ahead stays inside
_GUID_DIGITS: Final = 16
_MAX_LID_DIGITS: Final = 5
_NOBODY: Final = ("0" * _GUID_DIGITS, "f" * _GUID_DIGITS)
_NEWLINE, _QUOTE, _OPEN, _CLOSE, _LEFT, _ZERO, _BLANK = b'\n"[](0 '

_HEX: Final = "[0-9a-f]{1,16}"
_REST: Final = r"(?:[( \t#][^\n]*+)?\n"
_HEAD: Final = re.compile(
    r"(?:(?:#[^\n]*+)?\n)*+"
    rf"(?:vendid=0x{_HEX}{_REST})?+(?:devid=0x({_HEX}){_REST})?+"
    rf"(?:sysimgguid=0x({_HEX}){_REST})?+(?:switchguid|caguid|rtguid)=0x{_HEX}{_REST}"
    r'(?:Switch|Ca|Rt)\t[0-9]+ "([SHR])-([0-9a-f]{16})"\t\t# "([^"\n]*+)"(?: [^"\n]*+)?\n'
)
_GAP: Final = re.compile(r"(?:(?:#[^\n]*+)?\n)*+\Z")
_OWN_LID: Final = re.compile(r"\t\t# lid [0-9]+ lmc [0-9]+ ")
_RATE: Final = re.compile(RATE)

_ODD_DIGIT: Final = np.ones(256, np.uint8)
"""By character: 1 where it is no hex digit."""
_ODD_DIGIT[np.frombuffer(b"0123456789abcdef", np.uint8)] = 0


class _NotPlain(Exception):  # noqa: N818 - control flow within this file, never an error
    """A line is not plainly the tool's, so the piece is not for this reader."""


class _Run(NamedTuple):
    """Port lines without any other line in between."""

    stop: int
    """Where the line after the last one starts in the piece."""
    first: int
    """Index of the first one among all port lines of the piece."""
    last: int
    """Index after that of the last one."""


class NumpyReader:
    """Reads pieces of one dump; keeps GUIDs and descriptions, because dumps repeat them."""

    def __init__(self) -> None:
        """Start without anything read."""
        self._peers: dict[Key, Key] = {}
        self._far_ports: dict[FarPort, FarPort] = {}
        self._texts: dict[str, str] = {}
        self._rates = Memo(_rate)

    def __call__(self, text: str) -> list[Record] | None:
        """Return the records of a piece that starts and ends between records, in its order.

        None where anything in it asks for care: characters beyond printable ASCII, an unusual
        line, quotes in a description, an unknown rate, a port that stands twice.
        Cost: O(characters), under 2 µs a line, a third of it for the strings alone.
        """
        if not (text.isascii() and text.endswith("\n")):
            return None
        try:
            return list(self._records(text))
        except _NotPlain:
            return None

    def _records(self, text: str) -> Iterator[Record]:
        numbers, rows, runs = self._port_lines(text + _PAD)
        waiting = iter(runs)
        at = 0
        while found := _HEAD.match(text, at):
            at = found.end()
            record = _open(found)
            if text.startswith("[", at):
                run = next(waiting)
                at = run.stop
                _fill(record, numbers[run.first : run.last], rows[run.first : run.last])
            yield record
        if not _GAP.match(text, at):
            raise _NotPlain

    def _port_lines(self, text: str) -> tuple[list[int], list[Row], list[_Run]]:
        """Return port numbers, rows and runs of all port lines of a piece."""
        lines = _Lines(text)
        numbers, own_guids = lines.own_ports()
        peers = lines.peers()
        far_ports = lines.far_ports()
        texts = lines.texts()
        rows: list[Row] = list(
            zip(
                own_guids,
                map(self._peers.setdefault, peers, peers),
                map(self._far_ports.setdefault, far_ports, far_ports),
                map(self._texts.setdefault, texts, texts),
                map(self._rates.__getitem__, lines.rates()),
                strict=True,
            )
        )
        return numbers, rows, lines.runs()


class _Lines:
    """The port lines of a piece, as columns: one entry per line each."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._characters = characters = np.frombuffer(text.encode("ascii"), np.uint8)
        if np.count_nonzero(characters < _BLANK) != text.count("\n") + text.count("\t"):
            raise _NotPlain
        ends = np.flatnonzero(characters == _NEWLINE)
        starts = np.concatenate(([0], ends[:-1] + 1))
        is_port = characters[starts] == _OPEN
        self._starts, self._ends = starts[is_port], ends[is_port]
        quotes = np.flatnonzero(characters == _QUOTE)
        first = np.searchsorted(quotes, self._starts)
        _require(np.searchsorted(quotes, self._ends) - first == _QUOTES)
        self._quotes = [quotes[first + number] for number in range(_QUOTES)]
        self._odd_digits = np.cumsum(_ODD_DIGIT[characters], dtype=np.int32)

    def own_ports(self) -> tuple[list[int], list[str | None]]:
        """Return the number of each port, and its GUID where it is told: `[1](2c90) `."""
        stop = self._quotes[0]
        numbers, after = self._bracketed(self._starts)
        is_bare = self._says("\t", after) & (after + 1 == stop)
        is_told = self._says(") \t", stop - 3)
        _require(is_bare | is_told)
        guids = self._short_guids(is_told & ~is_bare, after, stop - 3)
        return numbers.tolist(), guids

    def peers(self) -> list[Key]:
        """Return the letter and the GUID of each node at the far end: `"S-0002c90"`."""
        start, stop = self._quotes[0] + 1, self._quotes[1]
        letters = self._characters[start]
        is_known = (letters == ord("S")) | (letters == ord("H")) | (letters == ord("R"))
        is_whole = (stop - start == _GUID_DIGITS + 2) & self._says("-", start + 1)
        _require(is_known & is_whole & self._is_hex(start + 2, stop))
        guids = self._cut(start + 2, stop)
        if any(nobody in guids for nobody in _NOBODY):
            raise _NotPlain
        return list(zip(letters.tobytes().decode("ascii"), guids, strict=True))

    def far_ports(self) -> list[FarPort]:
        """Return number and GUID of each port at the far end: `[7]`, `[1](2c90) `, `[7] … lid`."""
        start, stop = self._quotes[1] + 1, self._quotes[2]
        numbers, after = self._bracketed(start)
        is_comment = self._says("\t\t# ", stop - 4)
        is_bare = is_comment & (after == stop - 4)
        is_told = is_comment & self._says("(", after) & self._says(") ", stop - 6)
        rest = np.flatnonzero(~(is_bare | is_told))
        if not all(map(_OWN_LID.fullmatch, self._cut(after[rest], stop[rest]))):
            raise _NotPlain
        guids = self._short_guids(is_told & ~is_bare, after, stop - 6)
        return list(zip(numbers.tolist(), guids, strict=True))

    def texts(self) -> list[str]:
        """Return the descriptions of the far ends."""
        return self._cut(self._quotes[2] + 1, self._quotes[3])

    def rates(self) -> list[str]:
        """Return the rate tokens: what follows ` lid 7 `."""
        lid = self._quotes[3] + len('" lid ')
        blanks = np.flatnonzero(self._characters == _BLANK)
        blank = blanks[np.searchsorted(blanks, self._ends) - 1]
        num_digits = blank - lid
        is_number = (num_digits > 0) & (num_digits <= _MAX_LID_DIGITS)
        for at in range(_MAX_LID_DIGITS):
            is_number &= (at >= num_digits) | (self._digits(lid + at) <= 9)  # noqa: PLR2004 - ten digits
        _require(is_number & self._says(" lid ", self._quotes[3] + 1))
        return self._cut(blank + 1, self._ends)

    def runs(self) -> list[_Run]:
        """Return the runs of port lines, in their order."""
        breaks = np.flatnonzero(self._starts[1:] != self._ends[:-1] + 1) + 1
        bounds = [0, *breaks.tolist(), len(self._starts)]
        stops = (self._ends + 1).tolist()
        pairs = pairwise(bounds)
        return [_Run(stops[last - 1], first, last) for first, last in pairs if last > first]

    def _cut(self, starts: _Index, stops: _Index) -> list[str]:
        pairs = zip(starts.tolist(), stops.tolist(), strict=True)
        return [self._text[start:stop] for start, stop in pairs]

    def _says(self, word: str, at: _Index) -> _Flags:
        """Tell where a word stands."""
        found = np.ones(len(at), np.bool_)
        for offset, character in enumerate(word.encode("ascii")):
            found &= self._characters[at + offset] == character
        return found

    def _is_hex(self, starts: _Index, stops: _Index) -> _Flags:
        """Tell which spans hold hex digits alone; none of them is at the start of the text."""
        return np.equal(self._odd_digits[stops - 1], self._odd_digits[starts - 1])

    def _digits(self, at: _Index) -> _Characters:
        """Return the digits there; what is none is more than 9."""
        return self._characters[at] - np.uint8(_ZERO)

    def _bracketed(self, at: _Index) -> tuple[_Index, _Index]:
        """Return the numbers of one to three digits in brackets, and where the brackets end."""
        numbers = np.zeros(len(at), np.intp)
        stops = np.zeros(len(at), np.intp)
        is_good = self._characters[at] == _OPEN
        is_open = is_good.copy()
        for offset in (1, 2, 3):
            digits = self._digits(at + offset)
            is_good &= ~is_open | (digits <= 9)  # noqa: PLR2004 - ten digits
            numbers = np.where(is_open, numbers * 10 + digits, numbers)
            is_last = is_open & (self._characters[at + offset + 1] == _CLOSE)
            stops = np.where(is_last, at + offset + 2, stops)
            is_open &= ~is_last
        _require(is_good & ~is_open)
        return numbers, stops

    def _short_guids(self, is_told: _Flags, at: _Index, stops: _Index) -> list[str | None]:
        """Return GUIDs printed without leading zeros after a parenthesis, None elsewhere."""
        found: list[str | None] = [None] * len(at)
        where = np.flatnonzero(is_told)
        starts, stops = at[where] + 1, stops[where]
        num_digits = stops - starts
        is_guid = (num_digits > 0) & (num_digits <= _GUID_DIGITS)
        is_guid &= (self._characters[starts - 1] == _LEFT) & (self._characters[starts] != _ZERO)
        _require(is_guid & self._is_hex(starts, stops))
        guids = list(map(str.zfill, self._cut(starts, stops), repeat(_GUID_DIGITS)))
        if _NOBODY[1] in guids:
            raise _NotPlain
        for index, guid in zip(where.tolist(), guids, strict=True):
            found[index] = guid
        return found


def _require(is_plain: _Flags) -> None:
    if not is_plain.all():
        raise _NotPlain


def _open(found: re.Match[str]) -> Record:
    device_id, image, letter, guid, description = found.groups()
    if guid in _NOBODY:
        raise _NotPlain
    return Record(
        letter,
        guid,
        image=parse_guid(image) if image else None,
        device_id=int(device_id, 16) if device_id else 0,
        description=description,
    )


def _fill(record: Record, numbers: list[int], rows: list[Row]) -> None:
    """Add ports to a record; the first parentheses of a switch port are no GUID."""
    if record.letter == "S" and any(row[0] for row in rows):
        raise _NotPlain
    record.rows = dict(zip(numbers, rows, strict=True))
    if len(record.rows) != len(rows):
        raise _NotPlain


def _rate(token: str) -> int | None:
    """Return the rate of a token, read as the careful reader does."""
    found = _RATE.fullmatch(f" lid 0 {token}")
    spelled = "".join(part or "" for part in found.groups()) if found else ""
    rate = RATES_BPS.get(spelled)
    if rate is None and "?" not in spelled:
        raise _NotPlain
    return rate
