"""`lldpcli -f json0` (and json, keyvalue): neighbors per port, and the node's own chassis.

The forms are told apart by shape and read alike; the others are refused by name. What
neighbors say is hostile: it is kept as sent, never trusted and never shown unescaped. Hosts and
switches are not told apart here, because capabilities do not (a host with a bridge says Bridge).

Source: lldpd 1.0.16, src/client/{json,show}_writer.c, and collected outputs of older ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from topology.model.errors import ParseError
from topology.model.facts import Device, DeviceKind, Neighbor, Source
from topology.model.ids import Id, IdKind, natural_key
from topology.sources.lldp.ids import SentId, chassis_ids, port_ids, port_name
from topology.sources.lldp.lldpcli_keyvalue import parse_keyvalue

_JSON0_ADVICE: Final = "ask lldpcli for -f json0"
_FORMS: Final = (
    (re.compile(r"<\?xml|<lldp"), "lldpcli's xml"),
    (re.compile(r"local-chassis\.[^\n]*="), "lldpcli's keyvalue of `show chassis`"),
    (re.compile(r"-{20,}\s*\n\s*(?:LLDP neighbors|Local chassis|Chassis)"), "lldpcli's plain text"),
)
_KEYVALUE: Final = re.compile(r"(?:#[^\n]*\n\s*)*lldp\.[^\n]+=")
_SOURCES: Final = {"LLDP": Source.LLDP, "CDPv1": Source.CDP, "CDPv2": Source.CDP}
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_MAX_PORT_NAME: Final = 255  # no system has longer interface names
_MAX_TTL_S: Final = 65535


@dataclass(frozen=True, slots=True)
class LldpNeighbors:
    """What the ports of one device hear."""

    ports: tuple[tuple[str, tuple[Neighbor, ...]], ...] = ()
    """(local port name, its neighbors as printed), in natural order of the names."""
    errors: tuple[ParseError, ...] = ()
    form: str = ""
    """`json0`, `json`, `keyvalue`, or empty where the input was none of them."""


class _Chassis(NamedTuple):
    """A chassis in either form, its name found."""

    name: str
    fields: dict[str, Any]


def parse_neighbors(raw: bytes, *, source: str = "") -> LldpNeighbors:
    """Return the neighbors in `show neighbors details`; never raises.

    A broken entry costs that entry. Several neighbors on one port are all kept, also one box
    that speaks several protocols. `{"lldp":[{}]}` is nobody there, which is no error.
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
    """Return the device itself from `show chassis`, None where it tells nothing; never raises."""
    try:
        text, errors = _decode(raw, source)
        chassis = _local_chassis(_parse_json(text))
    except ParseError as refused:
        return None, (_with_source(refused, source),)
    ids = set(_device_ids(chassis.fields))
    if chassis.name:
        ids.add(Id(IdKind.HOSTNAME, chassis.name))
    if not ids:
        errors.append(ParseError("chassis without id and name", source=source))
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
    """Return the form, every (port name, entry) and what was wrong on the way.

    Raises:
        ParseError: it is none of the forms that are read.
    """
    text, errors = _decode(raw, source)
    if _KEYVALUE.match(text.lstrip()):
        read = parse_keyvalue(text)
        return (
            "keyvalue",
            read.entries,
            [*errors, *(_with_source(one, source) for one in read.errors)],
        )
    form, entries = _entries(_parse_json(text))
    return form, entries, errors


def _with_source(error: ParseError, source: str) -> ParseError:
    return ParseError(error.problem, source=source, line=error.line, excerpt=error.excerpt)


def _local_chassis(document: dict[str, Any]) -> _Chassis:
    local = _first(document.get("local-chassis"))
    if not isinstance(local, dict):
        raise ParseError(f"no local-chassis: expected `show chassis`, {_JSON0_ADVICE}")
    return _chassis(local.get("chassis"))


def _decode(raw: bytes, source: str) -> tuple[str, list[ParseError]]:
    """Return the text and what was wrong with its bytes.

    Raises:
        ParseError: nothing is in it.
    """
    errors = []
    text = raw.decode("utf-8", "replace").removeprefix("\ufeff")
    if "\ufffd" in text and not _is_utf8(raw):
        errors.append(ParseError("bytes that are not UTF-8 were replaced", source=source))
    if not text.strip():
        raise ParseError("empty: lldpcli knows no such port, or failed")
    return text, errors


def _parse_json(text: str) -> dict[str, Any]:
    """Return the document of a JSON form.

    Raises:
        ParseError: it is another form, or no JSON.
    """
    for pattern, form in _FORMS:
        if pattern.match(text.lstrip()):
            raise ParseError(f"this is {form}: {_JSON0_ADVICE}")
    try:
        # json0 prints the byte 0x1F unescaped, which strict reading refuses.
        document = json.loads(text, strict=False)
    except json.JSONDecodeError as error:
        excerpt = text[max(error.pos - 20, 0) : error.pos + 40]
        problem = f"no JSON ({error.msg}): {_JSON0_ADVICE}"
        raise ParseError(problem, line=error.lineno, excerpt=excerpt) from error
    except (ValueError, RecursionError) as error:
        raise ParseError(f"no JSON of lldpcli: {_JSON0_ADVICE}", excerpt=text[:80]) from error
    if not isinstance(document, dict):
        raise ParseError(f"expected an object with lldp: {_JSON0_ADVICE}", excerpt=text[:80])
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
        interfaces = [found for part in root if isinstance(part, dict) for found in _items(part)]
        return "json0", [
            (found.get("name") if isinstance(found, dict) else None, found) for found in interfaces
        ]
    if isinstance(root, dict):
        return "json", [
            pair
            for found in _items(root)
            for pair in (found.items() if isinstance(found, dict) else [(None, found)])
        ]
    raise ParseError(f"no lldp: expected `show neighbors details`, {_JSON0_ADVICE}")


def _items(part: dict[str, Any]) -> list[Any]:
    found = part.get("interface", [])
    return found if isinstance(found, list) else [found]


def _neighbor(name: object, entry: object) -> Neighbor | None:
    """Return one neighbor; None for a port of which only VLANs are told.

    Raises:
        ParseError: the entry names no port or no chassis.
    """
    if not isinstance(name, str) or not 0 < len(name) <= _MAX_PORT_NAME:
        raise ParseError("neighbor entry without a port name")
    if not isinstance(entry, dict):
        raise ParseError("neighbor entry is no object", excerpt=name)
    if "chassis" not in entry and "port" not in entry:
        return None
    try:
        chassis = _chassis(entry.get("chassis"))
    except ParseError as refused:
        raise ParseError(refused.problem, excerpt=name) from refused
    found = _first(entry.get("port"))
    port = found if isinstance(found, dict) else {}
    return Neighbor(
        device_ids=_device_ids(chassis.fields),
        device_name=chassis.name,
        port_ids=port_ids(_sent_id(port)),
        port_name=port_name(_sent_id(port), _text(port, "descr")),
        source=_SOURCES.get(_text(entry, "via"), Source.OTHER),
        ttl_s=_ttl_s(port) if "ttl" in port else _ttl_s(chassis.fields),
    )


def _chassis(found: object) -> _Chassis:
    """Return a chassis of either form: json0's list, or json's `{NAME: {…}}`.

    In json a chassis without a name is `{"id": {"type": …}, …}` itself.

    Raises:
        ParseError: there is none, or several, which a crafted name in json can bring about.
    """
    if isinstance(found, list):
        fields = _first(found)
        if isinstance(fields, dict):
            return _Chassis(_text(fields, "name"), fields)
        raise ParseError("neighbor without a chassis")
    if not isinstance(found, dict) or not found:
        raise ParseError("neighbor without a chassis")
    own_id = found.get("id")
    if isinstance(own_id, dict) and "type" in own_id:
        return _Chassis("", found)
    if len(found) > 1:
        raise ParseError("neighbor with several chassis, forged by a name")
    name, fields = next(iter(found.items()))
    if not isinstance(fields, dict):
        raise ParseError("chassis is no object")
    return _Chassis(_replace_surrogates(name), fields)


def _device_ids(fields: dict[str, Any]) -> tuple[Id, ...]:
    return chassis_ids(_sent_id(fields), _texts(fields, "mgmt-ip"))


def _sent_id(fields: dict[str, Any]) -> SentId:
    found = _first(fields.get("id"))
    if not isinstance(found, dict):
        return SentId("", "")
    return SentId(_text(found, "type"), _text(found, "value"))


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
    found = fields.get(key)
    items = found if isinstance(found, list) else [found]
    leaves = (item.get("value") if isinstance(item, dict) else item for item in items)
    return [_replace_surrogates(leaf) for leaf in leaves if isinstance(leaf, str)]


def _replace_surrogates(text: object) -> str:
    """Return text that can be encoded: JSON escapes may spell half a character."""
    return _SURROGATES.sub("\ufffd", str(text))
