"""The devices that changed neighbor entries name, if the change affects only the cables.

Returns None for every other effect of an entry (an ID that moves, a device that appears, is removed
or changes its kind): then all claims have to be joined again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from topology.identity.disputed_ids import neighbor_keys
from topology.identity.id_index import NO_DEVICE, SEVERAL_DEVICES
from topology.join.claim_join import JoinedFabric
from topology.join.claim_rows import encode_style
from topology.join.neighbor_resolution import build_mention
from topology.model.claims import Claim, Key, Origin, strong_key
from topology.model.fabric_columns import Index
from topology.model.facts import DeviceKind, Neighbor
from topology.model.ids import IdKind, parse_node_name


class NeighborUpdate(NamedTuple):
    """The changed neighbor entries of one device."""

    device: int
    removed_rows: tuple[int, ...]
    """Indexes of the removed rows."""
    peers: tuple[int, ...]
    """The device that each new entry names."""
    styles: tuple[int, ...]
    """The style of each new entry, as `PeerColumns` has it."""


@dataclass(frozen=True, slots=True)
class NeighborUpdater:
    """Resolves the changed entries of one device in a fabric."""

    joined: JoinedFabric
    device: int

    def resolve(
        self,
        removed_rows: Sequence[int],
        old_entries: Iterable[Neighbor],
        new_entries: Sequence[Neighbor],
    ) -> NeighborUpdate | None:
        """Return the devices that new entries name; None if more than the cables may change.

        Args:
            removed_rows: the row indexes of the removed entries.
            old_entries: the removed entries.
            new_entries: the added entries.
        """
        rows = self.joined.neighbor_rows
        if not all(
            rows.is_independent[row]
            and int(rows.peer[row]) not in self.joined.inconsistent_mentions
            for row in removed_rows
        ):
            return None
        if any(
            key in self.joined.contested_keys
            for neighbor in old_entries
            for key in neighbor_keys(neighbor)
        ):
            return None
        peers = [self._peer(neighbor) for neighbor in new_entries]
        resolved_peers = [peer for peer in peers if peer is not None]
        if len(resolved_peers) < len(peers):
            return None
        styles = tuple(map(encode_style, new_entries))
        neighbor_update = NeighborUpdate(
            self.device, tuple(removed_rows), tuple(resolved_peers), styles
        )
        return neighbor_update if self._keeps_devices(neighbor_update) else None

    def _peer(self, neighbor: Neighbor) -> int | None:
        keys = [key for identifier in neighbor.device_ids if (key := strong_key(identifier))]
        if not all(self._is_uncontested(key) for key in neighbor_keys(neighbor)):
            return None
        peer = self.joined.keys.find(keys[0]) if keys else NO_DEVICE
        if peer >= 0 and self._is_misnamed(peer, neighbor):
            return None
        if peer == NO_DEVICE:
            is_by_port = not keys and any(map(strong_key, neighbor.port_ids))
            mention = self.joined.mentions.get(build_mention(neighbor))
            return None if mention is None or is_by_port else mention
        return None if peer in (SEVERAL_DEVICES, self.device) else peer

    def _is_misnamed(self, peer: int, neighbor: Neighbor) -> bool:
        """Return whether a switch hears a node under another name: its listed id may be wrong."""
        node = self.joined.fabric.devices[peer].node
        is_named = node is not None and bool(neighbor.device_name)
        return (
            is_named
            and self.joined.names.find(neighbor.device_name) != node
            and _is_switch(self.joined.claims[self.device])
        )

    def _is_uncontested(self, key: Key) -> bool:
        """Return whether a neighbor entry with an ID says nothing about the owner of the ID.

        If a host claims an ID that nodes report as a neighbor, the ID may belong to a switch.
        """
        if key in self.joined.contested_keys:
            return False
        owner = self.joined.keys.find(key)
        if owner == SEVERAL_DEVICES:
            return False
        is_switch = _is_switch(self.joined.claims[self.device])
        return owner == NO_DEVICE or is_switch or _is_switch(self.joined.claims[owner])

    def _keeps_devices(self, neighbor_update: NeighborUpdate) -> bool:
        """Return whether no device is added or removed, or changes its kind or name."""
        rows = self.joined.neighbor_rows
        touched = {
            *neighbor_update.peers,
            *(int(rows.peer[row]) for row in neighbor_update.removed_rows),
        }
        return all(self._keeps_device(peer, neighbor_update) for peer in touched)

    def _keeps_device(self, peer: int, neighbor_update: NeighborUpdate) -> bool:
        rows = self.joined.neighbor_rows
        old_rows = np.flatnonzero(rows.peer == peer)
        remaining_rows = old_rows[~np.isin(old_rows, neighbor_update.removed_rows)]
        added_styles = [
            style
            for new_peer, style in zip(neighbor_update.peers, neighbor_update.styles, strict=True)
            if new_peer == peer
        ]
        if not self.joined.claims[peer] and not self._keeps_mention(
            old_rows, remaining_rows, bool(added_styles)
        ):
            return False
        if not self.joined.is_kind_guessed.any():
            return True
        styles = set(rows.style[old_rows].tolist()) - {0}
        if styles != (set(rows.style[remaining_rows].tolist()) | set(added_styles)) - {0}:
            return False
        if not self.joined.is_kind_guessed[peer]:
            return True
        old_viewers = set(rows.device[old_rows].tolist())
        new_viewers = set(rows.device[remaining_rows].tolist()) | (
            {self.device} if added_styles else set()
        )
        return self._is_leaf(peer, old_viewers - {peer}) and self._is_leaf(
            peer, new_viewers - {peer}
        )

    def _keeps_mention(self, old_rows: Index, remaining_rows: Index, is_added: bool) -> bool:  # noqa: FBT001 - stands for a count
        if not len(remaining_rows) and not is_added:
            return False
        first = int(self.joined.neighbor_rows.order[old_rows[0]])
        is_later = int(self.joined.entity_numbers[self.device]) > first
        is_first_kept = len(remaining_rows) > 0 and remaining_rows[0] == old_rows[0]
        if is_first_kept and (not is_added or is_later):
            return True
        # The device that is mentioned first gets a lower number, and a name may contain the number.
        return not any("#" in name or "device-" in name for name in _device_names(self.joined))

    def _is_leaf(self, peer: int, viewers: Collection[int]) -> bool:
        """Return whether the reporting devices alone prove that a device is a switch."""
        by_node = any(_has_node(self.joined.claims[viewer]) for viewer in viewers)
        return by_node and (len(viewers) > 1 or peer not in self.joined.on_shared_ports)


def _is_switch(claims: Sequence[Claim]) -> bool:
    """Return whether all claims about a device except those of sweeps call it a switch."""
    devices = [claim.device for claim in claims if claim.origin is not Origin.SWEEP]
    return all(device.kind is DeviceKind.SWITCH for device in devices) and not _has_node(claims)


def _has_node(claims: Sequence[Claim]) -> bool:
    return any(
        identifier.kind is IdKind.NODE_NAME and parse_node_name(identifier.value)
        for claim in claims
        for identifier in claim.device.ids
    )


def _device_names(joined: JoinedFabric) -> Sequence[str]:
    columns = joined.fabric.columns
    return columns.names if columns is not None else ()
