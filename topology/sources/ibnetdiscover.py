"""`ibnetdiscover` in all its forms that tell cables: bytes to device claims, tolerant of damage.

A bad line costs that line: it becomes a ParseError and everything else still counts. Lists of
nodes without cables are refused by name. Which claims are one host is for `fabric` to say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from topology.errors import ParseError
from topology.facts import Device, Parsed
from topology.sources.ibnetdiscover_devices import Record, build_devices
from topology.sources.ibnetdiscover_lines import LineReader, read_chunks
from topology.sources.ibnetdiscover_names import host_name, switch_name
from topology.sources.ibnetdiscover_text import render_ibnetdiscover

__all__ = [
    "FastReader",
    "host_name",
    "parse_ibnetdiscover",
    "parse_strictly",
    "render_ibnetdiscover",
    "switch_name",
]

FastReader: TypeAlias = Callable[[str], "list[Record] | None"]
"""Reads a piece of a dump that starts and ends between records; None where it cannot."""
_CHUNK: Final = 256 * 1024  # characters: arrays of this many bytes stay in a core's own cache


def parse_ibnetdiscover(raw: bytes, *, source: str = "", fast: FastReader | None = None) -> Parsed:
    """Return one device per record, sorted by GUID, and an error per bad line; never raises.

    Every CA is a device of its own: one HCA function, not a host. Both ends of a cable say what
    they see, at their own rate; only the rows of -p also tell ports without a link. They know
    CAs by port GUID alone, so each port of a CA is a device there.
    Cost: O(lines), 6 to 8 µs each, half of it for making the objects; `fast` saves a quarter.

    Args:
        raw: the output, pasted or redirected; several dumps after each other add up.
        source: names the input in errors.
        fast: an `ibnetdiscover_fast.NumpyReader` where numpy may be loaded. The result is the
            same: the pieces that it does not take are read line by line.
    """
    reader = LineReader(source)
    text = raw.decode("utf-8", "replace").removeprefix("\ufeff")
    if fast is None:
        reader.read(text)
    else:
        _read_fast(reader, text, fast)
    if reader.form:
        reader.error(f"this is {reader.form}: run `ibnetdiscover` without options")
    elif not reader.records:
        reader.error("no Switch, Ca or Rt record: expected the output of `ibnetdiscover`")
    return Parsed(build_devices(reader.records), tuple(reader.errors))


def parse_strictly(
    raw: bytes, *, source: str = "", fast: FastReader | None = None
) -> tuple[Device, ...]:
    """Return the devices of a dump without any bad line.

    Raises:
        ExceptionGroup: of all ParseErrors, in the order of lines.
    """
    parsed = parse_ibnetdiscover(raw, source=source, fast=fast)
    if parsed.errors:
        raise ExceptionGroup[ParseError]("not a clean dump", parsed.errors)
    return parsed.devices


def _read_fast(reader: LineReader, text: str, fast: FastReader) -> None:
    for first, piece in read_chunks(text.replace("\r\n", "\n"), _CHUNK):
        records = fast(piece) if reader.is_between_records else None
        if records is None or not reader.take(records):
            reader.read(piece, first)
