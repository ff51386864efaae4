"""The yardstick: a straightforward ibnetdiscover parser that tries five regexes on each line.

What most people would write, so a ratio to it means the same on every machine. It knows clean
dumps only; ours also takes damaged ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

_SWITCH: Final = re.compile(r'^Switch\s+(\d+)\s+"S-([0-9a-f]{16})"\s+#\s+"(.*?)"')
_CA: Final = re.compile(r'^Ca\s+(\d+)\s+"H-([0-9a-f]{16})"\s+#\s+"(.*?)"')
_SWITCH_PORT: Final = re.compile(
    r'^\[(\d+)\]\s+"([SH])-([0-9a-f]{16})"\[(\d+)\](?:\(([0-9a-f]+)\))?'
    r'\s+#\s+"(.*?)"\s+lid (\d+) (\S+)'
)
_CA_PORT: Final = re.compile(
    r'^\[(\d+)\]\(([0-9a-f]+)\)\s+"([SH])-([0-9a-f]{16})"\[(\d+)\]'
    r'\s+#\s+lid (\d+) lmc (\d+) "(.*?)" lid (\d+) (\S+)'
)
_ID: Final = re.compile(r"^(vendid|devid|sysimgguid|switchguid|caguid)=(?:0x)?([0-9a-f]+)")


@dataclass(slots=True)
class Record:
    """One device."""

    description: str
    ports: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Port number to the GUID and the port number at the other end."""


def parse_reference(text: str) -> dict[str, Record]:
    """Return the devices of a clean dump by node GUID. Cost: up to five regexes a line."""
    records: dict[str, Record] = {}
    current = Record("")
    for line in text.split("\n"):
        if found := _SWITCH.match(line) or _CA.match(line):
            current = records[found[2]] = Record(found[3])
        elif found := _SWITCH_PORT.match(line):
            current.ports[int(found[1])] = (found[3], int(found[4]))
        elif found := _CA_PORT.match(line):
            current.ports[int(found[1])] = (found[4], int(found[5]))
        else:
            _ID.match(line)
    return records


def as_printed(text: str) -> str:
    """Return a rendered dump with the id lines that the tool prints and our rendering leaves out.

    Source: infiniband-diags 44, ibnetdiscover.c; 65,536 HCAs give 0.8 M lines.
    """
    head = "# Topology file: generated on Mon Jan  5 10:00:00 2026\n#\n"
    lines = text.replace("sysimgguid=", "vendid=0x2c9\ndevid=0x1021\nsysimgguid=")
    return head + re.sub(r"switchguid=0x([0-9a-f]+)", r"switchguid=0x\1(\1)", lines)
