"""Several dumps to one: of one subnet swept twice, of several subnets, of several forms.

Nothing is dropped and no dump wins: a port that two dumps put on different cables hears both far
ends, which `fabric` then tells. What -p knows by a port GUID alone gets the node GUID and port
number that another dump has for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias, TypeVar

from topology.facts import Device, DeviceKind, Neighbor, Parsed, Port, PortState
from topology.ids import Id, IdKind, natural_key

_Ids: TypeAlias = tuple[Id, ...]
_Ends: TypeAlias = dict[Id, Id]
"""Port GUID to node GUID with the port's number."""
_Value = TypeVar("_Value", str, int)


def merge_dumps(dumps: Iterable[Parsed]) -> Parsed:
    """Return the devices of all dumps, each once, sorted by GUID, and all errors in turn.

    The order of dumps does not matter to the devices, nor does a dump that comes twice. Of what
    can be only one, the lower rate counts, a link over none, a name over none, and of two names
    the first in the alphabet. Cost: O(n log n) in ports.
    """
    dumps = list(dumps)
    devices = [device for dump in dumps for device in dump.devices]
    ends = _known_ends(devices)
    claims: dict[tuple[str, Id], list[Device]] = defaultdict(list)
    for device in devices:
        ids = _nodes(device.ids, ends)
        claims[_class(device.kind), ids[0]].append(_translated(device, ids, ends))
    merged = sorted(map(_merge_devices, claims.values()), key=_order)
    return Parsed(tuple(merged), tuple(error for dump in dumps for error in dump.errors))


def _order(device: Device) -> tuple[str, str, str]:
    kind, guid, _ = device.ids[0]
    return guid, kind, _class(device.kind)


def _class(kind: DeviceKind) -> str:
    """Return what a CA is before it is known whether it aggregates."""
    return DeviceKind.HOST if kind is DeviceKind.AGGREGATION else kind


def _known_ends(devices: Iterable[Device]) -> _Ends:
    ends: _Ends = {}
    for device in devices:
        for port in device.ports:
            for ids in (port.ids, *(heard.port_ids for heard in port.neighbors)):
                _learn(ends, ids)
    return ends


def _learn(ends: _Ends, ids: _Ids) -> None:
    """Note which port has a GUID; of two answers the lower, whatever the order."""
    ports = [found for found in ids if found.kind is IdKind.NODE_GUID]
    for guid in (found for found in ids if found.kind is IdKind.PORT_GUID and ports):
        ends[guid] = min(ends.get(guid, ports[0]), ports[0])


def _nodes(ids: _Ids, ends: _Ends) -> _Ids:
    """Return the ids of a device with its node GUID in place of a port's."""
    nodes = {Id(IdKind.NODE_GUID, ends[one].value) if one in ends else one for one in ids}
    return tuple(sorted(nodes))


def _ports(ids: _Ids, ends: _Ends) -> _Ids:
    if any(found.kind is IdKind.NODE_GUID for found in ids):
        return ids
    return tuple(sorted({*ids, *(ends[found] for found in ids if found in ends)}))


def _translated(device: Device, ids: _Ids, ends: _Ends) -> Device:
    ports = (
        port._replace(
            name=_port_name(port.name, device.ids, ids),
            ids=_ports(port.ids, ends),
            neighbors=tuple(_translated_neighbor(heard, ends) for heard in port.neighbors),
        )
        for port in device.ports
    )
    return Device(device.kind, device.name, ids, tuple(ports), device.model)


def _translated_neighbor(heard: Neighbor, ends: _Ends) -> Neighbor:
    ids = _nodes(heard.device_ids, ends)
    return heard._replace(
        device_ids=ids,
        port_ids=_ports(heard.port_ids, ends),
        port_name=_port_name(heard.port_name, heard.device_ids, ids),
    )


def _port_name(name: str, old: _Ids, new: _Ids) -> str:
    """Return the name of a port; the nameless are called by their device's GUID."""
    if not (old and new) or not name.startswith(f"{old[0].value}/"):
        return name
    return new[0].value + name.removeprefix(old[0].value)


def _merge_devices(claims: Sequence[Device]) -> Device:
    by_end: dict[Id, list[Port]] = defaultdict(list)
    for device in claims:
        for port in device.ports:
            by_end[port.ids[0]].append(port)
    best = min(claims, key=lambda one: (not one.name, not one.model, one.name, one.model))
    ports = sorted(map(_merge_ports, by_end.values()), key=lambda port: natural_key(port.name))
    return Device(
        kind=min((device.kind for device in claims), key=_rank),
        name=best.name,
        ids=tuple(sorted({found for device in claims for found in device.ids})),
        ports=tuple(ports),
        model=best.model,
    )


def _rank(kind: DeviceKind) -> tuple[bool, str]:
    """Let what is known to aggregate do so in all dumps."""
    return kind is not DeviceKind.AGGREGATION, kind


def _merge_ports(claims: Sequence[Port]) -> Port:
    named = min(claims, key=lambda port: (port.rdma_device is None, port.name))
    is_up = any(port.state is PortState.UP for port in claims)
    return named._replace(
        ids=tuple(sorted({found for port in claims for found in port.ids})),
        state=PortState.UP if is_up else named.state,
        rate_bps=_lowest(port.rate_bps for port in claims),
        neighbors=tuple(_merge_neighbors(heard for port in claims for heard in port.neighbors)),
    )


def _lowest(values: Iterable[_Value | None]) -> _Value | None:
    return min((value for value in values if value is not None), default=None)


def _merge_neighbors(heard: Iterable[Neighbor]) -> Iterator[Neighbor]:
    """Yield one entry per far port, by its ids."""
    by_end: dict[tuple[_Ids, Id | None], list[Neighbor]] = defaultdict(list)
    for one in heard:
        by_end[one.device_ids, next(iter(one.port_ids), None)].append(one)
    for key in sorted(by_end, key=repr):
        entries = by_end[key]
        best = min(entries, key=lambda one: (_rank(one.kind), not one.device_name, one))
        ids = {found for one in entries for found in one.port_ids}
        yield best._replace(port_ids=tuple(sorted(ids)))
