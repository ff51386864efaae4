"""Resolve neighbor entries: which device each means, and which devices only entries mention.

Strong ids decide. A name decides only if the entry has no strong id; `same_devices` compares the
names of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from topology.identity.device_kinds import FORWARDS, STATION
from topology.identity.device_resolution import AMBIGUOUS, Entity, Identities
from topology.join.claim_columns import FabricRows
from topology.join.port_rows import expand_spans
from topology.model.claims import Key, strong_key
from topology.model.errors import show
from topology.model.fabric import Codes, Flags, Numbers
from topology.model.facts import Neighbor
from topology.model.ids import full_name


class NeighborEntries(NamedTuple):
    """All neighbor entries that count, sorted by the entity that hears; one row per entry."""

    devices: Numbers
    """The entity that hears; ascending."""
    claims: Numbers
    """The claim that contains the entry."""
    rows: Numbers
    """The port row that hears, see `FabricRows`."""
    numbers: Numbers
    """The number of the entry in `FabricRows`."""
    peers: Numbers
    """The entity that is heard."""

    def renumber(self, numbers: Sequence[int]) -> NeighborEntries:
        """Return the entries after entities were joined, sorted by the entity that hears.

        Args:
            numbers: the new number of each entity, indexed by its old number.
        """
        new_numbers = np.array(numbers, np.int32)
        devices = new_numbers[self.devices]
        renumbered = self._replace(devices=devices, peers=new_numbers[self.peers])
        order = np.argsort(devices, kind="stable")
        return NeighborEntries._make(column[order] for column in renumbered)


@dataclass(slots=True)
class NeighborResolver:
    """Resolves all neighbor entries of a fabric, in the order of the claimed devices."""

    identities: Identities
    num_claimed: int
    """Number of entities with claims; later entities are known only as neighbors."""

    def resolve_all(self, rows: FabricRows) -> NeighborEntries:
        """Return every entry that counts; LLDP wins over CDP and the like.

        An entry whose first strong id only one claimed device has means that device, whatever
        other entries say. The others are resolved one by one, in their order.
        """
        entities = self.identities.entities[: self.num_claimed]
        claims = np.fromiter(chain.from_iterable(entity.numbers for entity in entities), np.int32)
        sizes = rows.columns.num_rows[claims]
        own_rows = expand_spans(rows.first_rows[claims], sizes)
        num_claims = np.fromiter((len(entity.numbers) for entity in entities), np.intp)
        devices = np.repeat(np.repeat(np.arange(len(entities), dtype=np.int32), num_claims), sizes)
        stops = rows.entry_stops.astype(np.intp)
        starts = stops - np.diff(stops, prepend=0)
        counts = (stops - starts)[own_rows]
        numbers = expand_spans(starts[own_rows], counts)
        peers = rows.find_owners(self.identities.owner)[numbers]
        entry_claims = np.repeat(np.repeat(claims, sizes), counts)
        entry_rows = np.repeat(own_rows, counts)
        is_behind = self._find_devices_behind(rows.styles[numbers], entry_rows, peers)
        for index in np.flatnonzero((peers == AMBIGUOUS) | (peers >= self.num_claimed)).tolist():
            neighbor = rows.neighbor(entry_claims.item(index), numbers.item(index))
            known = self._resolve(neighbor)
            is_node = self.identities.names.key(neighbor.device_name).is_node
            is_described = known is not None and known < self.num_claimed
            is_behind[index] &= not is_described and not is_node
            if not is_behind[index]:
                peers[index] = self._mention(neighbor) if known is None else known
        entries = NeighborEntries(
            devices=np.repeat(devices, counts),
            claims=entry_claims,
            rows=entry_rows,
            numbers=numbers,
            peers=peers,
        )
        if is_behind.any():
            return NeighborEntries._make(column[~is_behind] for column in entries)
        return entries

    def _find_devices_behind(self, styles: Codes, rows: Numbers, peers: Numbers) -> Flags:
        """Return which entries hear a device behind another one, if nothing else describes it.

        The Linux on a SmartNIC and the hypervisor below a node send frames through the port of the
        host, often with one factory id on every card. So a device that a source describes is at the
        end of the cable, and not a device that only neighbors mention. Of two devices that only
        neighbors mention, the one that forwards is there, and not a station.
        """
        is_claimed = (peers != AMBIGUOUS) & (peers < self.num_claimed)
        is_station, is_forwarding = (styles & STATION) != 0, (styles & FORWARDS) != 0
        is_behind: Flags = is_station & np.isin(rows, rows[is_forwarding])
        is_behind |= (is_station | is_forwarding) & np.isin(rows, rows[is_claimed])
        is_behind &= ~is_claimed
        return is_behind

    def _resolve(self, neighbor: Neighbor) -> int | None:
        """Return the entity that an entry means, if it is known."""
        owner = self.identities.owner
        keys = [key for identifier in neighbor.device_ids if (key := strong_key(identifier))]
        for key in keys:
            entity_index = owner.get(hash(key), AMBIGUOUS)
            if entity_index != AMBIGUOUS:
                return entity_index
        for identifier in neighbor.port_ids:
            port_key = strong_key(identifier)
            entity_index = owner.get(hash(port_key), AMBIGUOUS) if port_key else AMBIGUOUS
            if entity_index != AMBIGUOUS:
                return self._add_heard_ids(entity_index, keys, neighbor)
        names = self.identities.names
        entity_by_name = self.identities.by_name.get(names.key(neighbor.device_name), AMBIGUOUS)
        if entity_by_name != AMBIGUOUS and not keys and not names.is_loose(neighbor.device_name):
            return self._add_heard_ids(entity_by_name, keys, neighbor)
        return self._find_mentioned(neighbor)

    def _add_heard_ids(self, entity_index: int, keys: Sequence[Key], neighbor: Neighbor) -> int:
        for key in keys:
            self.identities.owner.setdefault(hash(key), entity_index)
        self.identities.entities[entity_index].heard_ids |= set(neighbor.device_ids)
        return entity_index

    def _find_mentioned(self, neighbor: Neighbor) -> int | None:
        """Return the entity without claims that an entry means, if an earlier entry mentions it."""
        owner = self.identities.owner
        indexes = (owner.get(hash(key), AMBIGUOUS) for key in self._mention_keys(neighbor))
        return next((index for index in indexes if index != AMBIGUOUS), None)

    def _mention(self, neighbor: Neighbor) -> int:
        """Return a new entity, which is known only as a neighbor."""
        name = show(neighbor.device_name)
        self.identities.entities.append(
            Entity(
                kind=neighbor.kind,
                names=(name,) if name else (),
                heard_ids=frozenset(neighbor.device_ids),
                table=self.identities.table,
                is_mention=True,
            )
        )
        index = len(self.identities.entities) - 1
        for key in self._mention_keys(neighbor):
            self.identities.owner.setdefault(hash(key), index)
        return index

    def _mention_keys(self, neighbor: Neighbor) -> Sequence[Key]:
        """Return the keys of a device without claims: ids, or else its name.

        If several devices share every key, each key is joined with the name, which may still tell
        these devices apart.
        """
        owner = self.identities.owner
        name = full_name(show(neighbor.device_name))
        keys = [key for identifier in neighbor.device_ids if (key := strong_key(identifier))]
        keys = keys or [
            ("chassis", f"{identifier.subtype}:{identifier.value}")
            for identifier in neighbor.device_ids
        ]
        keys = keys or [("name", name)]
        if all(owner.get(hash(key)) == AMBIGUOUS for key in keys):
            keys = [("shared", f"{key[0]} {key[1]} {name}") for key in keys]
        return keys
