"""Neighbor entries to devices: whom each speaks of, and who is known from such entries alone.

Strong ids decide; a name alone only where the entry has no strong id of its own. An entry is plain
where nothing but its own ids and the claims decide it, so that it says the same whatever entries
come before it or go.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from topology.identity.device_kinds import BY_MAC, BY_NAME, UNKNOWN_STYLE
from topology.identity.device_resolution import AMBIGUOUS, Entity, Identities
from topology.join.port_numbers import select_best_source, sort_ports, port_keys
from topology.model.claims import Key, strong_key
from topology.model.errors import show
from topology.model.fabric_columns import UNKNOWN_RATE
from topology.model.facts import Device, DeviceKind, Neighbor, Port, Source
from topology.model.ids import Id, IdKind, short_name

Mention: TypeAlias = tuple[tuple[Id, ...], str, DeviceKind]
"""All that an entry tells of a device that makes no claim."""


@dataclass(slots=True)
class NeighborEntries:
    """All neighbor entries that count, in the order of those who hear; one row each.

    Numbers alone: what an entry says is asked of its claim again where it matters.
    """

    devices: array[int] = field(default_factory=lambda: array("i"))
    """The entity that hears; ascending."""
    ports: array[int] = field(default_factory=lambda: array("i"))
    """Running number of the hearing port over all claims."""
    peers: array[int] = field(default_factory=lambda: array("i"))
    """The entity heard."""
    rates: array[int] = field(default_factory=lambda: array("q"))
    """Of the hearing port by its claim."""
    is_independent: bytearray = field(default_factory=bytearray)
    is_swept: bytearray = field(default_factory=bytearray)
    """Whether a sweep tells them."""
    styles: bytearray = field(default_factory=bytearray)
    """How the peer names its port."""
    key_stops: array[int] = field(default_factory=lambda: array("i"))
    """Where the keys of each end."""
    keys: array[int] = field(default_factory=lambda: array("q"))
    """Hashes of the names of the port heard, strongest first."""

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.devices)

    def add(self, heard: PortNeighbor, peer: int, *, is_plain: bool) -> None:
        """Take in an entry that speaks of a device."""
        neighbor, rate = heard.neighbor, heard.rate_bps
        self.devices.append(heard.device)
        self.ports.append(heard.port)
        self.peers.append(peer)
        self.rates.append(UNKNOWN_RATE if rate is None else rate)
        self.is_independent.append(is_plain)
        self.is_swept.append(neighbor.source is Source.IB)
        self.styles.append(encode_style(port_name_style(neighbor)))
        self.keys.extend(map(hash, port_keys(neighbor.port_ids, neighbor.port_name)))
        self.key_stops.append(len(self.keys))

    def forget_names(self) -> None:
        """Keep no names of ports: they were looked up."""
        del self.keys[:], self.key_stops[:]

    def keys_of(self, at: int) -> array[int]:
        """Return the hashes of the names of the port that an entry speaks of."""
        return self.keys[self.key_stops[at - 1] if at else 0 : self.key_stops[at]]


class PortNeighbor(NamedTuple):
    """One entry as its port has it."""

    device: int
    port: int
    rate_bps: int | None
    neighbor: Neighbor


def neighbor_entries(devices: Iterable[Device]) -> Iterator[tuple[Port, Sequence[Neighbor]]]:
    """Yield the ports of what claims say of a device, and the entries of each that count."""
    for device in devices:
        for port in sort_ports(device.ports):
            yield port, select_best_source(port.neighbors)


def port_name_style(heard: Neighbor) -> str:
    """Return how a neighbor names its port."""
    return next((one.subtype for one in heard.port_ids if one.kind is IdKind.PORT_ID), "")


def encode_style(style: str) -> int:
    """Return how a device names its port as a number, see `kinds`."""
    return UNKNOWN_STYLE if not style else BY_MAC if style == "mac" else BY_NAME


@dataclass(slots=True)
class NeighborResolver:
    """All entries of a fabric, resolved in the order of the devices that make claims."""

    identities: Identities
    num_claimed: int
    """Entities that make claims; later ones are only heard of."""
    mentioned_keys: set[Key] = field(default_factory=set)
    """Keys that an entry added to a device which makes claims."""
    mentions: dict[int, Mention] = field(default_factory=dict)
    """By entity that is only heard of what the first entry told."""
    inconsistent: set[int] = field(default_factory=set)
    """Entities only heard of, of which entries tell different things."""

    def resolve_all(self) -> NeighborEntries:
        """Return every entry that counts; LLDP wins over CDP and the like."""
        found = NeighborEntries()
        number = 0
        for at in range(self.num_claimed):
            claims = self.identities.entities[at].claims
            for port, entries in neighbor_entries(claim.device for claim in claims):
                number += 1
                for heard in entries:
                    peer, is_plain = self._resolve(heard)
                    found.add(
                        PortNeighbor(at, number, port.rate_bps, heard), peer, is_plain=is_plain
                    )
        return found

    def _resolve(self, heard: Neighbor) -> tuple[int, bool]:
        owner = self.identities.owner
        keys = [key for one in heard.device_ids if (key := strong_key(one))]
        for key in keys:
            at = owner.get(hash(key), AMBIGUOUS)
            if at != AMBIGUOUS:
                if at >= self.num_claimed:
                    return at, self._is_like_first(at, heard)
                return at, key is keys[0] and key not in self.mentioned_keys
        for one in heard.port_ids:
            port_key = strong_key(one)
            at = owner.get(hash(port_key), AMBIGUOUS) if port_key else AMBIGUOUS
            if at != AMBIGUOUS:
                return self._learn(at, keys, heard), False
        named = self.identities.by_name.get(short_name(heard.device_name), AMBIGUOUS)
        if named != AMBIGUOUS and (not keys or not self._has_strong_id(named)):
            return self._learn(named, keys, heard), False
        return self._mention(keys, heard)

    def _is_like_first(self, at: int, heard: Neighbor) -> bool:
        if self.mentions.get(at) == build_mention(heard):
            return True
        self.inconsistent.add(at)
        return False

    def _learn(self, at: int, keys: Sequence[Key], heard: Neighbor) -> int:
        for key in keys:
            self.identities.owner.setdefault(hash(key), at)
        self.mentioned_keys.update(keys)
        self.identities.entities[at].heard_ids.update(heard.device_ids)
        if at >= self.num_claimed:
            self.inconsistent.add(at)
        return at

    def _mention(self, keys: Sequence[Key], heard: Neighbor) -> tuple[int, bool]:
        owner = self.identities.owner
        name = show(heard.device_name)
        weak = [("chassis", f"{one.subtype}:{one.value}") for one in heard.device_ids]
        known = list(keys) or weak or [("name", short_name(name))]
        is_shared = all(owner.get(hash(key)) == AMBIGUOUS for key in known)
        if is_shared:
            known = [("shared", f"{key[0]} {key[1]} {short_name(name)}") for key in known]
        for key in known:
            at = owner.get(hash(key))
            if at is not None and at != AMBIGUOUS:
                return at, self._is_like_first(at, heard) and not is_shared
        entity = Entity(kind=heard.kind, names=[name] if name else [], is_mention=True)
        entity.heard_ids.update(heard.device_ids)
        self.identities.entities.append(entity)
        at = len(self.identities.entities) - 1
        for key in known:
            owner.setdefault(hash(key), at)
        self.mentions[at] = build_mention(heard)
        return at, not is_shared

    def _has_strong_id(self, at: int) -> bool:
        return any(
            strong_key(one)
            for one in self.identities.entities[at].ids
            if one.kind is not IdKind.NODE_NAME
        )


def build_mention(heard: Neighbor) -> Mention:
    """Return all that an entry tells of the device that it speaks of."""
    return heard.device_ids, heard.device_name, heard.kind
