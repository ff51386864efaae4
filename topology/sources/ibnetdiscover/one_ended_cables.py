"""The cables of a sweep, as devices, that only one of their two records lists. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from topology.model.facts import Device
from topology.model.ids import Id


class OneEndedCables(NamedTuple):
    """How many cables of a sweep have only one record."""

    num_ends: int
    """Ends of cables in all records."""
    num_unknown: int
    """Ends whose other device has no record."""
    num_missing: int
    """Ends whose other device is the last one in the text, which does not list the cable."""
    has_other_rate: bool
    """Whether the last device lists a cable with another rate than its other end does."""


class _SeenEnd(NamedTuple):
    """One end of a cable, as the record of this end reports it."""

    own: tuple[Id, ...]
    far: tuple[Id, ...]
    rate_bps: int | None
    device_ids: tuple[Id, ...]
    far_device_ids: tuple[Id, ...]


def has_both_ends(devices: Iterable[Device]) -> bool:
    """Return whether there are cables and both records list each of them, as in a whole sweep.

    Compares one sum over all ends with the same sum over the ends read from their other side, so
    that it takes no memory. False may also mean that the two records spell a port differently.
    """
    total, num_ends = 0, 0
    for device in devices:
        for port in device.ports:
            for neighbor in port.neighbors:
                own, far = port.ids[:1], neighbor.port_ids[:1]
                total ^= hash((own, far)) ^ hash((far, own))
                num_ends += 1
    return num_ends > 0 and total == 0


def count_one_ended_cables(devices: Iterable[Device], last_guid: str) -> OneEndedCables:
    """Return how many cables have only one record. Cost: O(ports), without memory if it is none.

    Args:
        devices: all devices of a sweep.
        last_guid: GUID of the last device in the text.
    """
    known: set[Id] = set()
    ends: list[_SeenEnd] = []
    for device in devices:
        known.update(device.ids)
        for port in device.ports:
            known.update(port.ids)
            ends += (
                _SeenEnd(
                    port.ids, neighbor.port_ids, port.rate_bps, device.ids, neighbor.device_ids
                )
                for neighbor in port.neighbors
            )
    rates = {(own, far): end.rate_bps for end in ends for own in end.own for far in end.far}
    num_unknown = num_missing = 0
    has_other_rate = False
    for end in ends:
        pairs = [(far, own) for far in end.far for own in end.own if (far, own) in rates]
        if pairs and _has_guid(end.device_ids, last_guid):
            has_other_rate |= all(rates[pair] != end.rate_bps for pair in pairs)
        elif not pairs and known.isdisjoint(end.far_device_ids):
            num_unknown += 1
        elif not pairs:
            num_missing += _has_guid(end.far_device_ids, last_guid)
    return OneEndedCables(len(ends), num_unknown, num_missing, has_other_rate=has_other_rate)


def _has_guid(ids: Iterable[Id], guid: str) -> bool:
    return any(id_.value == guid for id_ in ids)
