"""The numpy parser of `ibnetdiscover`: all lines of a chunk at once, to columns.

Accepts only lines exactly as the tool prints them, and refuses a chunk with any other line as a
whole; `chunks` then passes it to the line parser, which defines the correct result. The text
between the quotes of a description may be anything.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topology.sources.ibnetdiscover.byte_words import (
    GUID_DIGITS,
    PAD,
    WORD,
    Flags,
    Index,
    NonCanonicalInput,
    Window,
    Words,
    after_last,
    are_decimal,
    byte_at,
    drop_first,
    last_tokens,
    num_digits_before,
    parse_bracketed,
    parse_short_hex,
    require_all,
    starts_with,
)
from topology.sources.ibnetdiscover.columns import RATE_CODES, SWITCH, Columns
from topology.sources.ibnetdiscover.parser import RATE
from topology.sources.infiniband.link_rates import RATES_BPS

_EMPTY, _PORT, _HEAD, _ID, _ODD = range(5)
_CLASSES: Final = np.full(256, _ODD, np.uint8)
"""The class of a line by its first character."""
for _starts, _class in ((b"\n#", _EMPTY), (b"[", _PORT), (b"SCR", _HEAD), (b"vdscr", _ID)):
    _CLASSES[list(_starts)] = _class
_IS_NODE: Final = np.zeros(256, np.bool_)
_IS_NODE[list(b"SHR")] = True
_ENDS_ID: Final = np.zeros(256, np.bool_)
_ENDS_ID[list(b"\n\t (#")] = True

_VENDOR, _DEVICE, _IMAGE = "vendid=0x", "devid=0x", "sysimgguid=0x"
_ID_WORDS: Final = (_VENDOR, _DEVICE, _IMAGE, "switchguid=0x", "caguid=0x", "rtguid=0x")
_SHORT_WORDS: Final = (_VENDOR, _DEVICE)
_TAIL_WORDS: Final = 6
"""Words (of 8 characters) from the end of a head in which to search for the last quote of the
description: it ends in `" base port 0 lid 7 lmc 0`."""
_HEAD_WORDS: Final = ("Switch\t", "Ca\t", "Rt\t")
_ONE: Final = np.uint64(1)
_ALL_ONES: Final = np.uint64(0xFFFFFFFFFFFFFFFF)
_OPEN, _QUOTE, _LEFT, _TAB, _HYPHEN, _NEWLINE = b'["(\t-\n'
_RATE: Final = re.compile(RATE)
_MAX_RATES: Final = 64
"""Different rates in one chunk; fabrics have a handful."""


class _NodeHeads(NamedTuple):
    letters: NDArray[np.uint8]
    guids: Words
    text_starts: Index
    text_stops: Index


class _NearEnds(NamedTuple):
    """The near ends of port lines."""

    numbers: NDArray[np.int16]
    guids: Words
    quotes: Index
    """Offset of the first quote, that of the peer."""


class _FarEnds(NamedTuple):
    """The far ends of port lines."""

    letters: NDArray[np.uint8]
    peers: Words
    numbers: NDArray[np.int16]
    guids: Words
    texts: Index
    """Offset of the description."""


def parse_chunk(dump: bytes, start: int, stop: int) -> Columns:
    """Return the nodes of a chunk that starts and ends between records, in its order.

    Offsets of texts count from the start of the dump. Cost: O(characters), about 0.2 µs a line.

    Raises:
        NonCanonicalInput: the chunk needs the line parser: an unusual line, an unknown rate, a
            duplicate port, or an invalid GUID.
    """
    return _ChunkParser(dump, start, stop).columns()


class _ChunkParser:
    """One chunk while it is parsed."""

    def __init__(self, dump: bytes, start: int, stop: int) -> None:
        self._dump, self._start = dump, start
        raw = np.frombuffer(dump, np.uint8, min(stop + PAD, len(dump)) - start, start)
        if len(raw) < stop - start + PAD:
            raw = np.concatenate((raw[: stop - start], np.full(PAD, _NEWLINE, np.uint8)))
        self._window = Window(raw, stop - start)
        self._characters = raw
        size = self._window.size
        if size and raw[size - 1] != _NEWLINE:
            raise NonCanonicalInput
        ends = np.flatnonzero(raw[:size] == _NEWLINE)
        starts = np.empty_like(ends)
        starts[1:] = ends[:-1] + 1
        starts[:1] = 0
        self._starts, self._ends, self._classes = starts, ends, _CLASSES[raw[starts]]

    def columns(self) -> Columns:
        """Return the nodes and port lines of the chunk."""
        starts, ends = self._starts, self._ends
        ports, heads, ids = self._split_lines()
        num_nodes = len(heads)
        nodes = self._read_heads(starts[heads], ends[heads])
        ids_of = np.diff(self._num_before(_ID, heads), prepend=0)
        images, device_ids = self._read_id_lines(
            starts[ids], np.repeat(np.arange(num_nodes), ids_of), num_nodes
        )
        num_rows = np.diff(self._num_before(_PORT, heads), append=len(ports))
        owners = np.repeat(np.arange(num_nodes), num_rows)
        near_ends = self._read_near_ends(starts[ports])
        far_ends = self._read_far_ends(near_ends.quotes)
        text_stops, rates = self._read_tails(ends[ports], far_ends.texts)
        with_guid = np.flatnonzero(near_ends.guids)
        labels = with_guid[nodes.letters[owners[with_guid]] == SWITCH]
        near_ends.guids[labels] = 0  # the first parentheses of a switch port are a label
        columns = Columns(
            letters=nodes.letters,
            guids=nodes.guids,
            images=images,
            device_ids=device_ids,
            text_starts=self._places(nodes.text_starts),
            text_stops=self._places(nodes.text_stops),
            num_rows=num_rows,
            numbers=near_ends.numbers.astype(np.uint16),
            own_guids=near_ends.guids,
            peer_letters=far_ends.letters,
            peers=far_ends.peers,
            far_numbers=far_ends.numbers.astype(np.uint16),
            far_guids=far_ends.guids,
            peer_starts=self._places(far_ends.texts),
            peer_stops=self._places(text_stops),
            rates=rates,
        )
        return _sort_ports(columns, owners)

    def _num_before(self, kind: int, lines: Index) -> Index:
        """Return the number of lines of a kind before each of some lines of other kinds."""
        return np.cumsum(self._classes == kind, dtype=np.int32)[lines].astype(np.intp)

    def _places(self, offsets: Index) -> NDArray[np.uint32]:
        return (offsets + self._start).astype(np.uint32)

    def _split_lines(self) -> tuple[Index, Index, Index]:
        """Return the port lines, heads and id lines; refuse them in an invalid order."""
        classes = self._classes
        if len(classes) and classes.max() == _ODD:
            raise NonCanonicalInput
        ports, heads, ids = (
            np.flatnonzero(classes == line_class) for line_class in (_PORT, _HEAD, _ID)
        )
        if len(ports):
            before = classes[ports - 1]
            require_all((before == _PORT) | (before == _HEAD))
            require_all(ports[:1] > 0)
        if len(ids):
            require_all(
                heads[-1:] > ids[-1] if len(heads) else ids < 0
            )  # else no head would follow
        return ports, heads, ids

    def _read_heads(self, starts: Index, ends: Index) -> _NodeHeads:
        r"""Read `Ca\t1 "H-0002c90"\t\t# "n1 mlx5_0"`."""
        window = self._window
        words = window.words(starts)
        size = np.zeros_like(starts)
        for word in _HEAD_WORDS:
            size[starts_with(words, word)] = len(word)
        require_all(size > 0)
        blanks = starts + size
        blanks += num_digits_before(window.words(blanks), " ", most=4)
        words = window.words(blanks)
        letters = byte_at(words, 2)
        require_all(starts_with(words, ' "') & _IS_NODE[letters] & (byte_at(words, 3) == _HYPHEN))
        offsets = blanks + len(' "S-')
        guids = window.guids(offsets)
        texts = offsets + GUID_DIGITS + len('"\t\t# "')
        require_all(_is_real_guid(guids) & window.starts_with('"\t\t# "', offsets + GUID_DIGITS))
        return _NodeHeads(letters.astype(np.uint8), guids, texts, self._last_quotes(texts, ends))

    def _last_quotes(self, starts: Index, ends: Index) -> Index:
        """Return where descriptions end: usually with the line, otherwise at its last quote."""
        stops = ends - 1
        remaining = np.flatnonzero(self._characters[stops] != _QUOTE)
        offsets = ends[remaining]
        for _ in range(_TAIL_WORDS):
            if not len(remaining):
                break
            offsets = offsets - WORD
            after = after_last(self._window.words(offsets), '"')
            is_found = after < WORD
            stops[remaining[is_found]] = (offsets + WORD - 1 - after)[is_found]
            remaining, offsets = remaining[~is_found], offsets[~is_found]
        require_all(stops >= starts)
        if len(remaining):
            raise NonCanonicalInput
        return stops

    def _read_id_lines(self, starts: Index, owners: Index, num_nodes: int) -> tuple[Words, Words]:
        """Return the system image GUID and device id of each node: `sysimgguid=0x2c90`."""
        window = self._window
        words = window.words(starts)
        images, device_ids = np.zeros(num_nodes, np.uint64), np.zeros(num_nodes, np.uint64)
        num_known = 0
        for word in _ID_WORDS:
            lines = np.flatnonzero(starts_with(words, word[:WORD]))
            if not len(lines):
                continue
            num_known += len(lines)
            nodes, offsets = owners[lines], starts[lines] + WORD
            if word in _SHORT_WORDS:
                next_words = window.words(offsets)
                require_all(starts_with(next_words, word[WORD:]))
                next_words = drop_first(next_words, len(word) - WORD)
                values, num_digits = parse_short_hex(next_words)
                after = byte_at(next_words, num_digits)
            else:
                require_all(window.starts_with(word[WORD:], offsets))
                offsets += len(word) - WORD
                values, num_digits = window.hex_runs(offsets)
                after = self._characters[offsets + num_digits]
            require_all((num_digits > 0) & _ENDS_ID[after])
            require_all(nodes[1:] > nodes[:-1])  # of two lines, the later one would count
            if word == _IMAGE:
                images[nodes] = values
            elif word == _DEVICE:
                device_ids[nodes] = values
            elif word == _VENDOR:
                later = lines[lines > 0]
                require_all(owners[later] > owners[later - 1])  # it voids the lines before it
        if num_known < len(starts):
            raise NonCanonicalInput
        return _clear_unreal_guids(images), device_ids

    def _read_near_ends(self, starts: Index) -> _NearEnds:
        r"""Read `[1](2c90) \t"` and `[1]\t"`."""
        words = self._window.words(starts)
        port_numbers, num_digits = parse_bracketed(drop_first(words, 1))
        after = starts + num_digits + len("[]")
        is_bare = byte_at(words, num_digits + 2) == _TAB
        require_all(
            (byte_at(words, 0) == _OPEN) & (~is_bare | (byte_at(words, num_digits + 3) == _QUOTE))
        )
        guids, quotes = self._read_guids_in_parentheses(after, ~is_bare, ') \t"')
        return _NearEnds(port_numbers, guids, quotes + is_bare)

    def _read_far_ends(self, quotes: Index) -> _FarEnds:
        r"""Read `"S-0002c90"[7]\t\t# "`, which may contain `(2c90) ` or `lid 7 lmc 0 `."""
        words = self._window.words(quotes)
        letters = byte_at(words, 1)
        require_all(
            _IS_NODE[letters] & (byte_at(words, 0) == _QUOTE) & (byte_at(words, 2) == _HYPHEN)
        )
        peers = self._window.guids(quotes + len('"S-'))
        stops = quotes + len('"S-') + GUID_DIGITS
        words = self._window.words(stops)
        port_numbers, num_digits = parse_bracketed(drop_first(words, 2))
        has_guid = byte_at(words, num_digits + 3) == _LEFT
        require_all(starts_with(words, '"[') & _is_real_guid(peers))
        guids, offsets = self._read_guids_in_parentheses(
            stops + num_digits + 3, has_guid, ") \t\t# "
        )
        offsets -= has_guid * len("\t\t#")
        texts = self._skip_own_lids(offsets)
        return _FarEnds(letters.astype(np.uint8), peers, port_numbers, guids, texts)

    def _read_guids_in_parentheses(
        self, offsets: Index, has_guid: Flags, end: str
    ) -> tuple[Words, Index]:
        """Read `(2c90)`.

        Args:
            offsets: the start of each.
            has_guid: whether there is a GUID in parentheses.
            end: the text that must follow, including the closing parenthesis.

        Returns:
            The GUIDs and the offsets of the last character of `end`; without a GUID, 0 and the
            given offset.
        """
        guids = np.zeros(len(offsets), np.uint64)
        stops = offsets.copy()
        indexes = np.flatnonzero(has_guid)
        if not len(indexes):
            return guids, stops
        starts = offsets[indexes] + 1
        values, num_digits = self._window.hex_runs(starts)
        ends = starts + num_digits
        is_open = self._characters[starts - 1] == _LEFT
        require_all(is_open & (num_digits > 0) & self._window.starts_with(end, ends))
        guids[indexes] = _clear_unreal_guids(values)
        stops[indexes] = ends + len(end) - 1
        return guids, stops

    def _skip_own_lids(self, offsets: Index) -> Index:
        r"""Return the offsets of descriptions after `\t\t# "` or `\t\t# lid 7 lmc 0 "`."""
        window = self._window
        words = window.words(offsets)
        is_text = byte_at(words, 4) == _QUOTE
        texts = offsets + len('\t\t# "')
        indexes = np.flatnonzero(~is_text)
        require_all(starts_with(words, "\t\t# "))
        if not len(indexes):
            return texts
        require_all(starts_with(words[indexes], "\t\t# lid "))
        lids = offsets[indexes] + WORD
        blanks = lids + num_digits_before(window.words(lids), " ", most=5)
        words = window.words(blanks)
        num_digits = num_digits_before(drop_first(words, len(" lmc ")), " ", most=1)
        quotes = blanks + len(" lmc ") + num_digits + 1
        require_all(starts_with(words, " lmc ") & (self._characters[quotes] == _QUOTE))
        texts[indexes] = quotes + 1
        return texts

    def _read_tails(self, ends: Index, starts: Index) -> tuple[Index, NDArray[np.uint8]]:
        """Read `" lid 7 4xNDR` from the end; return the ends of descriptions, and rate codes."""
        window = self._window
        rates, size = last_tokens(window.words(ends - WORD))
        blanks = ends - size - 1
        lids, num_digits = last_tokens(window.words(blanks - WORD))
        stops = blanks - num_digits - len('" lid ')
        is_lid = are_decimal(lids, num_digits) & window.starts_with('" lid ', stops)
        require_all(is_lid & (stops >= starts))
        return stops, _rates(rates)


def _is_real_guid(guids: Words) -> Flags:
    is_real: Flags = guids + _ONE > _ONE  # neither all zeros nor all ones
    return is_real


def _clear_unreal_guids(guids: Words) -> Words:
    """Return GUIDs with all ones replaced by 0: neither identifies a device."""
    return np.where(guids == _ALL_ONES, np.uint64(0), guids)


def _sort_ports(columns: Columns, owners: Index) -> Columns:
    """Return columns with the ports of each node in ascending order, as the tool prints them."""
    keys = (owners << 16) | columns.numbers
    if (keys[1:] > keys[:-1]).all():
        return columns
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    require_all(keys[1:] > keys[:-1])  # of two lines of one port, the first would count
    first_row_column = Columns._fields.index("numbers")
    return Columns._make(
        (*columns[:first_row_column], *(column[order] for column in columns[first_row_column:]))
    )


def _rates(tokens: Words) -> NDArray[np.uint8]:
    codes = np.zeros(len(tokens), np.uint8)
    is_remaining = np.ones(len(tokens), np.bool_)
    for _ in range(_MAX_RATES):
        if not is_remaining.any():
            return codes
        first = int(is_remaining.argmax())
        is_same = tokens == tokens[first]
        codes[is_same] = _rate_code(int(tokens[first]).to_bytes(WORD, "little").rstrip(b"\0"))
        is_remaining &= ~is_same
    raise NonCanonicalInput


def _rate_code(token: bytes) -> int:
    """Return the code of a rate, parsed as the line parser does."""
    match = _RATE.fullmatch(f" lid 0 {token.decode('latin-1')}")
    rate_token = "".join(part or "" for part in match.groups()) if match else ""
    rate = RATES_BPS.get(rate_token)
    if rate is None and "?" not in rate_token:
        raise NonCanonicalInput
    return RATE_CODES[rate]
