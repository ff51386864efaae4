"""Cabling plans as ibdm topology files, which `ibdiagnet -t` and `ibtopodiff` compare with.

    SYSTEM-TYPE SYSTEM-NAME [CFG: ...]
        PORT -4X-10G-> REMOTE-TYPE REMOTE-NAME REMOTE-PORT

Ignores types and configurations: they describe the inside of a system, and ports are those of its
front panel. Source: ibutils 1.5.7, man ibdm-topo-file and IBFabric::parseTopology.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from topology.model.cabling_plan import PlannedCable
from topology.model.errors import ParseError

_ARROW: Final = re.compile(r"-(?:[\w.]+-)*>", re.ASCII)
_PORT_WORDS: Final = 5
_HEAD_LINES: Final = 1000


def is_topology_file(lines: Sequence[str]) -> bool:
    """Whether one of the first 1000 lines is a port of a system."""
    return any(_is_port(line.split()) for line in lines[:_HEAD_LINES])


def _is_port(words: Sequence[str]) -> bool:
    return len(words) == _PORT_WORDS and _ARROW.fullmatch(words[1]) is not None


def parse_topology_file(lines: Sequence[str]) -> Iterator[PlannedCable | ParseError]:
    """Yield a cable or an error per port line; most cables come twice, once from each end."""
    system = ""
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if _is_port(words):
            problem = "" if system else "port line before any system line"
        elif _is_system(words):
            system, problem = words[1], ""
            continue
        else:
            problem = "expected TYPE NAME, or PORT -> TYPE NAME PORT"
            system = system if line[0].isspace() else ""
        if problem:
            yield ParseError(problem, line=number, excerpt=line.strip())
        else:
            yield PlannedCable(system, words[0], words[3], words[4], number)


def _is_system(words: Sequence[str]) -> bool:
    """Whether a line declares a system; the text after `CFG:` may contain blanks."""
    if len(words) < 2 or "/" in words[0] + words[1]:  # noqa: PLR2004 - type and name
        return False
    return len(words) == 2 or words[2].startswith("CFG:")  # noqa: PLR2004
