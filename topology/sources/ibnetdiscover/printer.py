"""Prints devices in the format of `ibnetdiscover`; equal facts give equal text.

The reverse of `parse_ibnetdiscover`, sorted by GUID, without dates and comments. Records cannot
express ports without a link and CAs known by port GUID only; these follow as rows of -p. Fields
that a device does not have (LIDs, vendor) are printed as 0 or omitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from topology.model.errors import InvariantError
from topology.model.facts import Device, DeviceKind, Neighbor, Port, PortState
from topology.model.ids import Id, IdKind
from topology.sources.ibnetdiscover.devices import MAX_PORT
from topology.sources.infiniband.link_rates import RATES_BPS
from topology.sources.infiniband.node_names import (
    AGGREGATION_DEVID,
    AGGREGATION_TEXT,
    describe_host,
    describe_switch,
    host_name,
    switch_name,
)

# GUID and the letter of its kind, which is lower case for a port GUID.
_Key: TypeAlias = tuple[str, str]
_LETTERS: Final = {DeviceKind.SWITCH: "S", DeviceKind.ROUTER: "R"}
_HEADS: Final = {"S": ("Switch", "switchguid"), "H": ("Ca", "caguid"), "R": ("Rt", "rtguid")}
_WORDS: Final = {"S": "SW", "H": "CA", "R": "RT"}
_TOKENS: Final = {rate: token for token, rate in reversed(RATES_BPS.items())}
"""The token of a rate; 40 Gb/s has three, and the first in `RATES_BPS` counts."""


def render_ibnetdiscover(devices: Iterable[Device]) -> str:
    """Return a text that `parse_ibnetdiscover` parses to the same devices.

    The format cannot express these facts, so they are omitted: rates that are not a product of
    lanes and a lane rate, ports whose neighbor has no GUID, and ports without a link of CAs with a
    node GUID. An aggregation node is parsed as one only if the switch with the same system image
    is in the text.

    Raises:
        InvariantError: a device does not have exactly one node GUID or, if it has none, exactly
            one port GUID.
    """
    device_by_key = {_key(device): device for device in devices}
    texts = {key: _description(device) for key, device in device_by_key.items()}
    lines: list[str] = []
    for key in sorted(device_by_key):
        if key[1].isupper():
            lines.extend(_record(device_by_key[key], key, texts))
    for key in sorted(device_by_key):
        lines.extend(_rows(device_by_key[key], key, texts))
    return "\n".join(lines)


def _key(device: Device) -> _Key:
    letter = _letter(device.kind)
    guids = [identifier.value for identifier in device.ids if identifier.kind is IdKind.NODE_GUID]
    if not guids and letter != "S":
        letter = letter.lower()
        guids = [
            identifier.value for identifier in device.ids if identifier.kind is IdKind.PORT_GUID
        ]
    if len(guids) != 1:
        raise InvariantError("expected one node GUID, or one port GUID of a CA or router")
    return guids[0], letter


def _letter(kind: DeviceKind) -> str:
    return _LETTERS.get(kind, "H")


def _description(device: Device) -> str:
    """Return the model if it is a description of the same name, otherwise a new description."""
    if _letter(device.kind) != "H":
        is_same = switch_name(device.model) == device.name
        return device.model if is_same else describe_switch(device.name)
    label = next((port.rdma_device for port in device.ports if port.rdma_device), "") or ""
    name, model_label = host_name(device.model)
    is_same = name == device.name and (model_label == label or not device.ports)
    return device.model if is_same else describe_host(device.name, label)


def _record(device: Device, key: _Key, texts: Mapping[_Key, str]) -> Iterator[str]:
    guid, letter = key
    head, guid_word = _HEADS[letter]
    if device.kind is DeviceKind.AGGREGATION:
        yield f"devid={AGGREGATION_DEVID:#x}"
    for identifier in device.ids:
        if identifier.kind is IdKind.SYSTEM_IMAGE_GUID:
            yield f"sysimgguid=0x{_strip_guid(identifier.value)}"
    yield f"{guid_word}=0x{_strip_guid(guid)}"
    ports = [line for port in device.ports for line in _port_line(port, letter, texts)]
    text = _one_line(texts[key])
    tail = " base port 0 lid 0 lmc 0" if letter == "S" else ""
    yield f'{head}\t{len(ports)} "{letter}-{guid}"\t\t# "{text}"{tail}'
    yield from ports
    yield ""


def _port_line(port: Port, letter: str, texts: Mapping[_Key, str]) -> Iterator[str]:
    number = _port_number(port.ids)
    if number is None:
        return
    guid = _guid(port.ids, IdKind.PORT_GUID)
    own_guid_text = f"({_strip_guid(guid)}) " if guid and letter != "S" else ""
    local = "lid 0 lmc 0 " if letter != "S" else ""
    rate = _TOKENS.get(port.rate_bps or 0, "")
    for neighbor in port.neighbors:
        peer = _guid(neighbor.device_ids, IdKind.NODE_GUID)
        far_number = _port_number(neighbor.port_ids)
        if peer is None or far_number is None:
            continue
        far_letter, far_guid = _letter(neighbor.kind), _guid(neighbor.port_ids, IdKind.PORT_GUID)
        far_guid_text = f"({_strip_guid(far_guid)}) " if far_guid else ""
        text = _one_line(_peer_description(neighbor, (peer, far_letter), texts))
        yield (
            f'[{number}]{own_guid_text}\t"{far_letter}-{peer}"[{far_number}]{far_guid_text}\t\t'
            f'# {local}"{text}" lid 0 {rate}'.rstrip()
        )


def _rows(device: Device, key: _Key, texts: Mapping[_Key, str]) -> Iterator[str]:
    """Yield a row of -p for each port that a record cannot express."""
    guid, letter = key
    if letter in "HR":
        return
    text = _one_line(texts[key])
    for port in device.ports:
        number = _row_number(port.ids, port.name)
        if number is None:
            continue
        start = f"{_WORDS[letter.upper()]} 0 {number} 0x{guid}"
        if not port.neighbors and port.state is PortState.DOWN:
            yield f"{start} ?? ??? '{text}'"
        rate = _row_rate(port.rate_bps)
        for neighbor in port.neighbors:
            far_end = _row_end(neighbor, texts, is_all=letter.islower())
            if far_end:
                yield f"{start} {rate} - {far_end[0]} ( '{text}' - '{far_end[1]}' )"


def _row_end(
    neighbor: Neighbor, texts: Mapping[_Key, str], *, is_all: bool
) -> tuple[str, str] | None:
    """Return the far end of a row and its description, None if a record has the cable."""
    letter = _letter(neighbor.kind)
    is_switch = letter == "S"
    guid = _guid(neighbor.device_ids, IdKind.NODE_GUID if is_switch else IdKind.PORT_GUID)
    number = _row_number(neighbor.port_ids, neighbor.port_name)
    if guid is None or number is None or (is_switch and not is_all):
        return None
    key = (guid, letter if is_switch else letter.lower())
    text = _one_line(_peer_description(neighbor, key, texts))
    return f"{_WORDS[letter]} 0 {number} 0x{guid}", text


def _row_rate(rate_bps: int | None) -> str:
    width, separator, speed = _TOKENS.get(rate_bps or 0, "").partition("x")
    return f"{width}x {speed}" if separator else "?? ???"


def _row_number(ids: Iterable[Id], name: str) -> str | None:
    """Return the number of a port; a port known by its GUID only has the number in its name."""
    number = _port_number(ids) or name.rpartition("/")[2]
    return number if number.isdecimal() and len(number) <= len(str(MAX_PORT)) else None


def _peer_description(neighbor: Neighbor, key: _Key, texts: Mapping[_Key, str]) -> str:
    """Return the peer's own description if it matches the neighbor, otherwise a new description."""
    guid, letter = key
    text = texts.get(key)
    if letter not in "Hh":
        is_same = text is not None and switch_name(text) == neighbor.device_name
        return text if text is not None and is_same else describe_switch(neighbor.device_name)
    is_row = letter == "h"
    if neighbor.kind is DeviceKind.AGGREGATION and (text is None or is_row):
        return AGGREGATION_TEXT
    if is_row and text == AGGREGATION_TEXT:
        text = None
    label = neighbor.port_name.rpartition("/")[0]
    host_and_label = (neighbor.device_name, "" if label == guid else label)
    return (
        text
        if text is not None and host_name(text) == host_and_label
        else describe_host(*host_and_label)
    )


def _port_number(ids: Iterable[Id]) -> str | None:
    return next(
        (identifier.subtype for identifier in ids if identifier.kind is IdKind.NODE_GUID), None
    )


def _guid(ids: Iterable[Id], kind: IdKind) -> str | None:
    return next((identifier.value for identifier in ids if identifier.kind is kind), None)


def _strip_guid(guid: str) -> str:
    """Return a GUID without leading zeros, as the tool prints it outside of quotes."""
    return guid.lstrip("0")


def _one_line(text: str) -> str:
    return text.replace("\n", " ")
