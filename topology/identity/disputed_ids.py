"""Which ids may be claimed by the wrong device: few of half a million, told by arrays of hashes.

Who is right is for `quarantine`, which looks at these alone. An id too many costs time, one too
few would be believed: so whatever may be contested is named, and a hash of 64 bits stands for it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from topology.model.claims import Claim, Key, Origin, claim_keys, strong_key
from topology.model.facts import Device, DeviceKind, Neighbor
from topology.model.ids import IdKind

MIN_HOSTS: Final = 2
"""Nodes that hear an id, and that its claimant does not hear, for it to be a switch's."""
_Hashes = NDArray[np.int64]


@dataclass(slots=True)
class _IdRows:
    """Ids by the hash of their key, and who speaks of them, as a number of 64 bits."""

    keys: array[int] = field(default_factory=lambda: array("q"))
    claimants: array[int] = field(default_factory=lambda: array("q"))

    def add(self, key: Key, speaker: int) -> None:
        self.keys.append(hash(key))
        self.claimants.append(speaker)

    def find_repeated(self) -> _Hashes:
        """Return the ids that two or more speak of."""
        keys, speakers = np.array(self.keys, np.int64), np.array(self.claimants, np.int64)
        order = np.lexsort((speakers, keys))
        keys, speakers = keys[order], speakers[order]
        is_shared = (keys[1:] == keys[:-1]) & (speakers[1:] != speakers[:-1])
        found: _Hashes = np.unique(keys[1:][is_shared])
        return found


def find_disputed_hashes(claims: Sequence[Claim]) -> frozenset[int]:
    """Return the hashes of the keys that may be contested, and some more.

    Those that two claim, that a host and a swept switch have, that a host hears itself, and those
    of hosts that two nodes hear. Cost: O(n log n) in ids and neighbors, 2 µs each; 16 bytes each.
    """
    claimed, heard, of_hosts, swept, own = _IdRows(), _IdRows(), array("q"), array("q"), set[int]()
    for at, claim in enumerate(claims):
        device = claim.device
        if claim.origin is Origin.SWEEP:
            is_switch = device.kind is DeviceKind.SWITCH
            swept.extend(map(hash, claim_keys(device) if is_switch else ()))
            continue
        keys = [key for key in claim_keys(device) if key[0] != IdKind.NODE_NAME]
        who = claimant_of(device, at)
        for key in keys if who is not None else ():
            claimed.add(key, hash(who))
        near = {
            key for port in device.ports for one in port.neighbors for key in neighbor_keys(one)
        }
        own.update(map(hash, near.intersection(keys)))
        if device.kind is DeviceKind.HOST:
            of_hosts.extend(map(hash, keys))
        for key in near if node_of(device) is not None else ():
            heard.add(key, at)
    contested = np.concatenate([heard.find_repeated(), np.array(swept, np.int64)])
    mixed = np.intersect1d(np.array(of_hosts, np.int64), contested)
    return frozenset(np.concatenate([claimed.find_repeated(), mixed]).tolist()) | own


def claimant_of(device: Device, at: int) -> str | None:
    """Return who claims; None where a claim may be about a node that has a claim of its own."""
    node = node_of(device)
    if node is not None or device.kind is not DeviceKind.SWITCH:
        return node
    return f"{device.name or 'switch'}\0{at}"


def node_of(device: Device) -> str | None:
    """Return the node that a device says it is."""
    return next((one.value for one in device.ids if one.kind is IdKind.NODE_NAME), None)


def neighbor_keys(near: Neighbor) -> Iterator[Key]:
    """Yield the ids of an entry that join devices."""
    for one in (*near.device_ids, *near.port_ids):
        key = strong_key(one)
        if key is not None:
            yield key
