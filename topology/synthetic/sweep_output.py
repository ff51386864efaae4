"""The output of `ibnetdiscover` for the devices of a fabric that no tool has swept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from topology.model.errors import InvariantError
from topology.model.facts import Device, DeviceKind, Neighbor, Port
from topology.model.ids import Id, IdKind
from topology.sources.ibnetdiscover.printer import print_rows
from topology.sources.ibnetdiscover.rows import (
    HCA,
    NO_GUID,
    RATE_CODES,
    ROUTER,
    SWITCH,
    PortLine,
    SweepRows,
)
from topology.sources.infiniband.node_names import (
    AGGREGATION_DEVID,
    describe_host,
    describe_switch,
    host_name,
    switch_name,
)

_LETTERS: Final = {DeviceKind.SWITCH: SWITCH, DeviceKind.ROUTER: ROUTER}
_Key: TypeAlias = tuple[int, int]
"""Letter and GUID of a node."""


def render_ibnetdiscover(devices: Iterable[Device]) -> str:
    """Return a text that the parser reads as the same devices.

    The format cannot express these facts, so they are omitted: rates that are not a product of
    lanes and a lane rate, ports whose neighbor has no GUID, and ports without a link. An
    aggregation node is parsed as one only if the switch with the same system image is in the text.

    Raises:
        InvariantError: a device does not have exactly one node GUID.
    """
    device_by_key = {_find_key(device): device for device in devices}
    texts = {key: _describe(device) for key, device in device_by_key.items()}
    rows = SweepRows()
    for node, (key, device) in enumerate(device_by_key.items()):
        is_aggregation = device.kind is DeviceKind.AGGREGATION
        image = _find_guid(device.ids, IdKind.SYSTEM_IMAGE_GUID) or NO_GUID
        text = rows.descriptions[_encode(texts[key])]
        facts = (*key, image, AGGREGATION_DEVID if is_aggregation else 0, text)
        for column, number in zip(rows.node_columns(), facts, strict=True):
            column.append(number)
        for port in device.ports:
            for line in _build_lines(port, key[0], texts, rows):
                rows.add_line(node, line)
    return print_rows(rows)


def _find_key(device: Device) -> _Key:
    guids = [id_.value for id_ in device.ids if id_.kind is IdKind.NODE_GUID]
    if len(guids) != 1:
        raise InvariantError("expected one node GUID")
    return _LETTERS.get(device.kind, HCA), int(guids[0], 16)


def _describe(device: Device) -> str:
    """Return the model if it is a description of the same name, otherwise a new description."""
    if device.kind in _LETTERS:
        is_same = switch_name(device.model) == device.name
        return device.model if is_same else describe_switch(device.name)
    label = next((port.rdma_device for port in device.ports if port.rdma_device), "") or ""
    name, model_label = host_name(device.model)
    is_same = name == device.name and (model_label == label or not device.ports)
    return device.model if is_same else describe_host(device.name, label)


def _build_lines(
    port: Port, letter: int, texts: Mapping[_Key, str], rows: SweepRows
) -> Iterator[PortLine]:
    number = _find_number(port.ids)
    own_guid = _find_guid(port.ids, IdKind.PORT_GUID) if letter != SWITCH else None
    for neighbor in port.neighbors:
        peer = _find_guid(neighbor.device_ids, IdKind.NODE_GUID)
        far_number = _find_number(neighbor.port_ids)
        if number is None or peer is None or far_number is None:
            continue
        far_letter = _LETTERS.get(neighbor.kind, HCA)
        text = _describe_peer(neighbor, texts.get((far_letter, peer)))
        yield PortLine(
            number=number,
            own_guid=own_guid or NO_GUID,
            peer_letter=far_letter,
            peer=peer,
            far_number=far_number,
            far_guid=_find_guid(neighbor.port_ids, IdKind.PORT_GUID) or NO_GUID,
            text=rows.descriptions[_encode(text)],
            rate=RATE_CODES.get(port.rate_bps, 0),
        )


def _describe_peer(neighbor: Neighbor, text: str | None) -> str:
    """Return the peer's own description if it matches the neighbor, otherwise a new description."""
    if neighbor.kind in _LETTERS:
        is_same = text is not None and switch_name(text) == neighbor.device_name
        return text if text is not None and is_same else describe_switch(neighbor.device_name)
    label = neighbor.port_name.rpartition("/")[0]
    guid = next((id_.value for id_ in neighbor.device_ids if id_.kind is IdKind.NODE_GUID), "")
    host_and_label = (neighbor.device_name, "" if label == guid else label)
    is_same = text is not None and host_name(text) == host_and_label
    return text if text is not None and is_same else describe_host(*host_and_label)


def _find_number(ids: Iterable[Id]) -> int | None:
    """Return the number of a port, which is the subtype of its node GUID."""
    return next((int(id_.subtype) for id_ in ids if id_.kind is IdKind.NODE_GUID), None)


def _find_guid(ids: Iterable[Id], kind: IdKind) -> int | None:
    return next((int(id_.value, 16) for id_ in ids if id_.kind is kind), None)


def _encode(text: str) -> bytes:
    return text.replace("\n", " ").encode(errors="replace")
