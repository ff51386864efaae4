"""The ids of the devices of a fabric, from the facts of their claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from topology.identity.claim_facts import MAX_STORED_IDS, HashRows
from topology.identity.device_ids import ClaimedIds
from topology.identity.device_resolution import Entity
from topology.join.claim_columns import NO_SWEEP, ClaimColumns
from topology.model.claims import strong_key
from topology.model.fabric_columns import Flags
from topology.model.ids import Id, IdKind


@dataclass(slots=True)
class DeviceIds:
    """The ids of all devices of a fabric."""

    ids: list[tuple[Id, ...] | ClaimedIds]
    """By device: its ids, sorted."""
    keys: HashRows
    """The strong keys in claims."""
    rows: HashRows
    """The strong ids of devices, without those of their ports."""
    has_shared_image: Flags
    """By device: whether another device has the same system image GUID."""


def index_ids(columns: ClaimColumns, devices: Sequence[Entity]) -> DeviceIds:
    """Return the ids of devices, given in the order of the fabric. Cost: O(n log n) in ids."""
    table = columns.table
    device_of_claim = np.zeros(len(table), np.intp)
    for device, entity in enumerate(devices):
        device_of_claim[entity.numbers] = device
    keys, own_ids, images = (
        table.column(attrgetter(name)) for name in ("keys", "id_keys", "images")
    )
    heard = [(device, entity.heard_ids) for device, entity in enumerate(devices)]
    heard_ids = [(device, found) for device, every in heard for found in every]
    heard_keys = [
        (hash(key), device) for device, found in heard_ids if (key := strong_key(found)) is not None
    ]
    heard_images = [
        (hash(found.value), device)
        for device, found in heard_ids
        if found.kind is IdKind.SYSTEM_IMAGE_GUID
    ]
    return DeviceIds(
        ids=[_store_ids(columns, entity) for entity in devices],
        keys=HashRows(keys.hashes, device_of_claim[keys.speakers]),
        rows=_add_rows(HashRows(own_ids.hashes, device_of_claim[own_ids.speakers]), heard_keys),
        has_shared_image=_find_shared(
            _add_rows(HashRows(images.hashes, device_of_claim[images.speakers]), heard_images),
            len(devices),
        ),
    )


def _add_rows(rows: HashRows, added: Sequence[tuple[int, int]]) -> HashRows:
    """Return rows with more rows, given as (hash, device)."""
    more = np.array(added, np.int64).reshape(-1, 2)
    return HashRows(
        np.concatenate([rows.hashes, more[:, 0]]), np.concatenate([rows.speakers, more[:, 1]])
    )


def _find_shared(images: HashRows, num_devices: int) -> Flags:
    """Return one flag per device: whether another device has the same system image GUID."""
    shared = np.isin(images.hashes, images.find_repeated())
    has_shared_image = np.zeros(num_devices, np.bool_)
    has_shared_image[images.speakers[shared]] = True
    return has_shared_image


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
