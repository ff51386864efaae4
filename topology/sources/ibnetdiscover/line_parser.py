"""Lines of `ibnetdiscover` to records: its whole grammar, and what damage does to it.

Records are split at their id lines and heads, never at blank lines, because pasted files lose
those. What the tool's own forms and ibdiagnet's differ in: with -g ports also have an external
number, in ibdiagnet's file a switch port's first parentheses are a label of the front panel, and
LIDs may be empty. The rows of -p stand for themselves and may be mixed with records.

Source: infiniband-diags 44, ibnetdiscover.c; formats seen in collected dumps.
"""

from __future__ import annotations

import re
from typing import Final

from topology.model.errors import ParseError
from topology.model.ids import parse_guid
from topology.sources.ibnetdiscover.devices import FarPort, Key, LazyDict, Record, PortLine
from topology.sources.infiniband.node_names import RATES_BPS

_ID_LINE: Final = re.compile(
    r"(vendid|devid|sysimgguid|switchguid|caguid|rtguid)\s*+=\s*+(?:0x)?([0-9a-fA-F]{1,16})(?=[\s(#]|\Z)"
)
_OWN_GUID: Final = {"switchguid": "S", "caguid": "H", "rtguid": "R"}
_HEAD: Final = re.compile(
    r'(?:Switch|Ca|Rt)\b\s*+[0-9]*+\s*+"?([SHR])-([0-9a-fA-F]{16})\b"?\s*+#?\s*+(?:"(.*)")?(.*)'
)
# A port line is its own port, the peer, the peer's port, and what follows the description.
# The first parentheses are the port's own GUID on CAs, the second the peer's.
_EXTERNAL: Final = r"(?:\[ext\s[0-9]+\])?\s*+"
OWN_PORT: Final = rf"\[([0-9]{{1,3}})\]{_EXTERNAL}(?:\(([^()]*)\))?\s*+"
PEER: Final = r"([SHR])-([0-9a-fA-F]{16})"
FAR_PORT: Final = (
    rf"\[([0-9]{{1,3}})\]{_EXTERNAL}(?:\(([^()]*)\))?\s*+"
    r"#?\s*+(?:lid\s*+(?:-?[0-9]+)?\s*+lmc\s*+(?:-?[0-9]+)?\s*+)?"
)
# A LID may be missing, and then the width must not be taken for it.
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
_SKIPPED: Final = ("DR path ", "Chassis ", "Non-Chassis ", "Hostname:")
_LIST_ROW: Final = re.compile(r"(?:Ca|Switch|Rt)\s*:\s*0x[0-9a-fA-F]+\s+ports\b")
_LIST: Final = "a node list of `ibnetdiscover -l`, -H, -S or -R"


class LineParser:
    """Reads lines into records; the current one is what the last id lines or head opened."""

    def __init__(self, source: str) -> None:
        """Start without any record; errors will name the source."""
        self.source = source
        self.records: dict[Key, Record] = {}
        self.errors: list[ParseError] = []
        self.form = ""
        """Another form of the tool's output that was seen, empty if none."""
        self._record: Record | None = None
        self._id_lines: dict[str, str] = {}
        self._guids = LazyDict(parse_guid)

    @property
    def is_between_records(self) -> bool:
        """Whether the next id line opens a record that owes nothing to the lines before."""
        return self._record is not None or not self._id_lines

    def resume(self, record: Record) -> None:
        """Go on after a record that was read elsewhere, as if its lines had been read here."""
        self.records[record.key] = record
        self._record, self._id_lines = record, {}

    def error(self, problem: str, line: int | None = None, excerpt: str = "") -> None:
        """Note what is wrong with a line, or with the whole."""
        self.errors.append(ParseError(problem, source=self.source, line=line, excerpt=excerpt))

    def close(self, *, is_empty: bool) -> None:
        """Say what is wrong with the whole, once everything is read."""
        if self.form:
            self.error(f"this is {self.form}: run `ibnetdiscover` without options")
        elif is_empty:
            self.error("no Switch, Ca or Rt record: expected the output of `ibnetdiscover`")

    def read(self, text: str, first: int = 1) -> None:
        """Dispatch every line on its first character; `first` is the number of the first one."""
        readers = {"[": self._read_port, "#": self._read_comment}
        readers |= dict.fromkeys("vdscr", self._read_id_line)
        readers |= dict.fromkeys("SCR", self._read_head)
        for number, full in enumerate(text.split("\n"), first):
            line = full.strip()
            if line:
                readers.get(line[0], self._read_other_line)(line, number)

    def _read_comment(self, _line: str, _number: int) -> None:
        """Leave comments alone: when and from where it was swept tells no device."""

    def _read_id_line(self, line: str, number: int) -> None:
        found = _ID_LINE.match(line)
        if found is None:
            self._read_other_line(line, number)
            return
        key, value = found.groups()
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
        found = _HEAD.match(line)
        guid = self._guids[found[2]] if found else None
        if found is None or guid is None:
            self._read_other_line(line, number, "record head without a GUID")
            return
        quoted, rest = found[3], found[4]
        description = quoted if quoted is not None else _unquoted(_HEAD_TAIL.split(rest)[0])
        self._open((found[1], guid), description)

    def _open(self, key: Key, description: str) -> Record:
        """Make a record current; a second one of the same node adds to the first."""
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
        """Open a record whose head was lost but whose id line names it."""
        for word, letter in _OWN_GUID.items():
            guid = self._guids[self._id_lines.get(word, "")]
            if guid:
                return self._open((letter, guid), "")
        return None

    def _read_port(self, line: str, number: int) -> None:
        found = _PORT.match(line)
        if found is not None:
            port, own, letter, peer, peer_port, peer_guid, description, width, speed = (
                found.groups()
            )
        elif (found := _PORT_UNQUOTED.match(line)) is not None:
            port, own, letter, peer, peer_port, peer_guid, rest = found.groups()
            description, width, speed = _split_unquoted(rest)
        else:
            self._read_other_line(line, number, "port line without a peer")
            return
        guid = self._guids[peer]
        record = self._record or self._recover()
        if record is None or guid is None:
            problem = "peer without a GUID" if record else "port line outside of any record"
            self.error(problem, number, line)
            return
        far: FarPort = (int(peer_port), self._guids[peer_guid] if peer_guid else None)
        own_guid = self._guids[own] if own and record.letter != "S" else None
        rate = self._rate(width, speed, number) if width else None
        if not _add_row(record, int(port), (own_guid, (letter, guid), far, description, rate)):
            self.error("port has two peers, the first counts", number, line)

    def _rate(self, width: str, speed: str | None, number: int) -> int | None:
        token = f"{width}{speed}"
        rate = RATES_BPS.get(token)
        if rate is None and "?" not in token:
            self.error("unknown link rate, the link counts without one", number, token)
        return rate

    def _read_port_row(self, line: str, number: int) -> None:
        """Read a row of -p; it belongs to no record. A port without a peer has no rate either."""
        found = _PORT_ROW.match(line)
        texts = _row_texts(found[9], is_linked=found[6] is not None) if found else None
        guid = self._guids[found[3]] if found else None
        if found is None or texts is None or guid is None:
            self._read_other_line(line, number, "port row that is cut or damaged")
            return
        row: PortLine = (None, None, (0, None), "", None)
        if found[6] is not None:
            peer = self._guids[found[8]]
            if peer is None:
                self.error("peer without a GUID", number, line)
                return
            rate = self._rate(found[4], found[5], number)
            row = (None, (_ROW_LETTERS[found[6]], peer), (int(found[7]), None), texts[1], rate)
        record = self._get((_ROW_LETTERS[found[1]], guid), texts[0])
        if not _add_row(record, int(found[2]), row):
            self.error("port has two peers, the first counts", number, line)

    def _read_other_line(self, line: str, number: int, problem: str = "unknown line") -> None:
        """Skip shell prompts and the lines of -g and -s; note other forms; else it is an error."""
        is_list = _LIST_ROW.match(line) is not None
        self.form = self.form or (_LIST if is_list else "")
        is_prompt = len(line) <= _MAX_PROMPT and _PROMPT.search(line)
        if not (is_list or is_prompt or line.startswith(_SKIPPED)):
            self.error(problem, number, line)


def _add_row(record: Record, port: int, row: PortLine) -> bool:
    """Add a port, unless it is known; return whether what was known says the same cable."""
    old = record.fetch_rows.setdefault(port, row)
    if old[1] is None:
        record.fetch_rows[port] = row
    return (
        old[1] is None or row[1] is None or bool(_far_end_spellings(old) & _far_end_spellings(row))
    )


def _far_end_spellings(row: PortLine) -> set[tuple[str, int]]:
    """Return how a row's far end can be spelled: -p names CAs by the GUIDs of their ports."""
    number, port_guid = row[2]
    letter, guid = row[1] or ("", "")
    return {(letter.upper() + guid, number), (letter.upper() + (port_guid or guid), number)}


def _row_texts(rest: str, *, is_linked: bool) -> tuple[str, str] | None:
    """Return the near and the far description of a row of -p, None where they are damaged.

    Neither escapes anything, so where they hold `' - '` themselves the last one separates.
    """
    if not is_linked:
        is_whole = len(rest) > 1 and rest[0] == rest[-1] == "'"
        return (rest[1:-1], "") if is_whole else None
    body = rest.removeprefix("( '").removesuffix("' )")
    near, between, far = body.rpartition(_BETWEEN_TEXTS)
    return (near, far) if between and len(rest) - len(body) == len("( '' )") else None


def _unquoted(text: str) -> str:
    return text.strip().strip('"').strip()


def _split_unquoted(rest: str) -> tuple[str, str | None, str | None]:
    """Return description, width and speed of a port line whose quotes are lost."""
    cut = rest.rfind("lid ")
    text, tail = (rest[:cut], rest[cut:]) if cut >= 0 else (rest, "")
    found = _TAIL.match(tail)
    width, speed = found.groups() if found else (None, None)
    return _unquoted(text), width, speed
