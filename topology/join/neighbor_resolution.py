"""Resolve neighbor entries: which device each means, and which devices only entries mention.

Strong ids decide. A name decides only if the entry has no strong id; `same_devices` compares the
names of the others. An entry is independent if only its own ids and the claims decide it, so that
other entries have no effect on it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np

from topology.identity.device_resolution import AMBIGUOUS, Entity, Identities
from topology.join.claim_rows import expand_spans
from topology.join.fabric_rows import FabricRows
from topology.model.claims import Key, strong_key
from topology.model.errors import show
from topology.model.fabric_columns import Flags, Index
from topology.model.facts import DeviceKind, Neighbor
from topology.model.ids import Id, full_name

Mention: TypeAlias = tuple[tuple[Id, ...], str, DeviceKind]
"""All that an entry says about a device without claims: its ids, name and kind."""


class NeighborEntries(NamedTuple):
    """All neighbor entries that count, sorted by the entity that hears; one row per entry."""

    devices: Index
    """The entity that hears; ascending."""
    claims: Index
    """The claim that contains the entry."""
    rows: Index
    """The port row that hears, see `FabricRows`."""
    numbers: Index
    """The number of the entry in `FabricRows`."""
    peers: Index
    """The entity that is heard."""
    is_independent: Flags
    """Whether other entries have no effect on the peer."""

    def renumber(self, numbers: Sequence[int], joined: Collection[int]) -> NeighborEntries:
        """Return the entries after entities were joined, sorted by the entity that hears.

        Args:
            numbers: by old number of an entity: the new number.
            joined: old numbers of the entities that were joined; entries about them depend on
                other entries.
        """
        new_numbers = np.array(numbers, np.intp)
        devices = new_numbers[self.devices]
        is_settled = self.is_independent & ~np.isin(self.peers, list(joined))
        renumbered = self._replace(
            devices=devices, peers=new_numbers[self.peers], is_independent=is_settled
        )
        order = np.argsort(devices, kind="stable")
        return NeighborEntries._make(column[order] for column in renumbered)


@dataclass(slots=True)
class NeighborResolver:
    """Resolves all neighbor entries of a fabric, in the order of the claimed devices."""

    identities: Identities
    num_claimed: int
    """Number of entities with claims; later entities are known only as neighbors."""
    mentioned_keys: set[Key] = field(default_factory=set)
    """Keys that an entry added to a device with claims."""
    mentions: dict[int, Mention] = field(default_factory=dict)
    """By entity known only as a neighbor: what its first entry says about it."""
    inconsistent: set[int] = field(default_factory=set)
    """Entities known only as neighbors that entries describe differently."""
    unsettled: set[int] = field(default_factory=set)
    """Entities that are joined with others, or may be, because of what entries say."""
    loose: set[int] = field(default_factory=set)
    """Entities that are compared with others by their ports."""

    def resolve_all(self, rows: FabricRows) -> NeighborEntries:
        """Return every entry that counts; LLDP wins over CDP and the like.

        An entry whose first strong id only one claimed device has means that device, whatever
        other entries say. The others are resolved one by one, in their order.
        """
        entities = self.identities.entities[: self.num_claimed]
        claims = np.fromiter(chain.from_iterable(entity.numbers for entity in entities), np.intp)
        sizes = rows.columns.num_rows[claims]
        own_rows = expand_spans(rows.first_rows[claims], sizes)
        num_claims = np.fromiter((len(entity.numbers) for entity in entities), np.intp)
        devices = np.repeat(np.repeat(np.arange(len(entities)), num_claims), sizes)
        counts = rows.entry_counts()[own_rows]
        numbers = expand_spans(rows.first_entries()[own_rows], counts)
        peers = rows.find_owners(self.identities.owner)[numbers]
        is_independent = np.ones(len(numbers), np.bool_)
        entry_claims = np.repeat(np.repeat(claims, sizes), counts)
        for index in np.flatnonzero((peers == AMBIGUOUS) | (peers >= self.num_claimed)).tolist():
            neighbor = rows.neighbor(entry_claims.item(index), numbers.item(index))
            peers[index], is_independent[index] = self._resolve(neighbor)
        return NeighborEntries(
            devices=np.repeat(devices, counts),
            claims=entry_claims,
            rows=np.repeat(own_rows, counts),
            numbers=numbers,
            peers=peers,
            is_independent=is_independent,
        )

    def find_inconsistent(self, contested_ids: Collection[Id]) -> set[int]:
        """Return the devices known only as neighbors that entries or hosts describe differently.

        Args:
            contested_ids: ids of devices that hosts described differently before they were limited.
        """
        if not contested_ids:
            return self.inconsistent
        return self.inconsistent | {
            entity_index
            for entity_index in self.mentions
            if not self.identities.entities[entity_index].heard_ids.isdisjoint(contested_ids)
        }

    def _resolve(self, neighbor: Neighbor) -> tuple[int, bool]:
        """Return the entity that an entry means, and whether the entry is independent."""
        owner = self.identities.owner
        keys = [key for identifier in neighbor.device_ids if (key := strong_key(identifier))]
        for key in keys:
            entity_index = owner.get(hash(key), AMBIGUOUS)
            if entity_index != AMBIGUOUS:
                if entity_index >= self.num_claimed:
                    return entity_index, self._is_like_first(entity_index, neighbor)
                return entity_index, key is keys[0] and key not in self.mentioned_keys
        for identifier in neighbor.port_ids:
            port_key = strong_key(identifier)
            entity_index = owner.get(hash(port_key), AMBIGUOUS) if port_key else AMBIGUOUS
            if entity_index != AMBIGUOUS:
                return self._add_heard_ids(entity_index, keys, neighbor), False
        names = self.identities.names
        entity_by_name = self.identities.by_name.get(names.key(neighbor.device_name), AMBIGUOUS)
        if entity_by_name != AMBIGUOUS and not keys and not names.is_loose(neighbor.device_name):
            return self._add_heard_ids(entity_by_name, keys, neighbor), False
        return self._mention(keys, neighbor)

    def _is_like_first(self, entity_index: int, neighbor: Neighbor) -> bool:
        if self.mentions.get(entity_index) == build_mention(neighbor):
            return True
        self.inconsistent.add(entity_index)
        return False

    def _add_heard_ids(self, entity_index: int, keys: Sequence[Key], neighbor: Neighbor) -> int:
        for key in keys:
            self.identities.owner.setdefault(hash(key), entity_index)
        self.mentioned_keys.update(keys)
        self.identities.entities[entity_index].heard_ids.update(neighbor.device_ids)
        if entity_index >= self.num_claimed:
            self.inconsistent.add(entity_index)
        return entity_index

    def _mention(self, keys: Sequence[Key], neighbor: Neighbor) -> tuple[int, bool]:
        """Return the entity without claims that an entry means; a new entity if there is none."""
        owner = self.identities.owner
        name = show(neighbor.device_name)
        weak = [
            ("chassis", f"{identifier.subtype}:{identifier.value}")
            for identifier in neighbor.device_ids
        ]
        mention_keys = list(keys) or weak or [("name", full_name(name))]
        is_shared = all(owner.get(hash(key)) == AMBIGUOUS for key in mention_keys)
        if is_shared:
            mention_keys = [
                ("shared", f"{key[0]} {key[1]} {full_name(name)}") for key in mention_keys
            ]
        for key in mention_keys:
            index = owner.get(hash(key))
            if index is not None and index != AMBIGUOUS:
                return index, self._is_like_first(index, neighbor) and not is_shared
        entity = Entity(kind=neighbor.kind, names=[name] if name else [], is_mention=True)
        entity.heard_ids.update(neighbor.device_ids)
        self.identities.entities.append(entity)
        index = len(self.identities.entities) - 1
        for key in mention_keys:
            owner.setdefault(hash(key), index)
        self.mentions[index] = build_mention(neighbor)
        return index, not is_shared


def build_mention(neighbor: Neighbor) -> Mention:
    """Return all that an entry says about its device: ids, name and kind."""
    return neighbor.device_ids, neighbor.device_name, neighbor.kind
