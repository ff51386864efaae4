"""Reads saved snmpwalk files of switches: the facts of `toponaut switches`, from files."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from generator.ingest.ignored_folders import list_ignored_folders
from runtime.progress import NO_PROGRESS, Progress, track
from topology.model.claims import Claim, Origin
from topology.model.errors import ParseError, show
from topology.model.text import find_hole
from topology.sources.lldp_mib.walk import parse_snmpwalk_text

MAX_WALK_BYTES: Final = 64 << 20  # the whole MIB of a large switch takes 10 MB
_WALK = re.compile(r"(?P<device>.+?)(?:\.snmpwalk)?\.(?:txt|snmpwalk|snmprec)(?:\.gz)?\Z")
_WALK_FILE = re.compile(r".+\.snmp(?:walk|rec)\b")
_WALK_WORD = re.compile(r"snmp(?:walk|rec)|\.txt\.\w+\Z", re.IGNORECASE)


def read_walks(
    folder: Path,
    read: Callable[[Path, int], bytes | ParseError],
    progress: Progress = NO_PROGRESS,
) -> tuple[list[Claim], list[ParseError]]:
    """Read `<device>.snmpwalk.txt`, `.txt`, `.snmpwalk` or `.snmprec` files, one per switch.

    Each may be packed with gzip. A file that looks like a walk and is not read is a problem; other
    files are ignored. A switch without a name in its walk is named after its file.

    Args:
        folder: contains the files.
        read: returns the content of a file of at most this size, or the problem with it.
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
        raw = read(file, MAX_WALK_BYTES)
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
