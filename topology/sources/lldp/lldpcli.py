"""`lldpcli -f json0` (and json, keyvalue): neighbors per port, and the node's own chassis.

Detects the form by its shape and reads the three forms alike. Refuses xml, plain text and the
keyvalue of `show chassis`, with an error that names the form. The text of neighbors may be
hostile: it is kept as sent, never trusted, and never shown unescaped. Does not decide between host
and switch: capabilities alone do not, because a host with a bridge sends Bridge.

Source: lldpd 1.0.16, src/client/{json,show}_writer.c, and collected outputs of older versions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from topology.model.errors import ParseError
from topology.model.facts import Capability, Device, DeviceKind, Neighbor, Source
from topology.model.ids import Id, IdKind, natural_key
from topology.sources.lldp.ids import SentId, chassis_ids, port_ids, port_name
from topology.sources.unsupported_formats import explain_output

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


_JSON0_ADVICE: Final = "run lldpcli with -f json0"
_KEYVALUE: Final = re.compile(r"(?:#[^\n]*\n\s*)*lldp\.[^\n]+=")
_SOURCES: Final = {"LLDP": Source.LLDP, "CDPv1": Source.CDP, "CDPv2": Source.CDP}
_CAPABILITIES: Final = {
    "Other": Capability.OTHER,
    "Repeater": Capability.REPEATER,
    "Bridge": Capability.BRIDGE,
    "Wlan": Capability.WLAN,
    "Router": Capability.ROUTER,
    "Tel": Capability.TELEPHONE,
    "Docsis": Capability.DOCSIS,
    "Station": Capability.STATION,
}
"""By the word of lldpcli, in the order of `Capability`."""
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_MAX_PORT_NAME: Final = 255  # no system has longer interface names
_MAX_TTL_S: Final = 65535


@dataclass(frozen=True, slots=True)
class LldpNeighbors:
    """The LLDP neighbors of one device, by port."""

    ports: tuple[tuple[str, tuple[Neighbor, ...]], ...] = ()
    """(local port name, its neighbors in the order of the input), in natural order of the names."""
    errors: tuple[ParseError, ...] = ()
    form: str = ""
    """`json0`, `json`, `keyvalue`, or empty if the input is none of them."""


class _Chassis(NamedTuple):
    """The name and the fields of a chassis, of either form."""

    name: str
    fields: dict[str, Any]


def parse_neighbors(raw: bytes, *, source: str = "") -> LldpNeighbors:
    """Return the neighbors in the output of `show neighbors details`; never raises.

    Skips a broken entry with an error. Keeps every neighbor of a port, also if one device appears
    once per protocol. `{"lldp":[{}]}` means no neighbors and is not an error.
    """
    try:
        form, entries, errors = _parse_forms(raw, source)
    except ParseError as refused:
        return LldpNeighbors(errors=(_with_source(refused, source),))
    ports: dict[str, list[Neighbor]] = {}
    for name, entry in entries:
        try:
            neighbor = _neighbor(name, entry)
        except ParseError as refused:
            errors.append(_with_source(refused, source))
            continue
        if neighbor is not None:
            ports.setdefault(_replace_surrogates(name), []).append(neighbor)
    ordered = sorted(ports, key=lambda name: (natural_key(name), name))
    return LldpNeighbors(tuple((name, tuple(ports[name])) for name in ordered), tuple(errors), form)


def parse_chassis(raw: bytes, *, source: str = "") -> tuple[Device | None, tuple[ParseError, ...]]:
    """Return the local device from `show chassis`; never raises.

    Returns None and an error if the chassis has neither an id nor a name.
    """
    try:
        text, errors = _decode(raw, source)
        chassis = _local_chassis(_parse_json(text))
    except ParseError as refused:
        return None, (_with_source(refused, source),)
    ids = set(_device_ids(chassis.fields))
    if chassis.name:
        ids.add(Id(IdKind.HOSTNAME, chassis.name))
    if not ids:
        errors.append(ParseError("chassis without an id or a name", source=source))
        return None, tuple(errors)
    device = Device(
        kind=DeviceKind.UNKNOWN,
        name=chassis.name,
        ids=tuple(sorted(ids)),
        model=_text(chassis.fields, "descr"),
    )
    return device, tuple(errors)


def _parse_forms(
    raw: bytes, source: str
) -> tuple[str, Iterable[tuple[object, object]], list[ParseError]]:
    """Return the form, every (port name, entry), and the errors.

    Raises:
        ParseError: the form is not supported.
    """
    text, errors = _decode(raw, source)
    if _KEYVALUE.match(text.lstrip()):
        parsed = parse_keyvalue(text)
        return (
            "keyvalue",
            parsed.entries,
            [*errors, *(_with_source(error, source) for error in parsed.errors)],
        )
    form, entries = _entries(_parse_json(text))
    return form, entries, errors


def _with_source(error: ParseError, source: str) -> ParseError:
    return ParseError(error.problem, source=source, line=error.line, excerpt=error.excerpt)


def _local_chassis(document: dict[str, Any]) -> _Chassis:
    local = _first(document.get("local-chassis"))
    if not isinstance(local, dict):
        raise ParseError(
            f"no local-chassis key: expected the output of `show chassis`; {_JSON0_ADVICE}"
        )
    return _chassis(local.get("chassis"))


def _decode(raw: bytes, source: str) -> tuple[str, list[ParseError]]:
    """Return the text, and an error if any byte is not UTF-8.

    Raises:
        ParseError: the text is empty.
    """
    errors = []
    text = raw.decode("utf-8", "replace").removeprefix("\ufeff")
    if "\ufffd" in text and not _is_utf8(raw):
        errors.append(ParseError("bytes that are not UTF-8 were replaced", source=source))
    if not text.strip():
        raise ParseError("empty: lldpcli does not know the port, or failed")
    return text, errors


def _parse_json(text: str) -> dict[str, Any]:
    """Return the document of a JSON form.

    Raises:
        ParseError: the text is another form, or not JSON.
    """
    known = explain_output(text)
    if known:
        raise ParseError(known)
    try:
        # json0 prints the byte 0x1F unescaped, which strict parsing refuses.
        document = json.loads(text, strict=False)
    except json.JSONDecodeError as error:
        excerpt = text[max(error.pos - 20, 0) : error.pos + 40]
        problem = f"not JSON ({error.msg}): {_JSON0_ADVICE}"
        raise ParseError(problem, line=error.lineno, excerpt=excerpt) from error
    except (ValueError, RecursionError) as error:
        raise ParseError(f"not JSON of lldpcli: {_JSON0_ADVICE}", excerpt=text[:80]) from error
    if not isinstance(document, dict):
        raise ParseError(
            f"expected an object with the key lldp: {_JSON0_ADVICE}", excerpt=text[:80]
        )
    return document


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _entries(document: dict[str, Any]) -> tuple[str, list[tuple[object, object]]]:
    """Return the form and every (port name, entry) of a neighbors document."""
    root = document.get("lldp")
    if isinstance(root, list):
        items = [item for part in root if isinstance(part, dict) for item in _items(part)]
        return "json0", [
            (item.get("name") if isinstance(item, dict) else None, item) for item in items
        ]
    if isinstance(root, dict):
        return "json", [
            pair
            for item in _items(root)
            for pair in (item.items() if isinstance(item, dict) else [(None, item)])
        ]
    raise ParseError(
        f"no lldp key: expected the output of `show neighbors details`; {_JSON0_ADVICE}"
    )


def _items(part: dict[str, Any]) -> list[Any]:
    interfaces = part.get("interface", [])
    return interfaces if isinstance(interfaces, list) else [interfaces]


def _neighbor(name: object, entry: object) -> Neighbor | None:
    """Return one neighbor; None if the entry has VLANs only.

    Raises:
        ParseError: the entry has no port name or no chassis.
    """
    if not isinstance(name, str) or not 0 < len(name) <= _MAX_PORT_NAME:
        raise ParseError("neighbor entry without a port name")
    if not isinstance(entry, dict):
        raise ParseError("neighbor entry is not an object", excerpt=name)
    if "chassis" not in entry and "port" not in entry:
        return None
    try:
        chassis = _chassis(entry.get("chassis"))
    except ParseError as refused:
        raise ParseError(refused.problem, excerpt=name) from refused
    first_port = _first(entry.get("port"))
    port = first_port if isinstance(first_port, dict) else {}
    return Neighbor(
        device_ids=_device_ids(chassis.fields),
        device_name=chassis.name,
        port_ids=port_ids(_sent_id(port)),
        port_name=port_name(_sent_id(port), _text(port, "descr")),
        source=_SOURCES.get(_text(entry, "via"), Source.OTHER),
        ttl_s=_ttl_s(port) if "ttl" in port else _ttl_s(chassis.fields),
        capabilities=_capabilities(chassis.fields),
    )


def _chassis(value: object) -> _Chassis:
    """Return a chassis of either form: json0's list, or json's `{NAME: {…}}`.

    In json, a chassis without a name is `{"id": {"type": …}, …}` itself.

    Raises:
        ParseError: there is no chassis, or several, which a crafted name in json can cause.
    """
    if isinstance(value, list):
        fields = _first(value)
        if isinstance(fields, dict):
            return _Chassis(_text(fields, "name"), fields)
        raise ParseError("neighbor without a chassis")
    if not isinstance(value, dict) or not value:
        raise ParseError("neighbor without a chassis")
    id_value = value.get("id")
    if isinstance(id_value, dict) and "type" in id_value:
        return _Chassis("", value)
    if len(value) > 1:
        raise ParseError("neighbor with several chassis: its name may be forged")
    name, fields = next(iter(value.items()))
    if not isinstance(fields, dict):
        raise ParseError("chassis is not an object")
    return _Chassis(_replace_surrogates(name), fields)


def _device_ids(fields: dict[str, Any]) -> tuple[Id, ...]:
    return chassis_ids(_sent_id(fields), _texts(fields, "mgmt-ip"))


def _sent_id(fields: dict[str, Any]) -> SentId:
    id_value = _first(fields.get("id"))
    if not isinstance(id_value, dict):
        return SentId("", "")
    return SentId(_text(id_value, "type"), _text(id_value, "value"))


def _capabilities(fields: dict[str, Any]) -> tuple[Capability, ...]:
    """Return the enabled capabilities; the JSON forms have a list, or an object for a single one.

    keyvalue has one line for each, which `lldpcli_keyvalue` turns into the same list.
    """
    value = fields.get("capability")
    items = value if isinstance(value, list) else [value]
    enabled = {
        item.get("type")
        for item in items
        if isinstance(item, dict) and item.get("enabled") is True
        if isinstance(item.get("type"), str)
    }
    return tuple(found for word, found in _CAPABILITIES.items() if word in enabled)


def _ttl_s(fields: dict[str, Any]) -> int | None:
    text = _text(fields, "ttl")
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(_MAX_TTL_S))
    return min(int(text), _MAX_TTL_S) if is_number else None


def _first(value: object) -> object:
    if isinstance(value, list):
        return value[0] if value else None
    return value


def _text(fields: dict[str, Any], key: str) -> str:
    return next(iter(_texts(fields, key)), "")


def _texts(fields: dict[str, Any], key: str) -> list[str]:
    """Return the leaves below a key: bare strings in json, `[{"value": …}]` in json0."""
    value = fields.get(key)
    items = value if isinstance(value, list) else [value]
    leaves = (item.get("value") if isinstance(item, dict) else item for item in items)
    return [_replace_surrogates(leaf) for leaf in leaves if isinstance(leaf, str)]


def _replace_surrogates(text: object) -> str:
    """Return text that can be encoded: a JSON escape may be half a surrogate pair."""
    return _SURROGATES.sub("\ufffd", str(text))
