"""Walks of switches that people saved: the agentless twin of `toponaut switches`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from topology.model.claims import Claim, Origin
from topology.model.errors import ParseError, show
from topology.sources.lldp_mib.walk import parse_snmpwalk_text

MAX_WALK_BYTES: Final = 64 << 20  # a whole MIB of a large switch prints ten
_WALK = re.compile(r"(?P<device>.+?)(?:\.snmpwalk)?\.(?:txt|snmpwalk|snmprec)\Z")


def read_walks(
    folder: Path, read: Callable[[Path, int], bytes | ParseError]
) -> tuple[list[Claim], list[ParseError]]:
    """Read `<device>.snmpwalk.txt`, `.txt`, `.snmpwalk` or `.snmprec` files, one per switch.

    Other files of the folder are left alone. A switch that does not tell its name is called as
    its file is.

    Args:
        folder: holds the files.
        read: returns the content of a file of a limited size, or what is wrong with it.
    """
    source = show(str(folder), 1024)
    try:
        files = sorted(folder.iterdir())
    except OSError as error:
        return [], [ParseError(f"cannot be read: {error.strerror}", source=source)]
    claims: list[Claim] = []
    problems: list[ParseError] = []
    for file in files:
        name = _WALK.match(file.name)
        if name is None:
            continue
        raw = read(file, MAX_WALK_BYTES)
        if isinstance(raw, ParseError):
            problems.append(raw)
            continue
        device, errors = parse_snmpwalk_text(raw, source=show(str(file), 1024))
        problems += errors
        if device is not None:
            named = device if device.name else replace(device, name=name["device"])
            claims.append(Claim(named, Origin.REPORT))
    if not claims and not problems:
        problems.append(ParseError("no <device>.snmpwalk.txt in it", source=source))
    return claims, problems
