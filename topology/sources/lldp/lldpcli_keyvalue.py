"""`lldpcli -f keyvalue`: lines to entries of json0's shape, which `lldpcli` then reads alike.

The weakest form: nothing is escaped, so a neighbor's text can forge lines, and neighbors on one
port repeat the same keys. json0 has neither flaw; people hand this one in all the same.

Source: lldpd 1.0.16, src/client/kv_writer.c, and collected outputs of older ones.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from topology.model.errors import ParseError

# Port names hold dots (eth0.5), so the line is split at the known word that follows the port.
_LINE: Final = re.compile(
    r"lldp\.(?P<port>.+?)\."
    r"(?P<word>via|rid|age|chassis|port|vlan|ppvid|pi|lldp-med|unknown-tlvs)"
    r"(?:\.(?P<path>[^=]*))?=(?P<value>.*)\Z",
    re.DOTALL,
)
_ID_TYPES: Final = frozenset({"mac", "ip", "ifname", "ifalias", "local", "unhandled"})


class KeyValues(NamedTuple):
    """Entries and what was wrong."""

    entries: list[tuple[str, dict[str, Any]]]
    """(port name, entry in json0's shape), in the order of the lines."""
    errors: list[ParseError]


def parse_keyvalue(text: str) -> KeyValues:
    """Return one entry per `via=` line and port; a bad line costs that line. O(text)."""
    entries: list[tuple[str, dict[str, Any]]] = []
    open_entries: dict[str, dict[str, Any]] = {}
    errors: list[ParseError] = []
    is_spread = False
    for number, line in enumerate(text.split("\n"), start=1):
        found = _LINE.match(line.removesuffix("\r"))
        if found is None:
            # Old versions print a description as it is, over several lines.
            if line.strip() and not line.startswith("#") and not is_spread:
                problem = "expected lldp.PORT.KEY=VALUE"
                errors.append(ParseError(problem, line=number, excerpt=line))
            continue
        port, word, path = found["port"], found["word"], found["path"] or ""
        if word == "via" or port not in open_entries:
            open_entries[port] = {}
            entries.append((port, open_entries[port]))
        _store_value(open_entries[port], word, path, found["value"])
        is_spread = path.endswith("descr")
    return KeyValues(entries, errors)


def _store_value(entry: dict[str, Any], word: str, path: str, value: str) -> None:
    if word == "via":
        entry["via"] = value
    elif word in ("chassis", "port"):
        fields = entry.setdefault(word, [{}])[0]
        if path in _ID_TYPES:
            fields.setdefault("id", [{"type": path, "value": value}])
        else:
            fields.setdefault(path, []).append({"value": value})
