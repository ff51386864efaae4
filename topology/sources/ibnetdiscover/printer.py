"""Devices to text as `ibnetdiscover` prints it, canonical: equal facts give equal text.

The reverse of `parse_ibnetdiscover`, sorted by GUID, without dates and comments. What records
cannot say, which is ports without a link and CAs known by port GUID, follows as rows of -p. What
a device claim does not hold (LIDs, vendor) is printed as 0 or left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from topology.model.errors import InvariantError
from topology.model.facts import Device, DeviceKind, Neighbor, Port, PortState
from topology.model.ids import Id, IdKind
from topology.sources.ibnetdiscover.devices import MAX_PORT
from topology.sources.infiniband.node_names import (
    AGGREGATION_DEVID,
    AGGREGATION_TEXT,
    RATES_BPS,
    describe_host,
    describe_switch,
    host_name,
    switch_name,
)

# GUID and the letter of its kind, which is small where the GUID is a port's.
_Key: TypeAlias = tuple[str, str]
_LETTERS: Final = {DeviceKind.SWITCH: "S", DeviceKind.ROUTER: "R"}
_HEADS: Final = {"S": ("Switch", "switchguid"), "H": ("Ca", "caguid"), "R": ("Rt", "rtguid")}
_WORDS: Final = {"S": "SW", "H": "CA", "R": "RT"}
_TOKENS: Final = {rate: token for token, rate in reversed(RATES_BPS.items())}
"""The token of a rate; of 40 Gb/s, which has three, the first in `RATES_BPS`."""


def render_ibnetdiscover(devices: Iterable[Device]) -> str:
    """Return the text of which `parse_ibnetdiscover` makes the same devices again.

    Rates that are no product of lanes and a lane rate, ports whose neighbor has no GUID, and
    ports of CAs with a node GUID that have no link, have no form in this text and are left out.
    An aggregation node comes back as one only next to the switch whose system image it shares.

    Raises:
        InvariantError: a device with neither one node GUID nor, without any, one port GUID.
    """
    named = {_key(device): device for device in devices}
    texts = {key: _description(device) for key, device in named.items()}
    lines: list[str] = []
    for key in sorted(named):
        if key[1].isupper():
            lines.extend(_record(named[key], key, texts))
    for key in sorted(named):
        lines.extend(_rows(named[key], key, texts))
    return "\n".join(lines)


def _key(device: Device) -> _Key:
    letter = _letter(device.kind)
    guids = [found.value for found in device.ids if found.kind is IdKind.NODE_GUID]
    if not guids and letter != "S":
        letter = letter.lower()
        guids = [found.value for found in device.ids if found.kind is IdKind.PORT_GUID]
    if len(guids) != 1:
        raise InvariantError("expected one node GUID, or one port GUID of a CA or router")
    return guids[0], letter


def _letter(kind: DeviceKind) -> str:
    return _LETTERS.get(kind, "H")


def _description(device: Device) -> str:
    """Return the model where it is a description that tells the same name, else one that does."""
    if _letter(device.kind) != "H":
        is_same = switch_name(device.model) == device.name
        return device.model if is_same else describe_switch(device.name)
    label = next((port.rdma_device for port in device.ports if port.rdma_device), "") or ""
    name, told = host_name(device.model)
    is_same = name == device.name and (told == label or not device.ports)
    return device.model if is_same else describe_host(device.name, label)


def _record(device: Device, key: _Key, texts: Mapping[_Key, str]) -> Iterator[str]:
    guid, letter = key
    head, own = _HEADS[letter]
    if device.kind is DeviceKind.AGGREGATION:
        yield f"devid={AGGREGATION_DEVID:#x}"
    for found in device.ids:
        if found.kind is IdKind.SYSTEM_IMAGE_GUID:
            yield f"sysimgguid=0x{_strip_guid(found.value)}"
    yield f"{own}=0x{_strip_guid(guid)}"
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
    own = f"({_strip_guid(guid)}) " if guid and letter != "S" else ""
    local = "lid 0 lmc 0 " if letter != "S" else ""
    rate = _TOKENS.get(port.rate_bps or 0, "")
    for heard in port.neighbors:
        peer = _guid(heard.device_ids, IdKind.NODE_GUID)
        far = _port_number(heard.port_ids)
        if peer is None or far is None:
            continue
        far_letter, far_guid = _letter(heard.kind), _guid(heard.port_ids, IdKind.PORT_GUID)
        theirs = f"({_strip_guid(far_guid)}) " if far_guid else ""
        text = _one_line(_peer_description(heard, (peer, far_letter), texts))
        yield (
            f'[{number}]{own}\t"{far_letter}-{peer}"[{far}]{theirs}\t\t'
            f'# {local}"{text}" lid 0 {rate}'.rstrip()
        )


def _rows(device: Device, key: _Key, texts: Mapping[_Key, str]) -> Iterator[str]:
    """Yield a row of -p for each port that has no place in a record."""
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
        for heard in port.neighbors:
            far = _row_end(heard, texts, is_all=letter.islower())
            if far:
                yield f"{start} {rate} - {far[0]} ( '{text}' - '{far[1]}' )"


def _row_end(heard: Neighbor, texts: Mapping[_Key, str], *, is_all: bool) -> tuple[str, str] | None:
    """Return the far end of a row and its description, None where a record tells the cable."""
    letter = _letter(heard.kind)
    is_switch = letter == "S"
    guid = _guid(heard.device_ids, IdKind.NODE_GUID if is_switch else IdKind.PORT_GUID)
    number = _row_number(heard.port_ids, heard.port_name)
    if guid is None or number is None or (is_switch and not is_all):
        return None
    key = (guid, letter if is_switch else letter.lower())
    text = _one_line(_peer_description(heard, key, texts))
    return f"{_WORDS[letter]} 0 {number} 0x{guid}", text


def _row_rate(rate_bps: int | None) -> str:
    width, by, speed = _TOKENS.get(rate_bps or 0, "").partition("x")
    return f"{width}x {speed}" if by else "?? ???"


def _row_number(ids: Iterable[Id], name: str) -> str | None:
    """Return a port's number: what knows only its GUID has it in its name."""
    number = _port_number(ids) or name.rpartition("/")[2]
    return number if number.isdecimal() and len(number) <= len(str(MAX_PORT)) else None


def _peer_description(heard: Neighbor, key: _Key, texts: Mapping[_Key, str]) -> str:
    """Return the peer's own description where it tells what this end heard, else one that does."""
    guid, letter = key
    text = texts.get(key)
    if letter not in "Hh":
        is_same = text is not None and switch_name(text) == heard.device_name
        return text if text is not None and is_same else describe_switch(heard.device_name)
    is_row = letter == "h"
    if heard.kind is DeviceKind.AGGREGATION and (text is None or is_row):
        return AGGREGATION_TEXT
    if is_row and text == AGGREGATION_TEXT:
        text = None
    label = heard.port_name.rpartition("/")[0]
    told = (heard.device_name, "" if label == guid else label)
    return text if text is not None and host_name(text) == told else describe_host(*told)


def _port_number(ids: Iterable[Id]) -> str | None:
    return next((found.subtype for found in ids if found.kind is IdKind.NODE_GUID), None)


def _guid(ids: Iterable[Id], kind: IdKind) -> str | None:
    return next((found.value for found in ids if found.kind is kind), None)


def _strip_guid(guid: str) -> str:
    """Return a GUID as the tool prints it outside of quotes."""
    return guid.lstrip("0")


def _one_line(text: str) -> str:
    return text.replace("\n", " ")
