"""Devices to the default form of `ibnetdiscover`, canonical: equal facts give equal text.

The reverse of `parse_ibnetdiscover`, sorted by GUID, without dates and comments. What a device
claim does not hold (LIDs, vendor) is printed as 0 or left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from topology.errors import InvariantError
from topology.facts import Device, DeviceKind, Neighbor, Port
from topology.ids import Id, IdKind
from topology.sources.ibnetdiscover_names import (
    AGGREGATION_DEVID,
    AGGREGATION_TEXT,
    RATES_BPS,
    describe_host,
    describe_switch,
    host_name,
    switch_name,
)

_Key: TypeAlias = tuple[str, str]  # GUID and the letter of its kind
_LETTERS: Final = {DeviceKind.SWITCH: "S", DeviceKind.ROUTER: "R"}
_HEADS: Final = {"S": ("Switch", "switchguid"), "H": ("Ca", "caguid"), "R": ("Rt", "rtguid")}
_TOKENS: Final = {rate: token for token, rate in reversed(RATES_BPS.items())}
"""The token of a rate; of 40 Gb/s, which has three, the first in `RATES_BPS`."""


def render_ibnetdiscover(devices: Iterable[Device]) -> str:
    """Return the text of which `parse_ibnetdiscover` makes the same devices again.

    Rates that are no product of lanes and a lane rate, and ports without a neighbor that has a
    node GUID, have no form in this text and are left out. An aggregation node comes back as one
    only next to the switch whose system image it shares.

    Raises:
        InvariantError: a device without exactly one node GUID.
    """
    records = {(_node_guid(device), _letter(device.kind)): device for device in devices}
    texts = {key: _description(device) for key, device in records.items()}
    lines: list[str] = []
    for key in sorted(records):
        lines.extend(_record(records[key], key, texts))
    return "\n".join(lines)


def _node_guid(device: Device) -> str:
    guids = [found.value for found in device.ids if found.kind is IdKind.NODE_GUID]
    if len(guids) != 1:
        raise InvariantError(f"expected one node GUID, got {len(guids)}")
    return guids[0]


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
            yield f"sysimgguid=0x{_short(found.value)}"
    yield f"{own}=0x{_short(guid)}"
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
    guid = _port_guid(port.ids)
    own = f"({_short(guid)}) " if guid and letter != "S" else ""
    local = "lid 0 lmc 0 " if letter != "S" else ""
    rate = _TOKENS.get(port.rate_bps or 0, "")
    for heard in port.neighbors:
        peer = next((found.value for found in heard.device_ids), None)
        far = _port_number(heard.port_ids)
        if peer is None or far is None:
            continue
        far_letter, far_guid = _letter(heard.kind), _port_guid(heard.port_ids)
        theirs = f"({_short(far_guid)}) " if far_guid else ""
        text = _one_line(_peer_description(heard, (peer, far_letter), texts))
        yield (
            f'[{number}]{own}\t"{far_letter}-{peer}"[{far}]{theirs}\t\t'
            f'# {local}"{text}" lid 0 {rate}'.rstrip()
        )


def _peer_description(heard: Neighbor, key: _Key, texts: Mapping[_Key, str]) -> str:
    """Return the peer's own description where it tells what this end heard, else one that does."""
    text = texts.get(key)
    if key[1] != "H":
        is_same = text is not None and switch_name(text) == heard.device_name
        return text if text is not None and is_same else describe_switch(heard.device_name)
    if text is None and heard.kind is DeviceKind.AGGREGATION:
        return AGGREGATION_TEXT
    label = heard.port_name.rpartition("/")[0]
    told = (heard.device_name, "" if label == key[0] else label)
    return text if text is not None and host_name(text) == told else describe_host(*told)


def _port_number(ids: Iterable[Id]) -> str | None:
    return next((found.subtype for found in ids if found.kind is IdKind.NODE_GUID), None)


def _port_guid(ids: Iterable[Id]) -> str | None:
    return next((found.value for found in ids if found.kind is IdKind.PORT_GUID), None)


def _short(guid: str) -> str:
    """Return a GUID as the tool prints it outside of quotes."""
    return guid.lstrip("0")


def _one_line(text: str) -> str:
    return text.replace("\n", " ")
