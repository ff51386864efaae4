"""The output of `ibnetdiscover`, in every form that has cables: bytes in, devices out.

Skips a bad line with a ParseError and keeps everything else. Refuses node lists, which have no
cables, with an error that names the form. Does not decide which devices are one host; the join
does.

Splits records at their id lines and heads, never at blank lines, because pasted files lose those.
The forms differ: with -g, ports also have an external number. In ibdiagnet's file, the first
parentheses of a switch port are a label of the front panel, and LIDs may be empty. Each row of -p
is complete, and rows may be mixed with records.

Source: infiniband-diags 44, ibnetdiscover.c; formats seen in collected dumps.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from topology.model.errors import ParseError
from topology.model.facts import ParseResult
from topology.model.ids import parse_guid
from topology.sources.ibnetdiscover.devices import (
    FarPort,
    Key,
    LazyDict,
    PortLine,
    Record,
    build_devices,
)
from topology.sources.infiniband.link_rates import RATES_BPS

_ID_LINE: Final = re.compile(
    r"(vendid|devid|sysimgguid|switchguid|caguid|rtguid)\s*+=\s*+(?:0x)?([0-9a-fA-F]{1,16})(?=[\s(#]|\Z)"
)
_OWN_GUID: Final = {"switchguid": "S", "caguid": "H", "rtguid": "R"}
_HEAD: Final = re.compile(
    r'(?:Switch|Ca|Rt)\b\s*+[0-9]*+\s*+"?([SHR])-([0-9a-fA-F]{16})\b"?\s*+#?\s*+(?:"(.*)")?(.*)'
)
# A port line has its own port, the peer, the peer's port, the description, and the tail.
# The first parentheses have the port's own GUID on CAs, the second the peer's.
_EXTERNAL: Final = r"(?:\[ext\s[0-9]+\])?\s*+"
OWN_PORT: Final = rf"\[([0-9]{{1,3}})\]{_EXTERNAL}(?:\(([^()]*)\))?\s*+"
PEER: Final = r"([SHR])-([0-9a-fA-F]{16})"
FAR_PORT: Final = (
    rf"\[([0-9]{{1,3}})\]{_EXTERNAL}(?:\(([^()]*)\))?\s*+"
    r"#?\s*+(?:lid\s*+(?:-?[0-9]+)?\s*+lmc\s*+(?:-?[0-9]+)?\s*+)?"
)
# A LID may be missing; then the width must not be parsed as the LID.
RATE: Final = r"\s*+(?:lid\s*+(?:-?[0-9]++(?!x))?\s*+)?(?:([0-9]+x|\?+)\s?([A-Z0-9?]+))?"
_LINK: Final = rf'{OWN_PORT}"?{PEER}\b"?\s*+{FAR_PORT}'
_PORT: Final = re.compile(rf'{_LINK}"(.*)"{RATE}')
_PORT_UNQUOTED: Final = re.compile(_LINK + "(.*)")
_TAIL: Final = re.compile(RATE)
_HEAD_WORD: Final = re.compile(r'(?:Switch|Ca|Rt)\s*+[0-9"]')
_HEAD_TAIL: Final = re.compile(r"\s(?:base|enhanced) port 0\b")
_END: Final = r"(SW|CA|RT)\s+-?[0-9]+\s+([0-9]{1,3})\s+0x([0-9a-fA-F]{1,16})\b"
_PORT_ROW: Final = re.compile(rf"{_END}\s+([0-9]+x|\?+)\s+([A-Z0-9?]+)\s+(?:-\s+{_END}\s+)?(.*)")
_ROW_WORD: Final = re.compile(r"(?:SW|CA|RT)\s+-?[0-9]")
_ROW_LETTERS: Final = {"SW": "S", "CA": "h", "RT": "r"}
_BETWEEN_TEXTS: Final = "' - '"
_PROMPT: Final = re.compile(r"[#$>%]\s*(?:sudo\s+)?(?:\S*/)?ibnetdiscover\b|\A\[?\S+@[^#$]*[#$]\Z")
_MAX_PROMPT: Final = 200
MAX_ERRORS: Final = 1000
"""Bad lines that are named; others are counted, so that no input fills the memory with errors."""
_SKIPPED: Final = ("DR path ", "Chassis ", "Non-Chassis ", "Hostname:")
_LIST_ROW: Final = re.compile(r"(?:Ca|Switch|Rt)\s*:\s*0x[0-9a-fA-F]+\s+ports\b")
_LIST: Final = "a node list of `ibnetdiscover -l`, -H, -S or -R"


FastParser: TypeAlias = Callable[[bytes, str], ParseResult]
"""Parses (dump, source) to the same result as `LineParser`."""


def parse_ibnetdiscover(
    raw: bytes, *, source: str = "", fast: FastParser | None = None
) -> ParseResult:
    """Return one device per record, sorted by GUID, and an error per bad line; never raises.

    Every CA is a separate device: one HCA function, not a host. Both ends of a cable are reported,
    each with its own rate. Ports without a link appear only in the output of -p. That output has
    only the port GUID of a CA, so there each port of a CA is a device.
    Cost: O(lines), 6 to 8 µs each, half of it to build the objects; with `fast` 0.3 µs, and the
    objects are built when they are first read.

    Args:
        raw: the output, pasted or redirected; several dumps in sequence add up.
        source: the name of the input in errors.
        fast: a `chunks.NumpyReader`, if numpy may be loaded. The result is the same, because it
            passes lines that it cannot parse to the line parser.
    """
    if fast is not None:
        return fast(raw, source)
    reader = LineParser(source)
    reader.read(raw.decode("utf-8", "replace").removeprefix("\ufeff"))
    reader.close(is_empty=not reader.records)
    return ParseResult(build_devices(reader.records), tuple(reader.errors))


class LineParser:
    """Reads lines into records; the last id lines or head opened the current record."""

    def __init__(self, source: str) -> None:
        """Start without any record; errors name the source."""
        self.source = source
        self.records: dict[Key, Record] = {}
        self.errors: list[ParseError] = []
        """The first bad lines; after `close` also how many more there are."""
        self._num_unnamed = 0
        self.form = ""
        """An unsupported form of the tool's output that was seen, empty if none."""
        self._record: Record | None = None
        self._id_lines: dict[str, str] = {}
        self._guids = LazyDict(parse_guid)

    @property
    def is_between_records(self) -> bool:
        """Whether the next id line opens a record that does not depend on the lines before it."""
        return self._record is not None or not self._id_lines

    def resume(self, record: Record) -> None:
        """Continue after a record from another parser, as if its lines had been read here."""
        self.records[record.key] = record
        self._record, self._id_lines = record, {}

    def error(self, problem: str, line: int | None = None, excerpt: str = "") -> None:
        """Add an error about a line, or about the whole output; count it if there are many."""
        if len(self.errors) >= MAX_ERRORS:
            self._num_unnamed += 1
            return
        self.errors.append(ParseError(problem, source=self.source, line=line, excerpt=excerpt))

    def close(self, *, is_empty: bool) -> None:
        """Add the errors about the whole output, after all lines are read."""
        if self._num_unnamed:
            self._add_closing(f"{self._num_unnamed} more lines are bad")
            self._num_unnamed = 0
        if self.form:
            self._add_closing(f"this is {self.form}: run `ibnetdiscover` without options")
        elif is_empty:
            self._add_closing("no Switch, Ca or Rt record: expected the output of `ibnetdiscover`")

    def _add_closing(self, problem: str) -> None:
        self.errors.append(ParseError(problem, source=self.source))

    def end_record(self) -> None:
        """Forget the current record: another parser has read the lines that followed it."""
        self._record, self._id_lines = None, {}

    def read(self, text: str, first: int = 1) -> None:
        """Dispatch every line on its first character; `first` is the number of the first line."""
        readers = {"[": self._read_port, "#": self._read_comment}
        readers |= dict.fromkeys("vdscr", self._read_id_line)
        readers |= dict.fromkeys("SCR", self._read_head)
        for number, raw_line in enumerate(text.split("\n"), first):
            line = raw_line.strip()
            if line:
                readers.get(line[0], self._read_other_line)(line, number)

    def _read_comment(self, _line: str, _number: int) -> None:
        """Ignore comments: the time and the source of the sweep describe no device."""

    def _read_id_line(self, line: str, number: int) -> None:
        match = _ID_LINE.match(line)
        if match is None:
            self._read_other_line(line, number)
            return
        key, value = match.groups()
        if self._record is not None or key == "vendid":
            self._record, self._id_lines = None, {}
        self._id_lines[key] = value

    def _read_head(self, line: str, number: int) -> None:
        if _ROW_WORD.match(line):
            self._read_port_row(line, number)
            return
        if not _HEAD_WORD.match(line):
            self._read_other_line(line, number)
            return
        self._record = None
        match = _HEAD.match(line)
        guid = self._guids[match[2]] if match else None
        if match is None or guid is None:
            self._read_other_line(line, number, "record head without a GUID")
            return
        quoted, remainder = match[3], match[4]
        description = quoted if quoted is not None else _unquoted(_HEAD_TAIL.split(remainder)[0])
        self._open((match[1], guid), description)

    def _open(self, key: Key, description: str) -> Record:
        """Make a record current; a second record of a node adds to the first."""
        record = self._get(key, description)
        if record.image is None:
            record.image = self._guids[self._id_lines.get("sysimgguid", "")]
        record.device_id = record.device_id or int(self._id_lines.get("devid", "0"), 16)
        self._record, self._id_lines = record, {}
        return record

    def _get(self, key: Key, description: str) -> Record:
        record = self.records.get(key)
        if record is None:
            record = self.records[key] = Record(*key)
        record.description = record.description or description
        return record

    def _recover(self) -> Record | None:
        """Open a record without a head from its id line, None if there is no id line."""
        for word, letter in _OWN_GUID.items():
            guid = self._guids[self._id_lines.get(word, "")]
            if guid:
                return self._open((letter, guid), "")
        return None

    def _read_port(self, line: str, number: int) -> None:
        match = _PORT.match(line)
        if match is not None:
            port, own_text, letter, peer, peer_port, peer_guid, description, width, speed = (
                match.groups()
            )
        elif (match := _PORT_UNQUOTED.match(line)) is not None:
            port, own_text, letter, peer, peer_port, peer_guid, remainder = match.groups()
            description, width, speed = _split_unquoted(remainder)
        else:
            self._read_other_line(line, number, "port line without a peer")
            return
        guid = self._guids[peer]
        record = self._record or self._recover()
        if record is None or guid is None:
            problem = "peer without a GUID" if record else "port line outside of any record"
            self.error(problem, number, line)
            return
        far_port: FarPort = (int(peer_port), self._guids[peer_guid] if peer_guid else None)
        own_guid = self._guids[own_text] if own_text and record.letter != "S" else None
        rate = self._rate(width, speed, number) if width else None
        if not add_row(record, int(port), (own_guid, (letter, guid), far_port, description, rate)):
            self.error("port has two peers, the first one counts", number, line)

    def _rate(self, width: str, speed: str | None, number: int) -> int | None:
        token = f"{width}{speed}"
        rate = RATES_BPS.get(token)
        if rate is None and "?" not in token:
            self.error("unknown link rate, the link is kept without a rate", number, token)
        return rate

    def _read_port_row(self, line: str, number: int) -> None:
        """Read a row of -p, outside of any record. A port without a peer has no rate either."""
        match = _PORT_ROW.match(line)
        texts = _row_texts(match[9], is_linked=match[6] is not None) if match else None
        guid = self._guids[match[3]] if match else None
        if match is None or texts is None or guid is None:
            self._read_other_line(line, number, "port row is truncated or damaged")
            return
        row: PortLine = (None, None, (0, None), "", None)
        if match[6] is not None:
            peer = self._guids[match[8]]
            if peer is None:
                self.error("peer without a GUID", number, line)
                return
            rate = self._rate(match[4], match[5], number)
            row = (None, (_ROW_LETTERS[match[6]], peer), (int(match[7]), None), texts[1], rate)
        record = self._get((_ROW_LETTERS[match[1]], guid), texts[0])
        if not add_row(record, int(match[2]), row):
            self.error("port has two peers, the first one counts", number, line)

    def _read_other_line(self, line: str, number: int, problem: str = "unknown line") -> None:
        """Skip shell prompts and the lines of -g and -s, note other forms, or add an error."""
        is_list = _LIST_ROW.match(line) is not None
        self.form = self.form or (_LIST if is_list else "")
        is_prompt = len(line) <= _MAX_PROMPT and _PROMPT.search(line)
        if not (is_list or is_prompt or line.startswith(_SKIPPED)):
            self.error(problem, number, line)


def add_row(record: Record, port: int, row: PortLine) -> bool:
    """Add a port unless it is known; return False if the known port has another cable."""
    old = record.port_lines.setdefault(port, row)
    if old[1] is None:
        record.port_lines[port] = row
    return (
        old[1] is None or row[1] is None or bool(_far_end_spellings(old) & _far_end_spellings(row))
    )


def _far_end_spellings(row: PortLine) -> set[tuple[str, int]]:
    """Return the spellings of a row's far end: -p names CAs by the GUIDs of their ports."""
    number, port_guid = row[2]
    letter, guid = row[1] or ("", "")
    return {(letter.upper() + guid, number), (letter.upper() + (port_guid or guid), number)}


def _row_texts(remainder: str, *, is_linked: bool) -> tuple[str, str] | None:
    """Return the near and the far description of a row of -p, None if they are damaged.

    The tool escapes nothing. If a description contains `' - '`, the last one is the separator.
    """
    if not is_linked:
        is_whole = len(remainder) > 1 and remainder[0] == remainder[-1] == "'"
        return (remainder[1:-1], "") if is_whole else None
    body = remainder.removeprefix("( '").removesuffix("' )")
    near_text, separator, far_text = body.rpartition(_BETWEEN_TEXTS)
    return (
        (near_text, far_text) if separator and len(remainder) - len(body) == len("( '' )") else None
    )


def _unquoted(text: str) -> str:
    return text.strip().strip('"').strip()


def _split_unquoted(remainder: str) -> tuple[str, str | None, str | None]:
    """Return description, width and speed of a port line without its quotes."""
    cut = remainder.rfind("lid ")
    text, tail = (remainder[:cut], remainder[cut:]) if cut >= 0 else (remainder, "")
    match = _TAIL.match(tail)
    width, speed = match.groups() if match else (None, None)
    return _unquoted(text), width, speed
