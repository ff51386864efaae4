"""One report replaced by another: the same fabric as joining all claims again, at far less cost.

For reports of the same device with the same ports, where only neighbors, port states and rates
differ. Returns None if a change may affect more than the device's own cables.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from topology.incremental.device_update import (
    NEW_ROW,
    CableEnds,
    DeviceUpdate,
    FabricUpdate,
    NeighborSlot,
    apply_device_update,
)
from topology.incremental.neighbor_update import NeighborUpdate, NeighborUpdater
from topology.join.claim_join import JoinedFabric
from topology.join.neighbor_links import NO_PORT, NeighborRows
from topology.join.numbered_ports import KeyIndex
from topology.join.port_numbers import (
    PortNumbers,
    find_own_port,
    find_port,
    index_port,
    port_keys,
    select_best_source,
    sort_ports,
    unpack_keys,
)
from topology.model.claims import Claim, Origin, claim_keys
from topology.model.fabric import FabricPort
from topology.model.fabric_columns import Index
from topology.model.facts import Device, Neighbor


class ClaimChange(NamedTuple):
    """The old and the new claim of one report."""

    old: Claim
    new: Claim


def find_claim(joined: JoinedFabric, claim: Claim, device: Device) -> tuple[int, int] | None:
    """Return (device, index among its claims) of a report's claim; None if it lost an ID."""
    keys = claim_keys(device)
    number = joined.keys.find(keys[0]) if keys else NO_PORT
    claims = joined.claims[number] if number >= 0 else ()
    indexes = (claim_index for claim_index, candidate in enumerate(claims) if candidate == claim)
    return next(((number, claim_index) for claim_index in indexes), None)


def update_fabric(joined: JoinedFabric, change: ClaimChange) -> FabricUpdate | None:
    """Return the fabric with one report changed; None if all claims have to be joined again.

    Equal to joining all claims. Cost: O(ports of the device), and copies of the arrays.
    """
    old, new = change.old.device, change.new.device
    position = find_claim(joined, change.old, old)
    are_reports = change.old.origin is change.new.origin is Origin.REPORT
    if position is None or not are_reports or not _has_same_ports(old, new):
        return None
    device, claim_index = position
    is_contested = any(key in joined.contested_keys for key in claim_keys(old))
    if is_contested or _may_settle(joined, device):
        return None
    claims = joined.claims[device]
    claims = (*claims[:claim_index], change.new, *claims[claim_index + 1 :])
    updater = _FabricUpdater(joined, device, claims)
    removed = updater.match_slots(claim_index, new)
    if removed is None:
        return None
    removed_rows, old_entries = removed
    new_entries = [slot.neighbor for slot in updater.slots if slot.row == NEW_ROW]
    neighbor_update = NeighborUpdater(joined, device).resolve(
        removed_rows, old_entries, new_entries
    )
    if neighbor_update is None or _names_unsettled(joined, neighbor_update):
        return None
    if not updater.resolve_ends(neighbor_update):
        return None
    return apply_device_update(
        joined,
        DeviceUpdate(device, claims, updater.facts, updater.slots, updater.ends),
        neighbor_update,
    )


def _may_settle(joined: JoinedFabric, device: int) -> bool:
    """Return whether the entries of a device may change which descriptions are of one device."""
    if device in joined.unsettled or device in joined.loose:
        return True
    rows = joined.neighbor_rows
    viewers = rows.device[rows.peer == device] if joined.loose else ()
    return not joined.loose.isdisjoint(viewers)


def _names_unsettled(joined: JoinedFabric, update: NeighborUpdate) -> bool:
    """Return whether a changed entry is about a device that entries join with others."""
    removed = joined.neighbor_rows.peer[list(update.removed_rows)].tolist()
    return not joined.unsettled.isdisjoint((*update.peers, *removed))


def _has_same_ports(old_device: Device, new_device: Device) -> bool:
    """Return whether two reports are of one device with the same ports."""
    return (
        (old_device.kind, old_device.name, old_device.ids, old_device.model)
        == (new_device.kind, new_device.name, new_device.ids, new_device.model)
        and len(old_device.ports) == len(new_device.ports)
        and all(
            old_port is new_port
            or (old_port.name, old_port.ids, old_port.medium)
            == (new_port.name, new_port.ids, new_port.medium)
            for old_port, new_port in zip(old_device.ports, new_device.ports, strict=True)
        )
    )


@dataclass(slots=True)
class _FabricUpdater:
    joined: JoinedFabric
    device: int
    claims: tuple[Claim, ...]
    """The claims about the device, including the new one."""
    slots: list[NeighborSlot] = field(default_factory=list)
    """The neighbor entries of the device, in row order."""
    ends: list[CableEnds] = field(default_factory=list)
    """The cables of the new entries."""
    facts: list[FabricPort] = field(default_factory=list)
    """The device's ports."""

    @property
    def _rows(self) -> NeighborRows:
        return self.joined.neighbor_rows

    def match_slots(self, claim_index: int, new: Device) -> tuple[list[int], list[Neighbor]] | None:
        """Fill the slots; return the indexes and the entries of the removed rows.

        Return None if a changed port has several neighbors: then its other entries matter too.
        """
        row = int(np.searchsorted(self._rows.order, self.joined.entity_numbers[self.device]))
        removed_rows: list[int] = []
        old_entries: list[Neighbor] = []
        for number, claim in enumerate(self.joined.claims[self.device]):
            old = claim.device
            ports = new.ports if number == claim_index else old.ports
            for old_port, new_port in zip(sort_ports(old.ports), sort_ports(ports), strict=True):
                old_neighbors, new_neighbors = (
                    list(select_best_source(old_port.neighbors)),
                    list(select_best_source(new_port.neighbors)),
                )
                rows = range(row, row + len(old_neighbors))
                row = rows.stop
                if old_neighbors == new_neighbors:
                    self.slots += map(
                        NeighborSlot, rows, [new_port] * len(old_neighbors), old_neighbors
                    )
                    continue
                if max(len(old_neighbors), len(new_neighbors)) > 1:
                    return None
                removed_rows += rows
                old_entries += old_neighbors
                self.slots += (
                    NeighborSlot(NEW_ROW, new_port, neighbor) for neighbor in new_neighbors
                )
        return removed_rows, old_entries

    def resolve_ends(self, neighbor_update: NeighborUpdate) -> bool:
        """Find the cables of the new entries; return whether no other entry is affected."""
        numbers = PortNumbers()
        port_index = numbers.add_device(self.device, [claim.device for claim in self.claims])
        start = self._first_port(self.device)
        self.facts = numbers.ports
        lost_ports = {
            int(self._rows.far[row])
            for row in neighbor_update.removed_rows
            if not self._rows.is_far_claimed[row]
        }
        if not all(self._can_remove(row, lost_ports) for row in neighbor_update.removed_rows):
            return False
        index_by_peer: dict[int, KeyIndex] = {}
        new_slots = (slot for slot in self.slots if slot.row == NEW_ROW)
        for slot, peer in zip(new_slots, neighbor_update.peers, strict=True):
            near_port = find_own_port(port_index, slot.port)
            if near_port is None:
                return False
            if peer not in index_by_peer:
                index_by_peer[peer] = self._index_ports(peer, lost_ports)
            ends = self._find_ends(start + near_port, peer, slot.neighbor, index_by_peer[peer])
            if ends is None:
                return False
            self.ends.append(ends)
        return True

    def _first_port(self, device: int) -> int:
        owners = self._port_devices()[: self.joined.num_claimed]
        return int(np.searchsorted(owners, device))

    def _port_devices(self) -> Index:
        columns = self.joined.fabric.columns
        return columns.port_devices if columns is not None else np.zeros(0, np.intp)

    def _index_ports(self, device: int, lost_ports: set[int]) -> KeyIndex:
        """Return the keys of all ports of a device, without the lost ports."""
        start = self._first_port(device)
        claims = (claim.device for claim in self.joined.claims[device])
        claimed = PortNumbers().add_device(device, claims)
        port_index = {
            hash(key): port + start if port >= 0 else port for key, port in claimed.items()
        }
        first = self.joined.num_claimed
        for port in np.flatnonzero(self._port_devices()[first:] == device).tolist():
            if port + first not in lost_ports:
                index_port(port_index, port + first, unpack_keys(self.joined.added_keys[port]))
        return port_index

    def _can_remove(self, row: int, lost_ports: set[int]) -> bool:
        """Return whether no other entry depends on a removed one."""
        near_port, far_port = int(self._rows.near[row]), int(self._rows.far[row])
        if near_port == NO_PORT or not self._is_unanswered(far_port):
            return False
        if self._rows.is_far_claimed[row]:
            return True
        if far_port < self.joined.num_claimed or np.count_nonzero(self._rows.far == far_port) > 1:
            return False
        keys = unpack_keys(self.joined.added_keys[far_port - self.joined.num_claimed])
        port_index = self._index_ports(int(self._rows.peer[row]), lost_ports - {far_port})
        return all(port_index.get(key) == far_port for key in keys)

    def _is_unanswered(self, far: int) -> bool:
        """Return whether no entry of a port needs an answer of the device to find its far port."""
        entries_of_port = self._rows.where(np.flatnonzero(self._rows.near == far))
        return not ((entries_of_port.peer == self.device) & ~entries_of_port.is_far_claimed).any()

    def _find_ends(
        self, near_port: int, peer: int, neighbor: Neighbor, port_index: KeyIndex
    ) -> CableEnds | None:
        keys = [hash(key) for key in port_keys(neighbor.port_ids, neighbor.port_name)]
        far_port = find_port(port_index, keys)
        if far_port is not None:
            is_claimed = far_port < self.joined.num_claimed
            return (
                CableEnds(near_port, far_port)
                if is_claimed and self._is_unanswered(far_port)
                else None
            )
        to_near = self._rows.where(np.flatnonzero(self._rows.far == near_port))
        to_peer = self._rows.where(np.flatnonzero(self._rows.peer == peer))
        answers = (to_near.device == peer) & to_near.is_far_claimed
        by_answer = ~to_peer.is_far_claimed & (to_peer.far < self.joined.num_claimed)
        if answers.any() or by_answer.any() or any(key in port_index for key in keys):
            return None
        index_port(port_index, len(self._port_devices()) + len(self.ends), keys)
        return CableEnds(near_port, NO_PORT)
