"""`lldpcli -f keyvalue`: turns lines into entries of json0's shape, which `lldpcli` then reads.

keyvalue is the weakest form: it escapes nothing, so a neighbor's text can forge lines, and
neighbors of one port repeat the same keys. json0 has neither flaw, but some outputs come as
keyvalue.

Source: lldpd 1.0.16, src/client/kv_writer.c, and collected outputs of older versions.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from topology.model.errors import ParseError

# Port names contain dots (eth0.5), so the line is split at the known word after the port name.
_LINE: Final = re.compile(
    r"lldp\.(?P<port>.+?)\."
    r"(?P<word>via|rid|age|chassis|port|vlan|ppvid|pi|lldp-med|unknown-tlvs)"
    r"(?:\.(?P<path>[^=]*))?=(?P<value>.*)\Z",
    re.DOTALL,
)
_PORT_ID: Final = re.compile(rb"\.port\.(?:mac|ip|ifname|ifalias|local|unhandled)=")
_CAPABILITY: Final = re.compile(r"(?P<type>[A-Z][a-z]+)\.enabled")
_ID_TYPES: Final = frozenset({"mac", "ip", "ifname", "ifalias", "local", "unhandled"})


class KeyValues(NamedTuple):
    """The entries and the errors of an output."""

    entries: list[tuple[str, dict[str, Any]]]
    """(port name, entry in json0's shape), in the order of the lines."""
    errors: list[ParseError]


def parse_keyvalue(text: str) -> KeyValues:
    """Return one entry per `via=` line and port; skips a bad line with an error. O(text)."""
    entries: list[tuple[str, dict[str, Any]]] = []
    open_entries: dict[str, dict[str, Any]] = {}
    errors: list[ParseError] = []
    is_description = False
    for number, line in enumerate(text.split("\n"), start=1):
        match = _LINE.match(line.removesuffix("\r"))
        if match is None:
            # Old versions print a description over several lines, unescaped.
            if line.strip() and not line.startswith("#") and not is_description:
                problem = "expected lldp.PORT.KEY=VALUE"
                errors.append(ParseError(problem, line=number, excerpt=line))
            continue
        port, word, path = match["port"], match["word"], match["path"] or ""
        if word == "via" or port not in open_entries:
            open_entries[port] = {}
            entries.append((port, open_entries[port]))
        _store_value(open_entries[port], word, path, match["value"])
        is_description = path.endswith("descr")
    return KeyValues(entries, errors)


def ends_within_neighbor(raw: bytes) -> bool:
    """Return whether the last neighbor of an output lacks its port, which every LLDPDU has.

    lldpcli prints `via`, the chassis and then the port, so the end of the output is missing.
    """
    start = raw.rfind(b".via=")
    return start >= 0 and _PORT_ID.search(raw, start) is None


def _store_value(entry: dict[str, Any], word: str, path: str, value: str) -> None:
    if word == "via":
        entry["via"] = value
    elif word in ("chassis", "port"):
        fields = entry.setdefault(word, [{}])[0]
        if path in _ID_TYPES:
            fields.setdefault("id", [{"type": path, "value": value}])
        elif word == "chassis" and (capability := _CAPABILITY.fullmatch(path)):
            fields.setdefault("capability", []).append(
                {"type": capability["type"], "enabled": value == "on"}
            )
        else:
            fields.setdefault(path, []).append({"value": value})
