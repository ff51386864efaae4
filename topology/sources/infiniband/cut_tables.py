"""Finds out whether a file of ibdiagnet or opensm is cut: whether its end is missing. Pure.

`db_csv` closes every table and lists the tables first. A `.lst` file has a line per end of each
link. `net_dump` has a line per port of every switch, also for ports that are down, and lists cables
between switches in the blocks of both.

Source: files of ibdiagnet 2.10 and opensm 3.3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from topology.model.errors import CutInput

_TABLE: Final = re.compile(rb"^(START|END)_([A-Z0-9_]+)[ \t\r]*$", re.MULTILINE)
_INDEX: Final = re.compile(
    rb"^START_INDEX_TABLE[ \t\r]*\n(.*?)^END_INDEX_TABLE", re.MULTILINE | re.DOTALL
)
_INDEX_ROW: Final = re.compile(rb"^([A-Z0-9_]+),", re.MULTILINE)
_LINKS: Final = b"LINKS"
_LST_END: Final = rb"\{[^\n]*?NodeGUID:([0-9A-Fa-f]+)[^\n]*?PN:([0-9A-Fa-f]+)[ \t]*\}"
_LST_ROW: Final = re.compile(rb"^[ \t]*" + _LST_END + rb"[ \t]*" + _LST_END, re.MULTILINE)
_SWITCH_HEAD: Final = re.compile(
    rb'^[ \t]*"[^\n]*"[ \t]*,[^,"\n]*,[ \t]*0x([0-9a-fA-F]{1,16})[ \t]*,', re.MULTILINE
)
_NET_ROW: Final = re.compile(rb"^[ \t]*[^:\n\"#]+:[ \t]*([0-9]{1,3})[ \t]*:", re.MULTILINE)
_NET_PEER: Final = re.compile(
    rb"^[ \t]*[^:\n]*:(?:[^:\n]*:){8}[ \t]*0x([0-9a-fA-F]{1,16})[ \t]*:[ \t]*([0-9/]{1,15})[ \t]*:",
    re.MULTILINE,
)
_MIN_BLOCKS: Final = 3
_MAX_HCA_PORTS: Final = 2
"""A peer port of a higher number, or with a label such as 1/1/2, belongs to a switch."""

_FindReason = Callable[[bytes], str]


def find_cut_db_csv(raw: bytes, *, source: str = "") -> CutInput | None:
    """Return the problem of a `db_csv` file whose end is missing, None if it looks whole."""
    return _judge(raw, source, _find_open_table)


def find_cut_lst(raw: bytes, *, source: str = "") -> CutInput | None:
    """Return the problem of a `.lst` file whose end is missing, None if it looks whole."""
    return _judge(raw, source, _find_single_end)


def find_cut_net_dump(raw: bytes, *, source: str = "") -> CutInput | None:
    """Return the problem of a `net_dump` file whose end is missing, None if it looks whole."""
    return _judge(raw, source, _find_short_block)


def _judge(raw: bytes, source: str, find_reason: _FindReason) -> CutInput | None:
    reason = find_reason(raw) or ("" if raw.endswith(b"\n") else "its last line is incomplete")
    return CutInput(f"the file is cut: {reason}; write it again", source=source) if reason else None


def _find_open_table(raw: bytes) -> str:
    found = [(match[1], match[2]) for match in _TABLE.finditer(raw)]
    opened = [name for word, name in found if word == b"START"]
    closed = {name for word, name in found if word == b"END"}
    left_open = [name for name in opened if name not in closed]
    index = _INDEX.search(raw)
    listed = {match[1] for match in _INDEX_ROW.finditer(index[1])} if index else set()
    missing = sorted((listed | {_LINKS}) - set(opened) - {b"START_TABLE"})
    if left_open:
        return f"table {left_open[-1].decode()} has no end"
    return f"table {missing[0].decode()} is missing" if missing else ""


def _find_single_end(raw: bytes) -> str:
    rows = {
        ((match[1].lower(), int(match[2], 16)), (match[3].lower(), int(match[4], 16)))
        for match in _LST_ROW.finditer(raw)
    }
    single = [row for row in rows if (row[1], row[0]) not in rows]
    return f"{len(single)} links are listed at one end only" if single else ""


def _find_short_block(raw: bytes) -> str:
    starts = [match.start() for match in _SWITCH_HEAD.finditer(raw)]
    last_ports = [
        _find_last_port(raw[start:stop])
        for start, stop in zip(starts, [*starts[1:], len(raw)], strict=True)
    ]
    return _compare_blocks(last_ports) or _find_lost_switch(raw)


def _find_lost_switch(raw: bytes) -> str:
    """Return the problem that cables lead to switches without a block; empty if none does."""
    listed = {int(match[1], 16) for match in _SWITCH_HEAD.finditer(raw)}
    peers = {
        int(match[1], 16)
        for match in _NET_PEER.finditer(raw)
        if b"/" in match[2] or int(match[2]) > _MAX_HCA_PORTS
    }
    num = len(peers - listed)
    return f"{num} of its switches have no block" if num else ""


def _find_last_port(block: bytes) -> int:
    return max((int(match[1]) for match in _NET_ROW.finditer(block)), default=0)


def _compare_blocks(last_ports: Sequence[int]) -> str:
    """Judge the last switch: a fabric has switches of few sizes, with all ports listed."""
    *others, last = last_ports or [0]
    is_usual = len(others) >= _MIN_BLOCKS - 1 and len(set(others)) <= len(others) // 2
    if is_usual and last < min(others):
        return "ports of its last switch are missing"
    return ""
