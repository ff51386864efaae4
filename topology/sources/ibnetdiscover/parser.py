"""The output of `ibnetdiscover`, in every form that has cables: bytes in, devices out.

Skips a bad line with a ParseError and keeps everything else. Refuses node lists, which have no
cables, with an error that names the form. Does not decide which devices are one host; the join
does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from topology.model.facts import ParseResult
from topology.sources.ibnetdiscover.devices import build_devices
from topology.sources.ibnetdiscover.line_parser import LineParser
from topology.sources.ibnetdiscover.printer import render_ibnetdiscover
from topology.sources.infiniband.node_names import host_name, switch_name

__all__ = [
    "FastParser",
    "host_name",
    "parse_ibnetdiscover",
    "render_ibnetdiscover",
    "switch_name",
]

FastParser: TypeAlias = Callable[[bytes, str], ParseResult]
"""Parses (dump, source) to the same result as the line parser."""


def parse_ibnetdiscover(
    raw: bytes, *, source: str = "", fast: FastParser | None = None
) -> ParseResult:
    """Return one device per record, sorted by GUID, and an error per bad line; never raises.

    Every CA is a separate device: one HCA function, not a host. Both ends of a cable are reported,
    each with its own rate. Ports without a link appear only in the output of -p. That output has
    only the port GUID of a CA, so there each port of a CA is a device.
    Cost: O(lines), 6 to 8 µs each, half of it to build the objects; with `fast` 0.3 µs, and the
    objects are built when they are first read.

    Args:
        raw: the output, pasted or redirected; several dumps in sequence add up.
        source: the name of the input in errors.
        fast: a `chunks.NumpyReader`, if numpy may be loaded. The result is the same, because it
            passes lines that it cannot parse to the line parser.
    """
    if fast is not None:
        return fast(raw, source)
    reader = LineParser(source)
    reader.read(raw.decode("utf-8", "replace").removeprefix("\ufeff"))
    reader.close(is_empty=not reader.records)
    return ParseResult(build_devices(reader.records), tuple(reader.errors))
