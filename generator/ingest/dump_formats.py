"""Saved dumps of InfiniBand subnets: detects the format by content, and parses the dump. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Final

from topology.model.errors import CutInput
from topology.model.facts import ParseResult
from topology.model.text import find_hole
from topology.sources.infiniband.cut_tables import (
    find_cut_db_csv,
    find_cut_lst,
    find_cut_net_dump,
)
from topology.sources.infiniband.ibdiagnet_db import parse_ibdiagnet_db
from topology.sources.infiniband.ibdiagnet_net_dump import parse_ibdiagnet_net_dump
from topology.sources.infiniband.subnet_lst import parse_subnet_lst

_HEAD_BYTES: Final = 64 * 1024


class DumpFormat(StrEnum):
    """The format of a dump, named after the tool that writes it."""

    IBNETDISCOVER = "ibnetdiscover"
    """Any form of ibnetdiscover's output, and ibdiagnet's `.ibnetdiscover`."""
    DB_CSV = "ibdiagnet-db_csv"
    NET_DUMP = "ibdiagnet-net_dump"
    SUBNET_LST = "subnet-lst"
    """opensm's `opensm-subnet.lst` and ibdiagnet's `.lst`."""


_SIGNATURES: Final[Mapping[DumpFormat, re.Pattern[bytes]]] = {
    DumpFormat.DB_CSV: re.compile(rb"^START_[A-Z0-9_]+[ \t\r]*$", re.MULTILINE),
    DumpFormat.NET_DUMP: re.compile(
        rb'^[ \t]*"[^\n]*"[ \t]*,[^,"\n]*,[ \t]*0x[0-9a-fA-F]{1,16}[ \t]*,[ \t]*LID\b'
        rb"|^[ \t]*#[ \t]*:[ \t]*IB#[ \t]*:[ \t]*Sta\b",
        re.MULTILINE,
    ),
    DumpFormat.SUBNET_LST: re.compile(
        rb"^[ \t]*\{[ \t]*(?:CA|SW|Rt)(?:-SM)?\s+Ports:[0-9A-Fa-f]+\s+SystemGUID:", re.MULTILINE
    ),
    DumpFormat.IBNETDISCOVER: re.compile(
        rb"^[ \t]*(?:Switch|Ca|Rt)\s+\d+\s|^[ \t]*(?:vendid|switchguid|caguid|rtguid|sysimgguid)="
        rb"|^(?:SW|CA|RT)\s+\d+\s+\d+\s|^(?:Switch|Ca|Rt)\s*:\s*0x|^# Topology file",
        re.MULTILINE,
    ),
}


def detect_dump_format(raw: bytes) -> DumpFormat | None:
    """Return the format of a dump by its first 64 KiB, None if it looks like no dump."""
    head = raw[:_HEAD_BYTES]
    matches = (form for form, signature in _SIGNATURES.items() if signature.search(head))
    return next(matches, None)


def parse_dump(raw: bytes, *, source: str) -> ParseResult:
    """Return the devices of a dump in any format; an unknown one is parsed as ibnetdiscover's.

    The first error of a dump whose end is missing is a `CutInput`.
    """
    form, hole = detect_dump_format(raw), find_hole(raw, source=source)
    if form is None or form is DumpFormat.IBNETDISCOVER:
        from generator.ingest.sweeps import parse_sweep  # noqa: PLC0415 - with numpy

        parsed, cut = parse_sweep(raw, source=source), hole
    else:
        parse, find_cut = _PARSERS[form]
        parsed, cut = parse(raw, source=source), hole or find_cut(raw, source=source)
    return parsed if cut is None else replace(parsed, errors=(cut, *parsed.errors))


_DumpParser = Callable[..., ParseResult]
_FindCut = Callable[..., CutInput | None]
_PARSERS: Final[Mapping[DumpFormat, tuple[_DumpParser, _FindCut]]] = {
    DumpFormat.DB_CSV: (parse_ibdiagnet_db, find_cut_db_csv),
    DumpFormat.NET_DUMP: (parse_ibdiagnet_net_dump, find_cut_net_dump),
    DumpFormat.SUBNET_LST: (parse_subnet_lst, find_cut_lst),
}
