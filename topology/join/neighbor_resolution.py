"""Resolve neighbor entries: which device each means, and which devices only entries mention.

Strong ids decide. A name decides only if the entry has no strong id; `same_devices` compares the
names of the others. An entry is independent if only its own ids and the claims decide it, so that
other entries have no effect on it.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from topology.identity.device_kinds import BY_MAC, BY_NAME, UNKNOWN_STYLE
from topology.identity.device_resolution import AMBIGUOUS, Entity, Identities
from topology.join.port_numbers import port_keys, select_best_source, sort_ports
from topology.model.claims import Key, strong_key
from topology.model.errors import show
from topology.model.fabric_columns import UNKNOWN_RATE
from topology.model.facts import Device, DeviceKind, Neighbor, Port, Source
from topology.model.ids import Id, IdKind, short_name

Mention: TypeAlias = tuple[tuple[Id, ...], str, DeviceKind]
"""All that an entry says about a device without claims: its ids, name and kind."""


@dataclass(slots=True)
class NeighborEntries:
    """All neighbor entries that count, sorted by the entity that hears; one row per entry.

    The rows hold only numbers. Code that needs the text of an entry reads its claim again.
    """

    devices: array[int] = field(default_factory=lambda: array("i"))
    """The entity that hears; ascending."""
    ports: array[int] = field(default_factory=lambda: array("i"))
    """Running number of the hearing port over all claims."""
    peers: array[int] = field(default_factory=lambda: array("i"))
    """The entity that is heard."""
    rates: array[int] = field(default_factory=lambda: array("q"))
    """Rate of the hearing port in its claim."""
    is_independent: bytearray = field(default_factory=bytearray)
    """Whether other entries have no effect on the peer."""
    is_swept: bytearray = field(default_factory=bytearray)
    """Whether a sweep reports the entry."""
    styles: bytearray = field(default_factory=bytearray)
    """How the peer identifies its port, see `device_kinds`."""
    key_stops: array[int] = field(default_factory=lambda: array("i"))
    """The end of each entry's keys in `keys`."""
    keys: array[int] = field(default_factory=lambda: array("q"))
    """Hashes of the keys of the port that is heard, strongest first."""

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.devices)

    def add(self, port_neighbor: PortNeighbor, peer: int, *, is_independent: bool) -> None:
        """Add an entry that means the entity `peer`."""
        neighbor, rate = port_neighbor.neighbor, port_neighbor.rate_bps
        self.devices.append(port_neighbor.device)
        self.ports.append(port_neighbor.port)
        self.peers.append(peer)
        self.rates.append(UNKNOWN_RATE if rate is None else rate)
        self.is_independent.append(is_independent)
        self.is_swept.append(neighbor.source is Source.IB)
        self.styles.append(encode_style(port_name_style(neighbor)))
        self.keys.extend(map(hash, port_keys(neighbor.port_ids, neighbor.port_name)))
        self.key_stops.append(len(self.keys))

    def renumber(self, numbers: Sequence[int], joined: Collection[int]) -> NeighborEntries:
        """Return the entries after entities were joined, sorted by the entity that hears.

        Args:
            numbers: by old number of an entity: the new number.
            joined: old numbers of the entities that were joined; entries about them depend on
                other entries.
        """
        renumbered = NeighborEntries()
        for row in sorted(range(len(self)), key=lambda row: numbers[self.devices[row]]):
            renumbered.devices.append(numbers[self.devices[row]])
            renumbered.ports.append(self.ports[row])
            renumbered.peers.append(numbers[self.peers[row]])
            renumbered.rates.append(self.rates[row])
            is_settled = self.is_independent[row] and self.peers[row] not in joined
            renumbered.is_independent.append(is_settled)
            renumbered.is_swept.append(self.is_swept[row])
            renumbered.styles.append(self.styles[row])
            renumbered.keys.extend(self.keys_of(row))
            renumbered.key_stops.append(len(renumbered.keys))
        return renumbered

    def forget_names(self) -> None:
        """Drop the keys of ports: all ports are resolved."""
        del self.keys[:], self.key_stops[:]

    def keys_of(self, row: int) -> array[int]:
        """Return the hashes of the keys of the port that an entry refers to."""
        return self.keys[self.key_stops[row - 1] if row else 0 : self.key_stops[row]]


class PortNeighbor(NamedTuple):
    """One neighbor entry and the port that hears it."""

    device: int
    port: int
    rate_bps: int | None
    neighbor: Neighbor


def neighbor_entries(devices: Iterable[Device]) -> Iterator[tuple[Port, Sequence[Neighbor]]]:
    """Yield the claimed ports of a device, each with its neighbor entries that count."""
    for device in devices:
        for port in sort_ports(device.ports):
            yield port, select_best_source(port.neighbors)


def port_name_style(neighbor: Neighbor) -> str:
    """Return the subtype of the port id that a neighbor sends; empty without a port id."""
    return next(
        (
            identifier.subtype
            for identifier in neighbor.port_ids
            if identifier.kind is IdKind.PORT_ID
        ),
        "",
    )


def encode_style(style: str) -> int:
    """Return the style of a port id subtype: UNKNOWN_STYLE, BY_MAC or BY_NAME."""
    return UNKNOWN_STYLE if not style else BY_MAC if style == "mac" else BY_NAME


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

    def resolve_all(self) -> NeighborEntries:
        """Return every entry that counts; LLDP wins over CDP and the like."""
        resolved = NeighborEntries()
        number = 0
        for entity_index in range(self.num_claimed):
            claims = self.identities.entities[entity_index].claims
            for port, entries in neighbor_entries(claim.device for claim in claims):
                number += 1
                for neighbor in entries:
                    peer, is_independent = self._resolve(neighbor)
                    resolved.add(
                        PortNeighbor(entity_index, number, port.rate_bps, neighbor),
                        peer,
                        is_independent=is_independent,
                    )
        return resolved

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
        entity_by_name = self.identities.by_name.get(short_name(neighbor.device_name), AMBIGUOUS)
        if entity_by_name != AMBIGUOUS and not keys:
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
        mention_keys = list(keys) or weak or [("name", short_name(name))]
        is_shared = all(owner.get(hash(key)) == AMBIGUOUS for key in mention_keys)
        if is_shared:
            mention_keys = [
                ("shared", f"{key[0]} {key[1]} {short_name(name)}") for key in mention_keys
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
