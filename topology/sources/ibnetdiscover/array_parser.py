"""Plain pieces of `ibnetdiscover` by numpy: all lines of a piece at once, to columns.

It takes lines exactly as the tool prints them and decides nothing: a piece with any other line is
refused as a whole, and `ibnetdiscover_pieces` hands it to the careful reader, which is the
measure of what is right. What stands between the quotes of a description may be anything.
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
    parse_bracketed,
    byte_at,
    last_tokens,
    num_digits_before,
    require_all,
    starts_with,
    parse_short_hex,
    drop_first,
)
from topology.sources.ibnetdiscover.columns import RATE_CODES, SWITCH, Columns
from topology.sources.ibnetdiscover.line_parser import RATE
from topology.sources.infiniband.node_names import RATES_BPS

_EMPTY, _PORT, _HEAD, _ID, _ODD = range(5)
_CLASSES: Final = np.full(256, _ODD, np.uint8)
"""By first character: what a line is."""
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
"""Words after a description in which its last quote is looked for: `" base port 0 lid 7 lmc 0`."""
_HEAD_WORDS: Final = ("Switch\t", "Ca\t", "Rt\t")
_ONE: Final = np.uint64(1)
_ALL_ONES: Final = np.uint64(0xFFFFFFFFFFFFFFFF)
_OPEN, _QUOTE, _LEFT, _TAB, _HYPHEN, _NEWLINE = b'["(\t-\n'
_RATE: Final = re.compile(RATE)
_MAX_RATES: Final = 64
"""Different rates in one piece; fabrics have a handful."""


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
    """Where the first quote stands, that of the peer."""


class _FarEnds(NamedTuple):
    """The far ends of port lines."""

    letters: NDArray[np.uint8]
    peers: Words
    numbers: NDArray[np.int16]
    guids: Words
    texts: Index
    """Where the description starts."""


def parse_chunk(dump: bytes, start: int, stop: int) -> Columns:
    """Return the nodes of a piece that starts and ends between records, in its order.

    Places of texts count from the start of the dump. Cost: O(characters), about 0.2 µs a line.

    Raises:
        NotPlain: anything in it asks for care: an unusual line, an unknown rate, a port that
            stands twice, a GUID that is none.
    """
    return _ChunkParser(dump, start, stop).columns()


class _ChunkParser:
    """One piece while it is read."""

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
        """Return everything that the piece tells."""
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
        near = self._read_near_ends(starts[ports])
        far = self._read_far_ends(near.quotes)
        text_stops, rates = self._read_tails(ends[ports], far.texts)
        told = np.flatnonzero(near.guids)
        labels = told[nodes.letters[owners[told]] == SWITCH]
        near.guids[labels] = 0  # the first parentheses of a switch's port are a label
        found = Columns(
            letters=nodes.letters,
            guids=nodes.guids,
            images=images,
            device_ids=device_ids,
            text_starts=self._places(nodes.text_starts),
            text_stops=self._places(nodes.text_stops),
            num_rows=num_rows,
            numbers=near.numbers.astype(np.uint16),
            own_guids=near.guids,
            peer_letters=far.letters,
            peers=far.peers,
            far_numbers=far.numbers.astype(np.uint16),
            far_guids=far.guids,
            peer_starts=self._places(far.texts),
            peer_stops=self._places(text_stops),
            rates=rates,
        )
        return _sort_ports(found, owners)

    def _num_before(self, kind: int, lines: Index) -> Index:
        """Return how many lines of a kind are before some of other kinds."""
        return np.cumsum(self._classes == kind, dtype=np.int32)[lines].astype(np.intp)

    def _places(self, at: Index) -> NDArray[np.uint32]:
        return (at + self._start).astype(np.uint32)

    def _split_lines(self) -> tuple[Index, Index, Index]:
        """Return the port lines, heads and id lines, if they are in an order that makes sense."""
        classes = self._classes
        if len(classes) and classes.max() == _ODD:
            raise NonCanonicalInput
        ports, heads, ids = (np.flatnonzero(classes == one) for one in (_PORT, _HEAD, _ID))
        if len(ports):
            before = classes[ports - 1]
            require_all((before == _PORT) | (before == _HEAD))
            require_all(ports[:1] > 0)
        if len(ids):
            require_all(heads[-1:] > ids[-1] if len(heads) else ids < 0)  # no head would follow
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
        at = blanks + len(' "S-')
        guids = window.guids(at)
        texts = at + GUID_DIGITS + len('"\t\t# "')
        require_all(_is_real_guid(guids) & window.starts_with('"\t\t# "', at + GUID_DIGITS))
        return _NodeHeads(letters.astype(np.uint8), guids, texts, self._last_quotes(texts, ends))

    def _last_quotes(self, starts: Index, ends: Index) -> Index:
        """Return where descriptions end: usually with the line, else at its last quote."""
        stops = ends - 1
        left = np.flatnonzero(self._characters[stops] != _QUOTE)
        at = ends[left]
        for _ in range(_TAIL_WORDS):
            if not len(left):
                break
            at = at - WORD
            after = after_last(self._window.words(at), '"')
            is_found = after < WORD
            stops[left[is_found]] = (at + WORD - 1 - after)[is_found]
            left, at = left[~is_found], at[~is_found]
        require_all(stops >= starts)
        if len(left):
            raise NonCanonicalInput
        return stops

    def _read_id_lines(self, starts: Index, owners: Index, num_nodes: int) -> tuple[Words, Words]:
        """Return system image and device id of each node: `sysimgguid=0x2c90`."""
        window = self._window
        words = window.words(starts)
        images, device_ids = np.zeros(num_nodes, np.uint64), np.zeros(num_nodes, np.uint64)
        num_known = 0
        for word in _ID_WORDS:
            found = np.flatnonzero(starts_with(words, word[:WORD]))
            if not len(found):
                continue
            num_known += len(found)
            where, at = owners[found], starts[found] + WORD
            if word in _SHORT_WORDS:
                rest = window.words(at)
                require_all(starts_with(rest, word[WORD:]))
                rest = drop_first(rest, len(word) - WORD)
                values, num_digits = parse_short_hex(rest)
                after = byte_at(rest, num_digits)
            else:
                require_all(window.starts_with(word[WORD:], at))
                at += len(word) - WORD
                values, num_digits = window.hex_runs(at)
                after = self._characters[at + num_digits]
            require_all((num_digits > 0) & _ENDS_ID[after])
            require_all(where[1:] > where[:-1])  # of two lines the later would count
            if word == _IMAGE:
                images[where] = values
            elif word == _DEVICE:
                device_ids[where] = values
            elif word == _VENDOR:
                later = found[found > 0]
                require_all(owners[later] > owners[later - 1])  # it makes those before it void
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
        r"""Read `"S-0002c90"[7]\t\t# "`, with `(2c90) ` or `lid 7 lmc 0 ` where they are told."""
        words = self._window.words(quotes)
        letters = byte_at(words, 1)
        require_all(
            _IS_NODE[letters] & (byte_at(words, 0) == _QUOTE) & (byte_at(words, 2) == _HYPHEN)
        )
        peers = self._window.guids(quotes + len('"S-'))
        stops = quotes + len('"S-') + GUID_DIGITS
        words = self._window.words(stops)
        port_numbers, num_digits = parse_bracketed(drop_first(words, 2))
        is_told = byte_at(words, num_digits + 3) == _LEFT
        require_all(starts_with(words, '"[') & _is_real_guid(peers))
        guids, at = self._read_guids_in_parentheses(stops + num_digits + 3, is_told, ") \t\t# ")
        at -= is_told * len("\t\t#")
        texts = self._skip_own_lids(at)
        return _FarEnds(letters.astype(np.uint8), peers, port_numbers, guids, texts)

    def _read_guids_in_parentheses(
        self, at: Index, is_told: Flags, end: str
    ) -> tuple[Words, Index]:
        """Read `(2c90)`.

        Args:
            at: where each starts.
            is_told: whether there is one.
            end: what must follow, from the parenthesis on.

        Returns:
            The GUIDs, 0 elsewhere, and where the last character of `end` is, elsewhere `at`.
        """
        guids = np.zeros(len(at), np.uint64)
        stops = at.copy()
        where = np.flatnonzero(is_told)
        if not len(where):
            return guids, stops
        starts = at[where] + 1
        values, num_digits = self._window.hex_runs(starts)
        ends = starts + num_digits
        is_open = self._characters[starts - 1] == _LEFT
        require_all(is_open & (num_digits > 0) & self._window.starts_with(end, ends))
        guids[where] = _clear_unreal_guids(values)
        stops[where] = ends + len(end) - 1
        return guids, stops

    def _skip_own_lids(self, at: Index) -> Index:
        r"""Return where descriptions start after `\t\t# "` or `\t\t# lid 7 lmc 0 "`."""
        window = self._window
        words = window.words(at)
        is_text = byte_at(words, 4) == _QUOTE
        texts = at + len('\t\t# "')
        where = np.flatnonzero(~is_text)
        require_all(starts_with(words, "\t\t# "))
        if not len(where):
            return texts
        require_all(starts_with(words[where], "\t\t# lid "))
        lids = at[where] + WORD
        blanks = lids + num_digits_before(window.words(lids), " ", most=5)
        words = window.words(blanks)
        num_digits = num_digits_before(drop_first(words, len(" lmc ")), " ", most=1)
        quotes = blanks + len(" lmc ") + num_digits + 1
        require_all(starts_with(words, " lmc ") & (self._characters[quotes] == _QUOTE))
        texts[where] = quotes + 1
        return texts

    def _read_tails(self, ends: Index, starts: Index) -> tuple[Index, NDArray[np.uint8]]:
        """Read `" lid 7 4xNDR` from the end; return where descriptions end, and rate codes."""
        window = self._window
        rates, size = last_tokens(window.words(ends - WORD), usual=len("4xNDR"))
        blanks = ends - size - 1
        lids, num_digits = last_tokens(window.words(blanks - WORD))
        stops = blanks - num_digits - len('" lid ')
        is_lid = are_decimal(lids, num_digits) & window.starts_with('" lid ', stops)
        require_all(is_lid & (stops >= starts))
        return stops, _rates(rates)


def _is_real_guid(guids: Words) -> Flags:
    found: Flags = guids + _ONE > _ONE  # neither all zeros nor all ones
    return found


def _clear_unreal_guids(guids: Words) -> Words:
    """Return GUIDs; all ones identify nobody, as all zeros do."""
    return np.where(guids == _ALL_ONES, np.uint64(0), guids)


def _sort_ports(found: Columns, owners: Index) -> Columns:
    """Return columns with the ports of each node ascending, as the tool prints them already."""
    places = (owners << 16) | found.numbers
    if (places[1:] > places[:-1]).all():
        return found
    order = np.argsort(places, kind="stable")
    places = places[order]
    require_all(places[1:] > places[:-1])  # the first of two lines of one port would count
    at = Columns._fields.index("numbers")
    return Columns._make((*found[:at], *(column[order] for column in found[at:])))


def _rates(tokens: Words) -> NDArray[np.uint8]:
    codes = np.zeros(len(tokens), np.uint8)
    is_left = np.ones(len(tokens), np.bool_)
    for _ in range(_MAX_RATES):
        if not is_left.any():
            return codes
        at = int(is_left.argmax())
        is_same = tokens == tokens[at]
        codes[is_same] = _rate_code(int(tokens[at]).to_bytes(WORD, "little").rstrip(b"\0"))
        is_left &= ~is_same
    raise NonCanonicalInput


def _rate_code(token: bytes) -> int:
    """Return the code of a rate, read as the careful reader does."""
    found = _RATE.fullmatch(f" lid 0 {token.decode('latin-1')}")
    spelled = "".join(part or "" for part in found.groups()) if found else ""
    rate = RATES_BPS.get(spelled)
    if rate is None and "?" not in spelled:
        raise NonCanonicalInput
    return RATE_CODES[rate]
