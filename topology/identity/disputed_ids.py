"""Find the ids that a wrong device may claim: a few of half a million, by arrays of hashes.

`quarantine` checks only these ids and decides which device is right. A superfluous
id costs time; a missing id lets a wrong claim pass. The result therefore holds every id that may be
disputed, as a 64-bit hash.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from topology.model.claims import Claim, Key, Origin, claim_keys, strong_key
from topology.model.facts import Device, DeviceKind, Neighbor
from topology.model.ids import IdKind, short_name

MIN_HOSTS: Final = 2
"""A host's id belongs to a switch if at least this many other nodes hear it and the host hears none
of them."""
_Hashes = NDArray[np.int64]


@dataclass(slots=True)
class _IdRows:
    """Ids by the hash of their key, and the number of each device that mentions them; 64 bits."""

    keys: array[int] = field(default_factory=lambda: array("q"))
    claimants: array[int] = field(default_factory=lambda: array("q"))

    def add_all(self, keys: Collection[Key], speaker: str | int) -> None:
        self.keys.extend(map(hash, keys))
        self.claimants.extend([hash(speaker)] * len(keys))

    def find_repeated(self) -> _Hashes:
        """Return the ids that two or more speakers mention."""
        keys, speakers = np.array(self.keys, np.int64), np.array(self.claimants, np.int64)
        order = np.lexsort((speakers, keys))
        keys, speakers = keys[order], speakers[order]
        is_shared = (keys[1:] == keys[:-1]) & (speakers[1:] != speakers[:-1])
        repeated: _Hashes = np.unique(keys[1:][is_shared])
        return repeated


def find_disputed_hashes(claims: Sequence[Claim]) -> frozenset[int]:
    """Return the hashes of all keys that may be disputed, and some more.

    These are keys that two devices claim, keys of both a host and a swept switch, keys of a host
    that the host itself hears, keys of a host that two nodes hear, and keys that the inventory
    lists for one node and a sweep describes as another. Cost: O(n log n) in ids and neighbors, 2 µs
    each; 16 bytes each.
    """
    claimed, heard, described = _IdRows(), _IdRows(), _IdRows()
    listed_names: set[str] = set()
    of_hosts, swept, own_ids = array("q"), array("q"), set[int]()
    for claim_number, claim in enumerate(claims):
        device = claim.device
        if claim.origin is Origin.SWEEP:
            is_switch = device.kind is DeviceKind.SWITCH
            name = short_name(device.name) if not is_switch and device.name else ""
            if is_switch:
                swept.extend(map(hash, claim_keys(device)))
            elif name in listed_names:
                described.add_all(claim_keys(device), name)
            continue
        keys = [key for key in claim_keys(device) if key[0] != IdKind.NODE_NAME]
        claimant = claimant_of(device, claim_number)
        if claimant is not None:
            claimed.add_all(keys, claimant)
            if claim.origin is Origin.INVENTORY:
                listed_names.add(short_name(claimant))
                described.add_all(keys, short_name(claimant))
        neighbor_ids = {
            key
            for port in device.ports
            for neighbor in port.neighbors
            for key in neighbor_keys(neighbor)
        }
        own_ids.update(map(hash, neighbor_ids.intersection(keys)))
        if device.kind is DeviceKind.HOST:
            of_hosts.extend(map(hash, keys))
        if node_of(device) is not None:
            heard.add_all(neighbor_ids, claim_number)
    contested = np.concatenate([heard.find_repeated(), np.array(swept, np.int64)])
    mixed = np.intersect1d(np.array(of_hosts, np.int64), contested)
    repeated = [claimed.find_repeated(), described.find_repeated(), mixed]
    return frozenset(np.concatenate(repeated).tolist()) | own_ids


def claimant_of(device: Device, claim_number: int) -> str | None:
    """Return the claimant's name; None if the claim may be about a node with another claim."""
    node = node_of(device)
    if node is not None or device.kind is not DeviceKind.SWITCH:
        return node
    return f"{device.name or 'switch'}\0{claim_number}"


def node_of(device: Device) -> str | None:
    """Return the first node name among the ids of a device."""
    return next(
        (identifier.value for identifier in device.ids if identifier.kind is IdKind.NODE_NAME),
        None,
    )


def neighbor_keys(neighbor: Neighbor) -> Iterator[Key]:
    """Yield the strong keys in a neighbor entry."""
    for identifier in (*neighbor.device_ids, *neighbor.port_ids):
        key = strong_key(identifier)
        if key is not None:
            yield key
