"""Neighbor entries to devices: whom each speaks of, and who is known from such entries alone.

Strong ids decide; a name alone only where the entry has no strong id of its own. An entry is plain
where nothing but its own ids and the claims decide it, so that it says the same whatever entries
come before it or go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from topology.errors import show
from topology.facts import DeviceKind, Neighbor, Port
from topology.identity import AMBIGUOUS, Entity, Identities, Key, strong_key
from topology.ids import Id, IdKind, short_name
from topology.port_numbers import best_source, in_order

Mention: TypeAlias = tuple[tuple[Id, ...], str, DeviceKind]
"""All that an entry tells of a device that makes no claim."""


class Entry(NamedTuple):
    """One neighbor entry and whom it speaks of."""

    device: int
    """Number of the entity that hears."""
    port: int
    """Running number of the hearing port over all claims."""
    claim_port: Port
    peer: int
    """Number of the entity heard."""
    neighbor: Neighbor
    is_plain: bool


@dataclass(slots=True)
class Hearing:
    """All entries of a fabric, resolved in the order of the devices that make claims."""

    found: Identities
    num_claimed: int
    """Entities that make claims; later ones are only heard of."""
    learned: set[Key] = field(default_factory=set)
    """Keys that an entry added to a device which makes claims."""
    mentions: dict[int, Mention] = field(default_factory=dict)
    """By entity that is only heard of what the first entry told."""
    odd: set[int] = field(default_factory=set)
    """Entities only heard of, of which entries tell different things."""

    def listen(self) -> Iterator[Entry]:
        """Yield every entry that counts; LLDP wins over CDP and the like."""
        number = 0
        for at in range(self.num_claimed):
            for claim in self.found.entities[at].claims:
                for port in in_order(claim.device.ports):
                    number += 1
                    for heard in best_source(port.neighbors):
                        peer, is_plain = self._resolve(heard)
                        yield Entry(at, number, port, peer, heard, is_plain)

    def _resolve(self, heard: Neighbor) -> tuple[int, bool]:
        owner = self.found.owner
        keys = [key for one in heard.device_ids if (key := strong_key(one))]
        for key in keys:
            at = owner.get(key, AMBIGUOUS)
            if at != AMBIGUOUS:
                if at >= self.num_claimed:
                    return at, self._is_like_first(at, heard)
                return at, key is keys[0] and key not in self.learned
        for one in heard.port_ids:
            port_key = strong_key(one)
            at = owner.get(port_key, AMBIGUOUS) if port_key else AMBIGUOUS
            if at != AMBIGUOUS:
                return self._learn(at, keys, heard), False
        named = self.found.by_name.get(short_name(heard.device_name), AMBIGUOUS)
        if named != AMBIGUOUS and (not keys or not self._has_strong_id(named)):
            return self._learn(named, keys, heard), False
        return self._mention(keys, heard)

    def _is_like_first(self, at: int, heard: Neighbor) -> bool:
        if self.mentions.get(at) == mention_of(heard):
            return True
        self.odd.add(at)
        return False

    def _learn(self, at: int, keys: Sequence[Key], heard: Neighbor) -> int:
        for key in keys:
            self.found.owner.setdefault(key, at)
        self.learned.update(keys)
        self.found.entities[at].ids.update(heard.device_ids)
        if at >= self.num_claimed:
            self.odd.add(at)
        return at

    def _mention(self, keys: Sequence[Key], heard: Neighbor) -> tuple[int, bool]:
        owner = self.found.owner
        name = show(heard.device_name)
        weak = [("chassis", f"{one.subtype}:{one.value}") for one in heard.device_ids]
        known = list(keys) or weak or [("name", short_name(name))]
        is_shared = all(owner.get(key) == AMBIGUOUS for key in known)
        if is_shared:
            known = [("shared", f"{key[0]} {key[1]} {short_name(name)}") for key in known]
        for key in known:
            at = owner.get(key)
            if at is not None and at != AMBIGUOUS:
                return at, self._is_like_first(at, heard) and not is_shared
        entity = Entity(kind=heard.kind, names=[name] if name else [], is_mention=True)
        entity.ids.update(heard.device_ids)
        self.found.entities.append(entity)
        at = len(self.found.entities) - 1
        for key in known:
            owner.setdefault(key, at)
        self.mentions[at] = mention_of(heard)
        return at, not is_shared

    def _has_strong_id(self, at: int) -> bool:
        return any(
            strong_key(one)
            for one in self.found.entities[at].ids
            if one.kind is not IdKind.NODE_NAME
        )


def mention_of(heard: Neighbor) -> Mention:
    """Return all that an entry tells of the device that it speaks of."""
    return heard.device_ids, heard.device_name, heard.kind
