"""Reads what people saved on devices: lldpcli captures, and snmpwalk files of switches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Final

from generator.store.local_files import read_regular_file
from runtime.progress import NO_PROGRESS, Progress, track
from topology.model.claims import Claim, Origin
from topology.model.errors import CutInput, ParseError, show
from topology.model.facts import Device, DeviceKind, Port
from topology.model.ids import Id, IdKind
from topology.model.text import find_hole
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
            yield ParseError(text, source=show(str(folder), 1024))


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
    source = show(str(folder), 1024)
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
                problems.append(ParseError(problem, source=show(str(file), 1024)))
            continue
        raw = read_regular_file(file, MAX_WALK_BYTES)
        if isinstance(raw, ParseError):
            problems.append(raw)
            continue
        hole = find_hole(raw, source=show(str(file), 1024))
        device, errors = parse_snmpwalk_text(raw, source=show(str(file), 1024))
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
        return [], [ParseError(f"cannot be read: {error.strerror}", source=show(str(folder)))]
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
            ParseError(
                "no file <device>.neighbors.json0 in this folder", source=show(str(folder), 1024)
            )
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
            yield ParseError(problem, source=show(str(file), 1024))


def _read_capture(
    file: Path, name: str, chassis_file: Path | None
) -> tuple[Device | None, list[ParseError]]:
    raw = read_regular_file(file, MAX_CAPTURE_BYTES)
    if isinstance(raw, ParseError):
        return None, [raw]
    parsed = parse_neighbors(raw, source=show(str(file), 1024))
    cut = _find_capture_cut(raw, has_errors=bool(parsed.errors), source=show(str(file), 1024))
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
    hole = find_hole(raw, source=source)
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
    source = show(str(file), 1024)
    device, errors = parse_chassis(raw, source=source)
    cut = _find_capture_cut(raw, has_errors=bool(errors), source=source)
    return device, (*([cut] if cut else []), *errors)
