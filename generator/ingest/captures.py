"""Reads what people saved: lldpcli captures, snmpwalk files, and dumps of InfiniBand subnets.

The format of a dump is detected by its content.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Final

from generator.store.file_kinds import FileKind, explain_kind
from generator.store.local_files import MAX_SWEEP_BYTES, read_regular_file, read_whole_file
from runtime.progress import NO_PROGRESS, Progress, track
from topology.model.claims import Claim, Origin, SweptClaims
from topology.model.errors import CutInput, ParseError
from topology.model.facts import Device, DeviceKind, ParseResult, Port
from topology.model.ids import Id, IdKind
from topology.sources.ibnetdiscover.cut_sweep import find_cut
from topology.sources.ibnetdiscover.parser import parse_rows
from topology.sources.infiniband.cut_tables import (
    find_cut_db_csv,
    find_cut_lst,
    find_cut_net_dump,
)
from topology.sources.infiniband.ibdiagnet_db import parse_ibdiagnet_db
from topology.sources.infiniband.ibdiagnet_net_dump import parse_ibdiagnet_net_dump
from topology.sources.infiniband.subnet_lst import parse_subnet_lst
from topology.sources.lldp.lldpcli import ends_within_neighbor, parse_chassis, parse_neighbors
from topology.sources.lldp_mib.walk import parse_snmpwalk_text

MAX_CAPTURE_BYTES: Final = 16 << 20  # a spine with 48 leaves prints 100 kB
_CAPTURE = re.compile(r"(?P<device>.+)\.neighbors\.(?P<form>json0|json|keyvalue)(?:\.gz)?\Z")
_CHASSIS = re.compile(r"(?P<device>.+)\.chassis\.(?:json0|json)(?:\.gz)?\Z")
_CAPTURE_WORD = re.compile(r"\.(?:neighbors|chassis)\.|\.json0\b", re.IGNORECASE)
MAX_WALK_BYTES: Final = 64 << 20  # the whole MIB of a large switch takes 10 MB
_WALK = re.compile(r"(?P<device>.+?)(?:\.snmpwalk)?\.(?:txt|snmpwalk|snmprec)(?:\.gz)?\Z")
_WALK_FILE = re.compile(r".+\.snmp(?:walk|rec)\b")
_WALK_WORD = re.compile(r"snmp(?:walk|rec)|\.txt\.\w+\Z", re.IGNORECASE)
_MAX_ENTRIES = 10_000
"""Entries of one subfolder that are looked at."""


def list_ignored_folders(entries: Iterable[Path], names: re.Pattern[str]) -> Iterator[ParseError]:
    """Yield one problem per subfolder with files that are input by their name, with their number.

    Args:
        entries: the files and folders inside the input folder.
        names: matches the beginning of the name of an input file.
    """
    for folder in entries:
        if not folder.is_dir() or folder.is_symlink() or folder.name.startswith("."):
            continue
        try:
            num = sum(names.match(file.name) is not None for file in _list_some(folder))
        except OSError:
            continue
        if num:
            text = f"ignored: a subfolder with {num} files that look like input; give it by itself"
            yield ParseError(text, source=str(folder))


def _list_some(folder: Path) -> Iterator[Path]:
    return islice(folder.iterdir(), _MAX_ENTRIES)


def read_walks(
    folder: Path, progress: Progress = NO_PROGRESS
) -> tuple[list[Claim], list[ParseError]]:
    """Read `<device>.snmpwalk.txt`, `.txt`, `.snmpwalk` or `.snmprec` files, one per switch.

    Each may be packed with gzip. A file that looks like a walk and is not read is a problem; other
    files are ignored. A switch without a name in its walk is named after its file.

    Args:
        folder: contains the files.
        progress: shows the files that are read.
    """
    source = str(folder)
    try:
        files = sorted(folder.iterdir())
    except OSError as error:
        return [], [ParseError(f"cannot be read: {error.strerror}", source=source)]
    claims: list[Claim] = []
    problems = list(list_ignored_folders(files, _WALK_FILE))
    for file in track(files, "reading walks", progress):
        name = _WALK.match(file.name)
        if name is None:
            if _WALK_WORD.search(file.name):
                problem = (
                    "ignored: expected <device>.snmpwalk.txt, .snmpwalk or .snmprec, or with .gz"
                )
                problems.append(ParseError(problem, source=str(file)))
            continue
        raw = read_regular_file(file, MAX_WALK_BYTES)
        if isinstance(raw, ParseError):
            problems.append(raw)
            continue
        hole = _find_hole(raw, source=str(file))
        device, errors = parse_snmpwalk_text(raw, source=str(file))
        problems += [hole] if hole is not None else errors
        if device is not None:
            named = device if device.name else replace(device, name=name["device"])
            claims.append(Claim(named, Origin.REPORT))
    if not claims and not problems:
        problems.append(ParseError("no file <device>.snmpwalk.txt in this folder", source=source))
    return claims, problems


def read_captures(
    folder: Path, progress: Progress = NO_PROGRESS
) -> tuple[list[Claim], list[ParseError]]:
    """Read `<device>.neighbors.json0|json` files, each with its `<device>.chassis.json0`.

    Each may be packed with gzip. A file that looks like a capture and is not read is a problem;
    other files are ignored.
    """
    claims: list[Claim] = []
    problems: list[ParseError] = []
    try:
        files = sorted(folder.iterdir())
    except OSError as error:
        return [], [ParseError(f"cannot be read: {error.strerror}", source=str(folder))]
    chassis_files = {
        name["device"]: file for file in files if (name := _CHASSIS.match(file.name)) is not None
    }
    problems += _list_ignored(files)
    problems += list_ignored_folders(files, _CAPTURE)
    for file in track(files, "reading captures", progress):
        name = _CAPTURE.match(file.name)
        if name is None:
            continue
        device, file_problems = _read_capture(
            file, name["device"], chassis_files.get(name["device"])
        )
        problems += file_problems
        if device is not None:
            claims.append(Claim(device, Origin.CAPTURE))
    if not claims and not problems:
        problems.append(
            ParseError("no file <device>.neighbors.json0 in this folder", source=str(folder))
        )
    return claims, problems


def _list_ignored(files: Sequence[Path]) -> Iterator[ParseError]:
    """Yield a problem per file that is a capture by its name, but is not read."""
    captured = {name["device"] for file in files if (name := _CAPTURE.match(file.name))}
    for file in files:
        chassis = _CHASSIS.match(file.name)
        problem = ""
        if chassis is not None and chassis["device"] not in captured:
            problem = "ignored: there is no file with the neighbors of this device"
        elif chassis is None and not _CAPTURE.match(file.name) and _CAPTURE_WORD.search(file.name):
            problem = "ignored: expected <device>.neighbors.json0, .json or .keyvalue, or with .gz"
        if problem:
            yield ParseError(problem, source=str(file))


def _read_capture(
    file: Path, name: str, chassis_file: Path | None
) -> tuple[Device | None, list[ParseError]]:
    raw = read_regular_file(file, MAX_CAPTURE_BYTES)
    if isinstance(raw, ParseError):
        return None, [raw]
    parsed = parse_neighbors(raw, source=str(file))
    cut = _find_capture_cut(raw, has_errors=bool(parsed.errors), source=str(file))
    errors = [*([cut] if cut else []), *parsed.errors]
    if parsed.errors and not parsed.ports:
        return None, errors
    chassis, problems = _read_chassis(chassis_file) if chassis_file else (None, ())
    ports = tuple(
        Port(name=port, ids=(Id(IdKind.IFNAME, port),), neighbors=neighbors)
        for port, neighbors in parsed.ports
    )
    device = Device(
        kind=DeviceKind.UNKNOWN,
        name=chassis.name if chassis and chassis.name else name,
        ids=chassis.ids if chassis else (),
        ports=ports,
    )
    return device, [*errors, *problems]


def _find_capture_cut(raw: bytes, *, has_errors: bool, source: str) -> CutInput | None:
    """Return the problem of a capture whose end is missing, None if it looks whole."""
    hole = _find_hole(raw, source=source)
    if hole is not None:
        return hole
    text = raw.strip()
    is_json = text.startswith(b"{")
    is_open = not text.endswith(b"}") or text.count(b"{") > text.count(b"}")
    is_cut = has_errors and is_open if is_json else not raw.endswith(b"\n")
    reason = "its last line is incomplete" if text and is_cut else ""
    if not is_json and not reason and ends_within_neighbor(text):
        reason = "its last neighbor has no port"
    if not reason:
        return None
    return CutInput(f"the capture is cut: {reason}; capture again", source=source)


def _read_chassis(file: Path) -> tuple[Device | None, tuple[ParseError, ...]]:
    raw = read_regular_file(file, MAX_CAPTURE_BYTES)
    if isinstance(raw, ParseError):
        return None, (raw,)
    source = str(file)
    device, errors = parse_chassis(raw, source=source)
    cut = _find_capture_cut(raw, has_errors=bool(errors), source=source)
    return device, (*([cut] if cut else []), *errors)


def _find_hole(raw: bytes, *, source: str) -> CutInput | None:
    """Return the problem of a text with bytes 0, None if it has none.

    A text has no such bytes. A crash leaves a block of them in a file that was just written, and a
    line parser would read the text before and after the block as one line.
    """
    start = raw.find(b"\0")
    if start < 0:
        return None
    problem = f"the file is cut: it has zeros instead of text from byte {start} on; write it again"
    return CutInput(problem, source=source)


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
    form, hole = detect_dump_format(raw), _find_hole(raw, source=source)
    if form is None or form is DumpFormat.IBNETDISCOVER:
        parsed, cut = _parse_ibnetdiscover(raw, source=source), hole
    else:
        parse, find_cut_table = _PARSERS[form]
        parsed, cut = parse(raw, source=source), hole or find_cut_table(raw, source=source)
    return parsed if cut is None else replace(parsed, errors=(cut, *parsed.errors))


def _parse_ibnetdiscover(raw: bytes, *, source: str) -> ParseResult:
    from topology.sources.ibnetdiscover.columns import SweepColumns  # noqa: PLC0415 - with numpy
    from topology.sources.ibnetdiscover.devices import SweptDevices  # noqa: PLC0415 - with numpy

    parser = parse_rows(raw, source=source)
    cut = find_cut(parser)
    errors = tuple(parser.errors) if cut is None else (cut, *parser.errors)
    return ParseResult(SweptDevices(SweepColumns.sort(parser.rows)), errors)


_DumpParser = Callable[..., ParseResult]
_FindCut = Callable[..., CutInput | None]
_PARSERS: Final[Mapping[DumpFormat, tuple[_DumpParser, _FindCut]]] = {
    DumpFormat.DB_CSV: (parse_ibdiagnet_db, find_cut_db_csv),
    DumpFormat.NET_DUMP: (parse_ibdiagnet_net_dump, find_cut_net_dump),
    DumpFormat.SUBNET_LST: (parse_subnet_lst, find_cut_lst),
}


Claims = Sequence[Claim | SweptClaims]


def _read_sweep(file: Path, _: Progress) -> tuple[Claims, Sequence[ParseError]]:
    raw = read_whole_file(file, MAX_SWEEP_BYTES)
    if isinstance(raw, ParseError):
        return [], [raw]
    parsed = parse_dump(raw, source=str(file))
    if not parsed.devices and (problem := explain_kind(file, FileKind.SWEEP)):
        return [], [ParseError(problem, source=str(file))]
    return [SweptClaims(parsed.devices)] if parsed.devices else [], parsed.errors


SWEEPS: Final = "ibnetdiscover"
CAPTURES: Final[Mapping[str, Callable[[Path, Progress], tuple[Claims, Sequence[ParseError]]]]] = {
    SWEEPS: _read_sweep,
    "lldpcli": read_captures,
    "snmpwalk": read_walks,
}
"""The functions that read files which people collected themselves, by the name of their option."""
