"""Changed neighbor entries that touch nothing but their own cables: whom they speak of, if so.

Everything else that an entry may bring about (an id that moves, a device that appears or changes
its kind) is for joining all claims anew, and is told by None.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from topology.identity.id_index import NO_DEVICE, SEVERAL_DEVICES
from topology.join.claim_join import JoinedFabric
from topology.join.neighbor_resolution import build_mention, encode_style, port_name_style
from topology.model.claims import Claim, Key, Origin, strong_key
from topology.model.fabric_columns import Index
from topology.model.facts import DeviceKind, Neighbor
from topology.model.ids import IdKind, parse_node_name


class NeighborUpdate(NamedTuple):
    """The entries of one device that changed."""

    device: int
    gone: tuple[int, ...]
    """Places of rows that are no more."""
    peers: tuple[int, ...]
    """Whom the new entries speak of, one each; so is the next."""
    styles: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NeighborUpdater:
    """A fabric in which entries of one device change."""

    joined: JoinedFabric
    device: int

    def resolve(
        self, gone: Sequence[int], olds: Iterable[Neighbor], news: Sequence[Neighbor]
    ) -> NeighborUpdate | None:
        """Return whom new entries speak of; None where more than their cables may change.

        Args:
            gone: places of the rows of the entries that are no more.
            olds: these entries.
            news: those that come.
        """
        rows = self.joined.fetch_rows
        if not all(
            rows.is_independent[at] and int(rows.peer[at]) not in self.joined.inconsistent_mentions
            for at in gone
        ):
            return None
        if any(key in self.joined.contested_keys for heard in olds for key in strong_keys(heard)):
            return None
        peers = [self._peer(heard) for heard in news]
        found = [peer for peer in peers if peer is not None]
        if len(found) < len(peers):
            return None
        styles = tuple(encode_style(port_name_style(heard)) for heard in news)
        reheard = NeighborUpdate(self.device, tuple(gone), tuple(found), styles)
        return reheard if self._keeps_devices(reheard) else None

    def _peer(self, heard: Neighbor) -> int | None:
        keys = [key for one in heard.device_ids if (key := strong_key(one))]
        if not all(self._is_uncontested(key) for key in strong_keys(heard)):
            return None
        peer = self.joined.keys.find(keys[0]) if keys else NO_DEVICE
        if peer == NO_DEVICE:
            is_by_port = not keys and any(map(strong_key, heard.port_ids))
            mention = self.joined.mentions.get(build_mention(heard))
            return None if mention is None or is_by_port else mention
        return None if peer in (SEVERAL_DEVICES, self.device) else peer

    def _is_uncontested(self, key: Key) -> bool:
        """Return whether hearing an id says nothing about whose it is.

        Where nodes hear what a host claims, it may be that of a switch.
        """
        if key in self.joined.contested_keys:
            return False
        owner = self.joined.keys.find(key)
        if owner == SEVERAL_DEVICES:
            return False
        is_switch = _is_switch(self.joined.claims[self.device])
        return owner == NO_DEVICE or is_switch or _is_switch(self.joined.claims[owner])

    def _keeps_devices(self, reheard: NeighborUpdate) -> bool:
        """Return whether all devices stay, of the same kinds and names."""
        rows = self.joined.fetch_rows
        touched = {*reheard.peers, *(int(rows.peer[at]) for at in reheard.gone)}
        return all(self._keeps_device(peer, reheard) for peer in touched)

    def _keeps_device(self, peer: int, reheard: NeighborUpdate) -> bool:
        rows = self.joined.fetch_rows
        before = np.flatnonzero(rows.peer == peer)
        kept = before[~np.isin(before, reheard.gone)]
        come = [
            style for one, style in zip(reheard.peers, reheard.styles, strict=True) if one == peer
        ]
        if not self.joined.claims[peer] and not self._keeps_mention(before, kept, bool(come)):
            return False
        if not self.joined.is_kind_guessed.any():
            return True
        styles = set(rows.style[before].tolist()) - {0}
        if styles != (set(rows.style[kept].tolist()) | set(come)) - {0}:
            return False
        if not self.joined.is_kind_guessed[peer]:
            return True
        was = set(rows.device[before].tolist())
        now = set(rows.device[kept].tolist()) | ({self.device} if come else set())
        return self._is_leaf(peer, was - {peer}) and self._is_leaf(peer, now - {peer})

    def _keeps_mention(self, before: Index, kept: Index, comes: bool) -> bool:  # noqa: FBT001 - one of two counts
        if not len(kept) and not comes:
            return False
        first = int(self.joined.fetch_rows.order[before[0]])
        is_later = int(self.joined.entity_numbers[self.device]) > first
        is_first_kept = len(kept) > 0 and kept[0] == before[0]
        if is_first_kept and (not comes or is_later):
            return True
        # Who is heard of first has a lower number, of which a name may be made.
        return not any("#" in name or "device-" in name for name in _device_names(self.joined))

    def _is_leaf(self, peer: int, viewers: Collection[int]) -> bool:
        """Return whether who hears a device makes a switch of it whatever else is known."""
        by_node = any(_has_node(self.joined.claims[one]) for one in viewers)
        return by_node and (len(viewers) > 1 or peer not in self.joined.on_shared_ports)


def strong_keys(heard: Neighbor) -> Iterator[Key]:
    """Yield the ids of an entry that join devices."""
    for one in (*heard.device_ids, *heard.port_ids):
        key = strong_key(one)
        if key is not None:
            yield key


def _is_switch(claims: Sequence[Claim]) -> bool:
    """Return whether those who speak of a device, but for sweeps, say that it is a switch."""
    own = [claim.device for claim in claims if claim.origin is not Origin.SWEEP]
    return all(one.kind is DeviceKind.SWITCH for one in own) and not _has_node(claims)


def _has_node(claims: Sequence[Claim]) -> bool:
    return any(
        one.kind is IdKind.NODE_NAME and parse_node_name(one.value)
        for claim in claims
        for one in claim.device.ids
    )


def _device_names(joined: JoinedFabric) -> Sequence[str]:
    columns = joined.fabric.columns
    return columns.names if columns is not None else ()
