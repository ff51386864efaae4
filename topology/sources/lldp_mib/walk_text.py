"""Saved walks as rows: the output of `snmpwalk -On` (or `snmpbulkwalk -On`), and snmprec records.

Without -On, OIDs begin with `iso`; they are read too if the rest is numbers.

A saved walk is a weaker source than an SNMP response: multi-line texts, BITS and octets change
their form when printed, and recorders damage quotes. Use it only for walks that users provide.

Source: net-snmp 5.9.3 snmplib/mib.c; snmpsim's documentation of .snmprec.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Final

from topology.model.errors import ParseError
from topology.sources.lldp_mib.tables import Oid, Value, WalkRow
from topology.sources.unsupported_formats import explain_output

_MAX_ERRORS: Final = 20
_OID = r"(?:\d{1,10}\.){2,127}\d{1,10}"
# Some recorders drop a blank next to the equals sign.
_WALK_LINE = re.compile(rf"\.({_OID}) ?= ?(?:([A-Za-z][\w -]*): ?)?(.*)", re.DOTALL)
_ISO = re.compile(r"^iso\.(?=[\d.]+ ?=)", re.MULTILINE)
_NAMED_LINE = re.compile(r"[A-Za-z][\w-]*::\w[\w.-]*\S* = ")
_WALK_START = re.compile(rf"^\.{_OID} ?=", re.MULTILINE)
_RECORD = re.compile(rf"({_OID})\|(\w+)\|(.*)")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_HEX = re.compile(r"(?:[0-9A-Fa-f]{1,2}(?:[\s:]+|\Z))*\Z")
_NUMBER = re.compile(r"-?\d{1,20}\Z")
_IN_BRACKETS = re.compile(r"\w*\((-?\d{1,20})\)")
_ABSENT: Final = ("No Such ", "No more variables")
_NUMBER_TYPES: Final = frozenset(
    {"INTEGER", "Integer32", "Gauge32", "Unsigned32", "Counter32", "Counter64", "Timeticks"}
)
_OCTET_TYPES: Final = frozenset({"Hex-STRING", "Network Address"})
_RECORD_NUMBERS: Final = frozenset({"2", "65", "66", "67", "70"})
_IGNORED: Final = frozenset({"BITS", "OID", "Opaque", "5", "6", "68"})


def parse_walk_text(
    raw: bytes, *, source: str = ""
) -> tuple[list[WalkRow], tuple[ParseError, ...]]:
    """Return the rows of a saved walk in either form; never raises.

    Skips an unreadable line with an error, and reports at most 20 of them. O(bytes).
    """
    text = raw.removeprefix(b"\xef\xbb\xbf").decode("latin-1")  # one character per octet
    text = _ISO.sub(".1.", text)
    is_walk = _WALK_START.search(text[:65536]) is not None
    known = "" if is_walk else explain_output(text)
    if known:
        return [], (ParseError(known, source=source),)
    entries = _walk_entries(text) if is_walk else _record_entries(text)
    rows: list[WalkRow] = []
    errors: list[ParseError] = []
    num_bad = 0
    for line, entry, row_or_problem in entries:
        if isinstance(row_or_problem, str):
            num_bad += 1
            if num_bad <= _MAX_ERRORS:
                errors.append(ParseError(row_or_problem, source=source, line=line, excerpt=entry))
        elif row_or_problem is not None:
            rows.append(row_or_problem)
    if num_bad > _MAX_ERRORS:
        errors.append(ParseError(f"{num_bad - _MAX_ERRORS} more bad lines", source=source))
    if not rows and not errors:
        errors.append(
            ParseError("no rows: expected the output of `snmpbulkwalk -On`", source=source)
        )
    return rows, tuple(errors)


_Entry = tuple[int, str, WalkRow | str | None]
"""Line number, text, and its row, or its problem, or None if the type is ignored."""


def _walk_entries(text: str) -> Iterator[_Entry]:
    """Yield the entries of snmpwalk's text; a line without an OID continues the previous entry."""
    start, parts = 0, [""]
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")  # noqa: PLW2901 - Windows line ends
        is_named = _NAMED_LINE.match(line) is not None
        if not is_named and not (line.startswith(".") and _WALK_START.match(line)):
            parts.append(line)
            continue
        if start:
            yield _walk_entry(start, "\n".join(parts))
        start, parts = (0, []) if is_named else (number, [line])
        if is_named:
            yield number, line, "its OID is a name: walk again with -On"
    if start:
        yield _walk_entry(start, "\n".join(parts))


def _walk_entry(line: int, entry: str) -> _Entry:
    match = _WALK_LINE.match(entry)
    if match is None:
        return line, entry, "not OID = TYPE: value"
    kind, shown = match[2] or "", match[3]
    if kind in _IGNORED or (not kind and shown.startswith(_ABSENT)):
        return line, entry, None
    value = _walk_value(kind, shown.rstrip("\n"))
    return line, entry, "unreadable value" if value is None else (_oid(match[1]), value)


def _walk_value(kind: str, shown: str) -> Value | None:
    if kind in _NUMBER_TYPES:
        enum_match = _IN_BRACKETS.match(shown)
        digits = enum_match[1] if enum_match else shown.split(" ", maxsplit=1)[0].strip()
        return int(digits) if _NUMBER.match(digits) else None
    if kind == "IpAddress":
        return _decode_hex(shown)
    if kind in _OCTET_TYPES:
        return _octets(shown)
    if kind in {"STRING", ""}:
        text = shown.strip()
        is_quoted = len(text) > 1 and text[0] == text[-1] == '"'
        return (_ESCAPED.sub(r"\1", text[1:-1]) if is_quoted else text).encode("latin-1")
    return None


def _octets(shown: str) -> bytes | None:
    """Return the octets of a hex text; with the MIB loaded, a MAC prints as `0:b:ca:fe:0:0`."""
    digits = shown.strip()
    parts = re.findall("[0-9A-Fa-f]+", digits) if _HEX.match(digits) else []
    is_read = bool(parts) or not digits
    return bytes(int(part, 16) for part in parts) if is_read else None


def _record_entries(text: str) -> Iterator[_Entry]:
    """Yield the entries of a snmprec file: `OID|tag|value`; a tag ending in x has a hex value."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _RECORD.match(line)
        if match is None:
            yield number, line, "not OID|tag|value"
            continue
        tag, shown = match[2], match[3]
        if tag in _IGNORED:
            yield number, line, None
            continue
        value = _record_value(tag, shown)
        yield number, line, "unreadable value" if value is None else (_oid(match[1]), value)


def _record_value(tag: str, shown: str) -> Value | None:
    if tag in _RECORD_NUMBERS:
        return int(shown) if _NUMBER.match(shown) else None
    if tag == "4":
        return shown.encode("latin-1")
    if tag == "4x":
        try:
            return bytes.fromhex(shown)
        except ValueError:
            return None
    return _decode_hex(shown) if tag == "64" else None


def _decode_hex(shown: str) -> bytes | None:
    try:
        return ipaddress.ip_address(shown.strip()).packed
    except ValueError:
        return None


def _oid(text: str) -> Oid:
    return tuple(map(int, text.split(".")))
