"""Finds out whether the dump of a sweep is cut: whether its end is missing. Pure.

`ibnetdiscover` prints every cable twice, once in the record of each end, and prints all switches
before all CAs. So a cable at one end only, whose other end has no record or is in the last record,
shows that the rest of the text is missing. A node that does not answer a sweep is in no record and
is no peer either, so a partial sweep is not taken for a cut one.

Source: infiniband-diags 44, ibnetdiscover.c, `dump_topology`; libibnetdisc, `link_ports`. None of
the collected whole dumps has such a cable.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, TypeAlias

from topology.model.errors import CutInput, ParseError
from topology.sources.ibnetdiscover.parser import RowParser
from topology.sources.ibnetdiscover.rows import LOWER_CASE, NO_GUID, SWITCH, SweepRows

_HEAD: Final = re.compile(
    rb'^[ \t]*(?:Switch|Ca|Rt)[ \t]+[0-9]*[ \t]*"?[SHR]-(?P<guid>[0-9a-fA-F]{16})'
    rb"|^[ \t]*(?:SW|CA|RT)[ \t]+-?[0-9]+[ \t]+[0-9]+[ \t]+0x(?P<short_guid>[0-9a-fA-F]{1,16})\b",
    re.MULTILINE,
)
_ID_LINE: Final = re.compile(
    rb"^[ \t]*(?:vendid|devid|sysimgguid|switchguid|caguid|rtguid)=", re.MULTILINE
)


_NUM_QUOTES: Final = 4
"""Quotes of a port line: around the peer and around the description."""


class _Ending(NamedTuple):
    """The end of a dump."""

    guid: int
    """The GUID of the node of the last record, NO_GUID if there is none."""
    is_within_record: bool
    """Whether id lines follow whose record is missing."""
    is_within_line: bool


class _Port(NamedTuple):
    guid: int
    number: int


_Cable: TypeAlias = tuple[_Port, _Port]


def find_cut(sweep: RowParser) -> ParseError | None:
    """Return the problem of a truncated dump of ibnetdiscover, or None if it looks complete.

    A dump without any cable may be complete, so its problem is not a `CutInput`. Cost: O(port
    lines), 0.1 µs each.
    """
    if not sweep.rows.guids:
        return None
    ending = _find_ending(sweep.tail)
    last_line = sweep.num_lines + 1
    if ending.is_within_line and (
        _has_open_quote(sweep.tail) or any(error.line == last_line for error in sweep.errors)
    ):
        return _build_problem("its last line is incomplete", sweep.source)
    if ending.is_within_record:
        return _build_problem("its last record is incomplete", sweep.source)
    return _judge_cables(sweep, ending)


def _judge_cables(sweep: RowParser, ending: _Ending) -> ParseError | None:
    rows = sweep.rows
    num_unknown = _count_unknown(rows)
    if num_unknown:
        text = f"{num_unknown} cable{'s end' if num_unknown > 1 else ' ends'}"
        return _build_problem(f"{text} at a device without a record", sweep.source)
    own, toward = _find_last_cables(rows, ending.guid)
    if not toward.keys() <= own.keys():
        return _build_problem("cables of its last record are missing", sweep.source)
    if ending.is_within_line and any(
        toward.get(cable, rate) != rate for cable, rate in own.items()
    ):
        return _build_problem("its last line is incomplete", sweep.source)
    if any(rows.peer_letters):
        return None
    if SWITCH in rows.letters:
        return _build_problem("it has switches but no cable", sweep.source)
    # Not known to be cut, so it stops no plan: this is also what a port without a link shows.
    problem = "no cable: the sweep was made at a port without a link, or is cut"
    return ParseError(problem, source=sweep.source)


def _count_unknown(rows: SweepRows) -> int:
    """Return how many cables end at a device without a record."""
    known = {NO_GUID, *rows.guids, *rows.own_guids}
    return 0 if known.issuperset(rows.peers) else sum(peer not in known for peer in rows.peers)


def _find_last_cables(rows: SweepRows, last: int) -> tuple[dict[_Cable, int], dict[_Cable, int]]:
    """Return the rates of the cables that the last node lists, and of those that end at it.

    A cable is written from the last node, which is given by its GUID.
    """
    own: dict[_Cable, int] = {}
    toward: dict[_Cable, int] = {}
    last_nodes = {node for node, guid in enumerate(rows.guids) if guid == last}
    ends = enumerate(zip(rows.nodes, rows.peers, strict=True))
    for line in [line for line, (node, peer) in ends if peer == last or node in last_nodes]:
        node, peer, letter = rows.nodes[line], rows.peers[line], rows.peer_letters[line]
        if not letter:
            continue
        near = _Port(rows.guids[node], _number_port(rows.letters[node], rows.numbers[line]))
        far = _Port(peer, _number_port(letter, rows.far_numbers[line]))
        if node in last_nodes:
            own[near, far] = rows.rates[line]
        if peer == last:
            toward[far, near] = rows.rates[line]
    return own, toward


def _number_port(letter: int, number: int) -> int:
    """Return the number of a port; a node that is known by a port GUID has one port."""
    return 0 if letter & LOWER_CASE else number


def _find_ending(tail: bytes) -> _Ending:
    """Return how a dump ends: the last node, and whether it stops inside a record or a line."""
    heads = list(_HEAD.finditer(tail))
    last = heads[-1] if heads else None
    guid = int(last["guid"] or last["short_guid"], 16) if last else NO_GUID
    rest = tail[last.end() :] if last else tail
    return _Ending(guid, _ID_LINE.search(rest) is not None, not tail.endswith(b"\n"))


def _has_open_quote(tail: bytes) -> bool:
    """Return whether the last line names a peer in quotes, but has no whole description."""
    line = tail.rpartition(b"\n")[2].strip()
    return line.startswith(b"[") and 0 < line.count(b'"') < _NUM_QUOTES


def _build_problem(reason: str, source: str) -> CutInput:
    return CutInput(f"the sweep is cut: {reason}; sweep again", source=source)
