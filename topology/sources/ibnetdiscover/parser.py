"""`ibnetdiscover` in all its forms that tell cables: bytes to device claims, tolerant of damage.

A bad line costs that line: it becomes a ParseError and everything else still counts. Lists of
nodes without cables are refused by name. Which claims are one host is for `fabric` to say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from topology.model.errors import ParseError
from topology.model.facts import Device, ParseResult
from topology.sources.ibnetdiscover.devices import build_devices
from topology.sources.ibnetdiscover.line_parser import LineParser
from topology.sources.ibnetdiscover.printer import render_ibnetdiscover
from topology.sources.infiniband.node_names import host_name, switch_name

__all__ = [
    "FastParser",
    "host_name",
    "parse_ibnetdiscover",
    "parse_strictly",
    "render_ibnetdiscover",
    "switch_name",
]

FastParser: TypeAlias = Callable[[bytes, str], ParseResult]
"""Reads a dump, given with its name, to the same result."""


def parse_ibnetdiscover(
    raw: bytes, *, source: str = "", fast: FastParser | None = None
) -> ParseResult:
    """Return one device per record, sorted by GUID, and an error per bad line; never raises.

    Every CA is a device of its own: one HCA function, not a host. Both ends of a cable say what
    they see, at their own rate; only the rows of -p also tell ports without a link. They know
    CAs by port GUID alone, so each port of a CA is a device there.
    Cost: O(lines), 6 to 8 µs each, half of it for making the objects; with `fast` 0.3 µs, and
    the objects are made when somebody looks at them.

    Args:
        raw: the output, pasted or redirected; several dumps after each other add up.
        source: names the input in errors.
        fast: an `ibnetdiscover_pieces.NumpyReader` where numpy may be loaded. The result is the
            same: what it does not take is read line by line.
    """
    if fast is not None:
        return fast(raw, source)
    reader = LineParser(source)
    reader.read(raw.decode("utf-8", "replace").removeprefix("\ufeff"))
    reader.close(is_empty=not reader.records)
    return ParseResult(build_devices(reader.records), tuple(reader.errors))


def parse_strictly(
    raw: bytes, *, source: str = "", fast: FastParser | None = None
) -> Sequence[Device]:
    """Return the devices of a dump without any bad line.

    Raises:
        ExceptionGroup: of all ParseErrors, in the order of lines.
    """
    parsed = parse_ibnetdiscover(raw, source=source, fast=fast)
    if parsed.errors:
        raise ExceptionGroup[ParseError]("not a clean dump", parsed.errors)
    return parsed.devices
