"""The output of `ibnetdiscover`, in every form that has cables: bytes in, rows out. Needs no numpy.

Skips a bad line with a ParseError and keeps everything else. Refuses node lists, which have no
cables, with an error that names the form. Does not decide which devices are one host; the join
does.

If records are exactly as the tool prints them, reads them in bulk, by one regex for the lines
before the ports and one for a port. Reads all other lines one by one. Splits records at their id
lines and heads, never at blank lines, because pasted files lose those. The forms differ: with -g,
ports also have an external number. In ibdiagnet's file, the first parentheses of a switch port are
a label of the front panel, and LIDs may be empty. Each row of -p is complete, and rows may be mixed
with records.

Source: infiniband-diags 44, ibnetdiscover.c; formats seen in collected dumps.
"""

from __future__ import annotations

import re
import sys
from array import array
from binascii import unhexlify
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, compress, count, pairwise, repeat
from typing import Final, NamedTuple

from topology.model.errors import ParseError
from topology.model.ids import parse_guid
from topology.sources.ibnetdiscover.rows import (
    EVERY_BIT,
    LOWER_CASE,
    MAX_PORT,
    NO_GUID,
    RATE_CODES,
    SWITCH,
    Ints,
    PortLine,
    SweepRows,
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
_LINK: Final = (
    rf"\[([0-9]{{1,3}})\]{_EXTERNAL}(?:\(([^()]*)\))?\s*+"
    r'"?([SHR])-([0-9a-fA-F]{16})\b"?\s*+'
    rf"\[([0-9]{{1,3}})\]{_EXTERNAL}(?:\(([^()]*)\))?\s*+"
    r"#?\s*+(?:lid\s*+(?:-?[0-9]+)?\s*+lmc\s*+(?:-?[0-9]+)?\s*+)?"
)
# A LID may be missing; then the width must not be parsed as the LID.
_RATE: Final = r"\s*+(?:lid\s*+(?:-?[0-9]++(?!x))?\s*+)?(?:([0-9]+x|\?+)\s?([A-Z0-9?]+))?"
_PORT: Final = re.compile(rf'{_LINK}"(.*)"{_RATE}')
_PORT_UNQUOTED: Final = re.compile(_LINK + "(.*)")
_TAIL: Final = re.compile(_RATE)
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

# The lines of a node exactly as the tool prints them: those of its head, and a port line. A match
# begins with the end of the line before it, which `re` finds faster than the start of a line.
_PLAIN_HEAD: Final = re.compile(
    rb"\n(?:(vendid)=0x[0-9a-f]{1,16}+\n)?(?:devid=0x([0-9a-f]{1,16}+)\n)?"
    rb"(?:sysimgguid=0x([0-9a-f]{1,16}+)\n)?"
    rb"(?:(?:switch|ca|rt)guid=0x[0-9a-f]{1,16}+(?:\([0-9a-f]{1,16}+\))?\n)?"
    rb'(?:Switch|Ca|Rt)\t[0-9]++ "([SHR]-[0-9a-f]{16})"\t\t# "(.*)"[^"\n]*+(?=\n)'
)
_PLAIN_PORT: Final = re.compile(
    rb"\n\[([0-9]{1,3}+)\](?:\(([0-9a-f]{1,16}+)\) )?"
    rb'\t"([SHR]-[0-9a-f]{16})"\[([0-9]{1,3}+)\](?:\(([0-9a-f]{1,16}+)\) )?\t\t# '
    rb'(?:lid [0-9]++ lmc [0-9]++ )?"([^"\n]*+)" lid [0-9]++'
    rb"(?: ((?:[0-9]++x|\?++)[A-Z0-9?]++))?(?=\n)"
)
_NUM_HEAD_PARTS: Final = 1 + _PLAIN_HEAD.groups
_NUM_PORT_PARTS: Final = 1 + _PLAIN_PORT.groups
_HEAD_PARTS, _PORT_PARTS = range(1, _NUM_HEAD_PARTS), range(1, _NUM_PORT_PARTS)
_MARK: Final = b"\n\f"
"""Stands for the ports between two heads."""
_BETWEEN_LINES: Final = rb"(?:\n(?:#.*)?)*"
"""Blank lines and comments."""
_IS_BETWEEN: Final = re.compile(_BETWEEN_LINES)
_IS_MARKED: Final = re.compile(_MARK + _BETWEEN_LINES)
_NUMBERS: Final = {str(number).encode(): number for number in range(MAX_PORT + 1)}
_BLOCK_BYTES: Final = 1 << 18
"""Text that is split at once, so that its parts mostly fit into the cache."""
_MIN_BLOCK_BYTES: Final = 1 << 13
"""A block of this size, about 100 lines, is not divided again."""
_NUM_BLOCKS: Final = 8
_BOM: Final = b"\xef\xbb\xbf"
_TAIL_BYTES: Final = 1 << 16
"""More than the largest record."""
_NO_NODE: Final = -1


class _RateCodes(dict[bytes | None, int]):
    """Rate codes by the token of a plain line; None without one, code 0 if a part is unknown."""

    def __missing__(self, token: bytes) -> int:
        if b"?" in token:
            return 0
        raise KeyError(token)


_RATE_CODES: Final = _RateCodes(
    {None: 0} | {token.encode(): RATE_CODES[rate] for token, rate in RATES_BPS.items()}
)


class RowParser:
    """Reads text into rows; the last id lines or head opened the current record."""

    def __init__(self, source: str = "", *, block_bytes: int = _BLOCK_BYTES) -> None:
        """Start without any record.

        Args:
            source: the name of the file in errors.
            block_bytes: how much text is read at once; tests make it small.
        """
        self.source = source
        self._block_bytes = block_bytes
        self.rows = SweepRows()
        self.errors: list[ParseError] = []
        """The first bad lines; after `close` also how many more there are."""
        self.num_lines = 0
        self.num_unusual = 0
        """Lines that were read one by one."""
        self.tail = b""
        """The end of the text, with its last record."""
        self._num_unnamed = 0
        self._form = ""
        """An unsupported form of the tool's output that was seen, empty if none."""
        self._nodes: dict[tuple[int, int], int] = {}
        """Nodes by letter and GUID."""
        self._node = _NO_NODE
        self._id_lines: dict[str, str] = {}
        self._lines = _LineIndex(self.rows)

    def read(self, text: bytes) -> None:
        """Read a piece of the text, which ends with a line. Cost: 2 µs a line, unusual ones 8 µs.

        Takes pasted and redirected output; several dumps in sequence add up.
        """
        text = text if self.tail else text.removeprefix(_BOM)
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n")
        self._read_blocks(text, self._block_bytes)
        self.tail = (self.tail + text[-_TAIL_BYTES:])[-_TAIL_BYTES:]

    def close(self) -> None:
        """Add the errors about the whole text, after all of it is read."""
        if self._num_unnamed:
            self._add_closing(f"{self._num_unnamed} more lines are bad")
            self._num_unnamed = 0
        if self._form:
            self._add_closing(f"this is {self._form}: run `ibnetdiscover` without options")
        elif not self.rows.guids:
            self._add_closing("no Switch, Ca or Rt record: expected the output of `ibnetdiscover`")

    def _add_closing(self, problem: str) -> None:
        self.errors.append(ParseError(problem, source=self.source))

    def _error(self, problem: str, line: int, excerpt: str) -> None:
        """Add an error about a line; count it if there are many."""
        if len(self.errors) >= MAX_ERRORS:
            self._num_unnamed += 1
            return
        self.errors.append(ParseError(problem, source=self.source, line=line, excerpt=excerpt))

    # Text as the tool prints it, in bulk

    def _read_blocks(self, text: bytes, size: int) -> None:
        """Read text in blocks; divide a block that is not plain, so that most lines stay fast."""
        is_divided = size < self._block_bytes
        for block in _split_blocks(text, size):
            if self._read_plain(block):
                self.num_lines += block.count(b"\n")
            elif size < _MIN_BLOCK_BYTES or (is_divided and len(block) == len(text)):
                self._read_lines(block)
            else:
                self._read_blocks(block, size // _NUM_BLOCKS)

    def _read_plain(self, block: bytes) -> bool:
        """Add the rows of a plain block; return False, and add none, if a line needs more care.

        Every head makes a gap between port lines, so its ports are those up to the next gap.
        """
        parts = _PLAIN_PORT.split(b"\n" + block)
        gaps = parts[::_NUM_PORT_PARTS]
        num_lines = len(gaps) - 1
        if _IS_BETWEEN.fullmatch(gaps[-1]):
            gaps[-1] = b""
        firsts = list(compress(count(), gaps))
        if not firsts:
            return not num_lines
        head_parts = _PLAIN_HEAD.split(_MARK.join(compress(gaps, gaps)) + b"\n")
        between = head_parts[::_NUM_HEAD_PARTS]
        if (
            firsts[0] != 0
            or len(between) != len(firsts) + 1
            or not all(map(_IS_MARKED.fullmatch, set(between[1:-1])))
            or not all(map(_IS_BETWEEN.fullmatch, (between[0], between[-1])))
        ):
            return False
        heads = _PlainHeads._make(head_parts[part::_NUM_HEAD_PARTS] for part in _HEAD_PARTS)
        ports = _PlainPorts._make(parts[part::_NUM_PORT_PARTS] for part in _PORT_PARTS)
        spans = [slice(*span) for span in pairwise([*firsts, num_lines])]
        num_ports = [span.stop - span.start for span in spans]
        if any(
            size > 1 and len(set(ports.numbers[span])) < size
            for span, size in zip(spans, num_ports, strict=True)
        ):
            return False
        is_between = self._node != _NO_NODE or not self._id_lines
        return bool(is_between or heads.vendors[0]) and self._add_plain(heads, ports, num_ports)

    def _add_plain(self, heads: _PlainHeads, ports: _PlainPorts, num_ports: Sequence[int]) -> bool:
        """Add the rows of plain lines; return False, and add none, if one needs more care."""
        rows, first = self.rows, len(self.rows.guids)
        nodes = _parse_plain_nodes(rows, heads)
        lines = _parse_plain_ports(rows, ports)
        if nodes is None or lines is None:
            return False
        keys = list(zip(*nodes[:2], strict=True))
        if len(set(keys)) < len(keys) or not self._nodes.keys().isdisjoint(keys):
            return False
        owners = array("I", chain.from_iterable(map(repeat, count(first), num_ports)))
        if any(nodes[0][node - first] == SWITCH for node in set(compress(owners, lines[1]))):
            return False  # the first parentheses of a switch port are a label of the front panel
        self._nodes.update(zip(keys, range(first, first + len(keys)), strict=True))
        self._lines.add_spans(len(rows.nodes), num_ports)
        rows.nodes.extend(owners)
        for column, added in zip(rows.columns(), (*nodes, *lines), strict=True):
            column.extend(added)
        self._node, self._id_lines = len(rows.guids) - 1, {}
        return True

    # All other lines, one by one

    def _read_lines(self, text: bytes) -> None:
        """Dispatch every line on its first character."""
        readers = {"[": self._read_port, "#": self._read_comment}
        readers |= dict.fromkeys("vdscr", self._read_id_line)
        readers |= dict.fromkeys("SCR", self._read_head)
        lines = text.decode("utf-8", "replace").split("\n")
        for number, raw_line in enumerate(lines, self.num_lines + 1):
            line = raw_line.strip()
            if line:
                readers.get(line[0], self._read_other_line)(line, number)
        self.num_lines += len(lines) - 1
        self.num_unusual += len(lines)

    def _read_comment(self, _line: str, _number: int) -> None:
        """Ignore comments: the time and the source of the sweep describe no device."""

    def _read_id_line(self, line: str, number: int) -> None:
        match = _ID_LINE.match(line)
        if match is None:
            self._read_other_line(line, number)
            return
        key, value = match.groups()
        if self._node != _NO_NODE or key == "vendid":
            self._node, self._id_lines = _NO_NODE, {}
        self._id_lines[key] = value

    def _read_head(self, line: str, number: int) -> None:
        if _ROW_WORD.match(line):
            self._read_port_row(line, number)
            return
        if not _HEAD_WORD.match(line):
            self._read_other_line(line, number)
            return
        self._node = _NO_NODE
        match = _HEAD.match(line)
        guid = _parse_guid(match[2]) if match else NO_GUID
        if match is None or guid == NO_GUID:
            self._read_other_line(line, number, "record head without a GUID")
            return
        quoted, remainder = match[3], match[4]
        description = quoted if quoted is not None else _unquoted(_HEAD_TAIL.split(remainder)[0])
        self._open(match[1], guid, description)

    def _open(self, letter: str, guid: int, description: str) -> int:
        """Make a record current; a second record of a node adds to the first."""
        rows, node = self.rows, self._find_node(letter, guid, description)
        if rows.images[node] == NO_GUID:
            rows.images[node] = _parse_guid(self._id_lines.get("sysimgguid", ""))
        if not rows.device_ids[node]:
            rows.device_ids[node] = int(self._id_lines.get("devid", "0"), 16)
        self._node, self._id_lines = node, {}
        return node

    def _find_node(self, letter: str, guid: int, description: str) -> int:
        """Return a node, added if it is new; its first description counts."""
        rows, key = self.rows, (ord(letter), guid)
        text = rows.descriptions[description.encode()]
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = len(rows.guids)
            self._lines.add_spans(0, [0])
            for column, number in zip(rows.node_columns(), (*key, 0, 0, text), strict=True):
                column.append(number)
        rows.texts[node] = rows.texts[node] or text
        return node

    def _recover(self) -> int:
        """Open a record without a head from its id line; _NO_NODE if there is no id line."""
        for word, letter in _OWN_GUID.items():
            guid = _parse_guid(self._id_lines.get(word, ""))
            if guid != NO_GUID:
                return self._open(letter, guid, "")
        return _NO_NODE

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
        guid = _parse_guid(peer)
        node = self._node if self._node != _NO_NODE else self._recover()
        if node == _NO_NODE or guid == NO_GUID:
            has_node = node != _NO_NODE
            problem = "peer without a GUID" if has_node else "port line outside of any record"
            self._error(problem, number, line)
            return
        is_switch = self.rows.letters[node] == SWITCH
        port_line = PortLine(
            number=int(port),
            own_guid=NO_GUID if is_switch else _parse_guid(own_text or ""),
            peer_letter=ord(letter),
            peer=guid,
            far_number=int(peer_port),
            far_guid=_parse_guid(peer_guid or ""),
            text=self.rows.descriptions[description.encode()],
            rate=self._parse_rate(width, speed, number) if width else 0,
        )
        self._add_line(node, port_line, line, number)

    def _add_line(self, node: int, port_line: PortLine, line: str, number: int) -> None:
        if not self._lines.add(node, port_line):
            self._error("port has two peers, the first one counts", number, line)

    def _parse_rate(self, width: str, speed: str | None, number: int) -> int:
        token = f"{width}{speed}"
        rate = RATES_BPS.get(token)
        if rate is None and "?" not in token:
            self._error("unknown link rate, the link is kept without a rate", number, token)
        return RATE_CODES[rate]

    def _read_port_row(self, line: str, number: int) -> None:
        """Read a row of -p, outside of any record. A port without a peer has no rate either."""
        match = _PORT_ROW.match(line)
        texts = _row_texts(match[9], is_linked=match[6] is not None) if match else None
        guid = _parse_guid(match[3]) if match else NO_GUID
        if match is None or texts is None or guid == NO_GUID:
            self._read_other_line(line, number, "port row is truncated or damaged")
            return
        port_line = PortLine(int(match[2]), NO_GUID, NO_GUID, NO_GUID, 0, NO_GUID, 0, 0)
        if match[6] is not None:
            peer = _parse_guid(match[8])
            if peer == NO_GUID:
                self._error("peer without a GUID", number, line)
                return
            port_line = port_line._replace(
                peer_letter=ord(_ROW_LETTERS[match[6]]),
                peer=peer,
                far_number=int(match[7]),
                text=self.rows.descriptions[texts[1].encode()],
                rate=self._parse_rate(match[4], match[5], number),
            )
        node = self._find_node(_ROW_LETTERS[match[1]], guid, texts[0])
        self._add_line(node, port_line, line, number)

    def _read_other_line(self, line: str, number: int, problem: str = "unknown line") -> None:
        """Skip shell prompts and the lines of -g and -s, note other forms, or add an error."""
        is_list = _LIST_ROW.match(line) is not None
        self._form = self._form or (_LIST if is_list else "")
        is_prompt = len(line) <= _MAX_PROMPT and _PROMPT.search(line)
        if not (is_list or is_prompt or line.startswith(_SKIPPED)):
            self._error(problem, number, line)


def parse_rows(text: bytes, *, source: str = "") -> RowParser:
    """Return the parser of a whole text, which has its rows and errors; never raises.

    Every CA is a separate node: one HCA function, not a host. Both ends of a cable are reported,
    each with its own rate. Ports without a link appear only in the output of -p. That output has
    only the port GUID of a CA, so there each port of a CA is a node.
    Cost: O(lines), 2 µs each; unusual ones 8 µs.

    Args:
        text: the output, pasted or redirected; several dumps in sequence add up.
        source: the name of the input in errors.
    """
    parser = RowParser(source)
    parser.read(text)
    parser.close()
    return parser


class _PlainHeads(NamedTuple):
    """The parts of plain heads; empty or None for a part that is missing."""

    vendors: list[bytes]
    device_ids: list[bytes]
    images: list[bytes]
    nodes: list[bytes]
    texts: list[bytes]


class _PlainPorts(NamedTuple):
    """The parts of plain port lines."""

    numbers: list[bytes]
    own_guids: list[bytes]
    peers: list[bytes]
    far_numbers: list[bytes]
    far_guids: list[bytes]
    texts: list[bytes]
    rates: list[bytes]


class _LineIndex:
    """The port lines of each node by number, so that a line that is repeated is found.

    Plain records have one span of lines each; it is indexed when another line of the node comes.
    """

    def __init__(self, rows: SweepRows) -> None:
        self._rows = rows
        self._starts: Ints = array("I")
        """By node, the first line of its span."""
        self._sizes: Ints = array("H")
        """By node, the number of lines of its span that are not indexed yet."""
        self._lines: dict[tuple[int, int], int] = {}

    def add_spans(self, start: int, sizes: Sequence[int]) -> None:
        """Add nodes whose lines follow one another from `start` on."""
        self._starts.extend(accumulate(sizes[:-1], initial=start))
        self._sizes.extend(sizes)

    def add(self, node: int, line: PortLine) -> bool:
        """Add a port unless it is known; return False if the known port has another cable."""
        self._index_span(node)
        index = self._lines.get((node, line.number))
        if index is None:
            self._lines[node, line.number] = len(self._rows.nodes)
            self._rows.add_line(node, line)
            return True
        known = self._rows.line_at(index)
        if known.peer_letter == NO_GUID:
            self._rows.set_line(index, line)
        is_free = NO_GUID in (known.peer_letter, line.peer_letter)
        return is_free or bool(_spell_far_end(known) & _spell_far_end(line))

    def _index_span(self, node: int) -> None:
        start = self._starts[node]
        for index in range(start, start + self._sizes[node]):
            self._lines[node, self._rows.numbers[index]] = index
        self._sizes[node] = 0


def _spell_far_end(line: PortLine) -> set[tuple[int, int, int]]:
    """Return the spellings of a line's far end: -p names CAs by the GUIDs of their ports."""
    letter = line.peer_letter & ~LOWER_CASE
    return {(letter, guid, line.far_number) for guid in (line.peer, line.far_guid or line.peer)}


def _split_blocks(text: bytes, size: int) -> Iterator[bytes]:
    """Yield parts that end at the first blank line after `size` bytes, or with the text."""
    start = 0
    while start < len(text):
        cut = text.find(b"\n\n", start + size)
        stop = len(text) if cut < 0 else cut + 2
        yield text[start:stop]
        start = stop


def _parse_plain_nodes(rows: SweepRows, heads: _PlainHeads) -> tuple[Ints, ...] | None:
    """Return the columns of nodes; None if one needs more care."""
    letters, guids = _parse_nodes(heads.nodes)
    images = _parse_short_hex(heads.images)
    if NO_GUID in guids or EVERY_BIT in guids or EVERY_BIT in images:
        return None
    texts = array("I", map(rows.descriptions.__getitem__, heads.texts))
    return letters, guids, images, _parse_short_hex(heads.device_ids), texts


def _parse_plain_ports(rows: SweepRows, ports: _PlainPorts) -> tuple[Ints, ...] | None:
    """Return the columns of port lines; None if one needs more care."""
    peer_letters, peers = _parse_nodes(ports.peers)
    own_guids, far_guids = _parse_short_hex(ports.own_guids), _parse_short_hex(ports.far_guids)
    if NO_GUID in peers or any(EVERY_BIT in guids for guids in (peers, own_guids, far_guids)):
        return None
    try:
        return (
            array("H", map(_NUMBERS.__getitem__, ports.numbers)),
            own_guids,
            peer_letters,
            peers,
            array("H", map(_NUMBERS.__getitem__, ports.far_numbers)),
            far_guids,
            array("I", map(rows.descriptions.__getitem__, ports.texts)),
            array("B", map(_RATE_CODES.__getitem__, ports.rates)),
        )
    except KeyError:  # an unknown rate, or a number with a zero before it
        return None


def _parse_nodes(texts: Sequence[bytes]) -> tuple[Ints, Ints]:
    """Return the letters and the GUIDs of nodes, each a letter, a hyphen and 16 digits."""
    joined = b"".join(texts)
    letters, digits = joined[:: len("S-0123456789abcdef")], joined.translate(None, b"SHR-")
    guids = array("Q", unhexlify(digits))
    if sys.byteorder == "little":
        guids.byteswap()
    return array("B", letters), guids


def _parse_short_hex(texts: Sequence[bytes]) -> Ints:
    """Return numbers without leading zeros; 0 for no digits."""
    if not any(texts):
        return array("Q", bytes(8 * len(texts)))
    return array("Q", [int(text, 16) if text else 0 for text in texts])


def _parse_guid(text: str) -> int:
    return int(parse_guid(text) or "0", 16)


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
