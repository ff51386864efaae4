"""The ids of the devices of a fabric, from the facts of their claims."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from topology.identity.claim_facts import MAX_STORED_IDS
from topology.identity.device_ids import ClaimedIds
from topology.identity.device_resolution import Entity
from topology.identity.id_index import KeyTableBuilder
from topology.identity.id_owners import IdRows
from topology.join.claim_columns import NO_SWEEP, ClaimColumns
from topology.model.claims import strong_key
from topology.model.fabric_columns import Flags
from topology.model.ids import Id, IdKind


@dataclass(slots=True)
class DeviceIds:
    """The ids of all devices of a fabric."""

    ids: list[tuple[Id, ...] | ClaimedIds]
    """By device: its ids, sorted."""
    keys: KeyTableBuilder
    """The strong keys in claims."""
    rows: IdRows
    """The strong ids of devices, without those of their ports."""
    has_shared_image: Flags
    """By device: whether another device has the same system image GUID."""


def index_ids(columns: ClaimColumns, devices: Sequence[Entity]) -> DeviceIds:
    """Return the ids of devices, given in the order of the fabric. Cost: O(n log n) in ids."""
    images, keys = _SystemImages(), KeyTableBuilder()
    hashes, owners = array("q"), array("i")
    ids: list[tuple[Id, ...] | ClaimedIds] = []
    facts = columns.table.facts
    for device, entity in enumerate(devices):
        for number in entity.numbers:
            keys.add_hashes(device, facts[number].keys)
            images.add(device, facts[number].images)
            hashes.extend(facts[number].id_keys)
        if entity.heard_ids:
            images.add(device, _image_hashes(entity.heard_ids))
            hashes.extend(hash(key) for found in entity.heard_ids if (key := strong_key(found)))
        owners.extend([device] * (len(hashes) - len(owners)))
        ids.append(_store_ids(columns, entity))
    rows = IdRows(np.array(hashes, np.int64), np.array(owners, np.int32))
    return DeviceIds(ids, keys, rows, images.find_shared(len(devices)))


def _store_ids(columns: ClaimColumns, entity: Entity) -> tuple[Id, ...] | ClaimedIds:
    """Return the sorted ids of a device: stored if they are few, else read from its claims."""
    facts = columns.table.facts
    if sum(facts[number].num_ids for number in entity.numbers) > MAX_STORED_IDS:
        return ClaimedIds(entity.claims, entity.heard_ids)
    ids = set(entity.heard_ids)
    for number in entity.numbers:
        sweep = columns.sweep_of_claim.item(number)
        if sweep == NO_SWEEP:
            ids.update(facts[number].ids)
        else:
            ids.update(columns.sweeps[sweep].ids(columns.node_of_claim.item(number)))
    if len(ids) > MAX_STORED_IDS:
        return ClaimedIds(entity.claims, entity.heard_ids)
    return tuple(sorted(ids))


def _image_hashes(ids: Iterable[Id]) -> list[int]:
    return [hash(found.value) for found in ids if found.kind is IdKind.SYSTEM_IMAGE_GUID]


@dataclass(slots=True)
class _SystemImages:
    """The hashes of the system image GUIDs of devices."""

    images: array[int] = field(default_factory=lambda: array("q"))
    devices: array[int] = field(default_factory=lambda: array("q"))

    def add(self, device: int, images: Sequence[int]) -> None:
        self.images.extend(images)
        self.devices.extend([device] * len(images))

    def find_shared(self, num_devices: int) -> Flags:
        """Return one flag per device: whether another device has the same system image GUID."""
        images, devices = np.array(self.images, np.int64), np.array(self.devices, np.intp)
        rank = np.lexsort((devices, images))
        images, devices = images[rank], devices[rank]
        shares = np.flatnonzero((images[1:] == images[:-1]) & (devices[1:] != devices[:-1]))
        has_shared_image = np.zeros(num_devices, np.bool_)
        has_shared_image[devices[shares]] = has_shared_image[devices[shares + 1]] = True
        return has_shared_image
