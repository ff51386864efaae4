"""One report in place of another: the same fabric as joining all claims anew, by far less work.

For reports of the same device with the same ports, which hear other neighbors or are up or down at
another rate. What may touch more than their own cables is told by None.
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
from topology.join.port_numbers import (
    PortIndex,
    PortNumbers,
    select_best_source,
    find_own_port,
    find_port,
    sort_ports,
    index_port,
    port_keys,
)
from topology.model.claims import Claim, Origin, claim_keys
from topology.model.fabric import FabricPort
from topology.model.fabric_columns import Index
from topology.model.facts import Device, Neighbor


class ClaimChange(NamedTuple):
    """A report's claim in place of the one before."""

    old: Claim
    new: Claim


def find_claim(joined: JoinedFabric, claim: Claim, device: Device) -> tuple[int, int] | None:
    """Return the device of a report's claim and its place there; None where it lost an id."""
    own = claim_keys(device)
    number = joined.keys.find(own[0]) if own else NO_PORT
    found = joined.claims[number] if number >= 0 else ()
    places = (at for at, one in enumerate(found) if one == claim)
    return next(((number, at) for at in places), None)


def update_fabric(joined: JoinedFabric, change: ClaimChange) -> FabricUpdate | None:
    """Return the fabric with one report changed, None where all claims have to be joined anew.

    Equal to joining them. Cost: O(its ports), and copies of the arrays.
    """
    old, new = change.old.device, change.new.device
    found = find_claim(joined, change.old, old)
    are_reports = change.old.origin is change.new.origin is Origin.REPORT
    if found is None or not are_reports or not _has_same_ports(old, new):
        return None
    device, at = found
    if any(key in joined.contested_keys for key in claim_keys(old)):
        return None
    claims = joined.claims[device]
    claims = (*claims[:at], change.new, *claims[at + 1 :])
    work = _FabricUpdater(joined, device, claims)
    changed = work.match_slots(at, new)
    if changed is None:
        return None
    gone, olds = changed
    news = [slot.neighbor for slot in work.slots if slot.row == NEW_ROW]
    reheard = NeighborUpdater(joined, device).resolve(gone, olds, news)
    if reheard is None or not work.resolve_ends(reheard):
        return None
    return apply_device_update(
        joined, DeviceUpdate(device, claims, work.facts, work.slots, work.ends), reheard
    )


def _has_same_ports(one: Device, other: Device) -> bool:
    """Return whether two reports are of one device with the same ports."""
    return (
        (one.kind, one.name, one.ids, one.model) == (other.kind, other.name, other.ids, other.model)
        and len(one.ports) == len(other.ports)
        and all(
            was is now or (was.name, was.ids, was.medium) == (now.name, now.ids, now.medium)
            for was, now in zip(one.ports, other.ports, strict=True)
        )
    )


@dataclass(slots=True)
class _FabricUpdater:
    joined: JoinedFabric
    device: int
    claims: tuple[Claim, ...]
    """About the device, the new one among them."""
    slots: list[NeighborSlot] = field(default_factory=list)
    ends: list[CableEnds] = field(default_factory=list)
    """Of the new entries."""
    facts: list[FabricPort] = field(default_factory=list)
    """The device's ports."""

    @property
    def _rows(self) -> NeighborRows:
        return self.joined.fetch_rows

    def match_slots(self, at: int, new: Device) -> tuple[list[int], list[Neighbor]] | None:
        """Fill the slots; return places and entries of the rows that are no more.

        None where a port hears several: then others on that port matter, too.
        """
        place = int(np.searchsorted(self._rows.order, self.joined.entity_numbers[self.device]))
        gone: list[int] = []
        olds: list[Neighbor] = []
        for number, claim in enumerate(self.joined.claims[self.device]):
            old = claim.device
            ports = new.ports if number == at else old.ports
            for was, now in zip(sort_ports(old.ports), sort_ports(ports), strict=True):
                heard, hears = (
                    list(select_best_source(was.neighbors)),
                    list(select_best_source(now.neighbors)),
                )
                places = range(place, place + len(heard))
                place = places.stop
                if heard == hears:
                    self.slots += map(NeighborSlot, places, [now] * len(heard), heard)
                    continue
                if max(len(heard), len(hears)) > 1:
                    return None
                gone += places
                olds += heard
                self.slots += (NeighborSlot(NEW_ROW, now, one) for one in hears)
        return gone, olds

    def resolve_ends(self, reheard: NeighborUpdate) -> bool:
        """Find the cables of the new entries; return whether they touch no other entry."""
        numbers = PortNumbers()
        known = numbers.add_device(self.device, [claim.device for claim in self.claims])
        start = self._start(self.device)
        self.facts = numbers.ports
        lost = {int(self._rows.far[at]) for at in reheard.gone if not self._rows.is_far_claimed[at]}
        if not all(self._can_remove(at, lost) for at in reheard.gone):
            return False
        learned: dict[int, PortIndex] = {}
        new_slots = (slot for slot in self.slots if slot.row == NEW_ROW)
        for slot, peer in zip(new_slots, reheard.peers, strict=True):
            near = find_own_port(known, slot.port)
            if near is None:
                return False
            if peer not in learned:
                learned[peer] = self._known(peer, lost)
            ends = self._find_ends(start + near, peer, slot.neighbor, learned[peer])
            if ends is None:
                return False
            self.ends.append(ends)
        return True

    def _start(self, device: int) -> int:
        owners = self._devices()[: self.joined.num_claimed]
        return int(np.searchsorted(owners, device))

    def _devices(self) -> Index:
        columns = self.joined.fabric.columns
        return columns.port_devices if columns is not None else np.zeros(0, np.intp)

    def _known(self, device: int, lost: set[int]) -> PortIndex:
        """Return the keys of all ports of a device but of those that are lost."""
        start = self._start(device)
        claims = (claim.device for claim in self.joined.claims[device])
        claimed = PortNumbers().add_device(device, claims)
        known = {key: at + start if at >= 0 else at for key, at in claimed.items()}
        first = self.joined.num_claimed
        for at in np.flatnonzero(self._devices()[first:] == device).tolist():
            if at + first not in lost:
                heard = self.joined.added[at]
                index_port(known, at + first, port_keys(heard.port_ids, heard.port_name))
        return known

    def _can_remove(self, at: int, lost: set[int]) -> bool:
        """Return whether no other entry depends on one that is no more."""
        near, far = int(self._rows.near[at]), int(self._rows.far[at])
        if near == NO_PORT or not self._is_unanswered(far):
            return False
        if self._rows.is_far_claimed[at]:
            return True
        if far < self.joined.num_claimed or np.count_nonzero(self._rows.far == far) > 1:
            return False
        heard = self.joined.added[far - self.joined.num_claimed]
        known = self._known(int(self._rows.peer[at]), lost - {far})
        return all(known.get(key) == far for key in port_keys(heard.port_ids, heard.port_name))

    def _is_unanswered(self, far: int) -> bool:
        """Return whether no entry of a port needs the device's word for what it hears."""
        own = self._rows.where(np.flatnonzero(self._rows.near == far))
        return not ((own.peer == self.device) & ~own.is_far_claimed).any()

    def _find_ends(
        self, near: int, peer: int, heard: Neighbor, known: PortIndex
    ) -> CableEnds | None:
        keys = port_keys(heard.port_ids, heard.port_name)
        far = find_port(known, keys)
        if far is not None:
            is_told = far < self.joined.num_claimed
            return CableEnds(near, far) if is_told and self._is_unanswered(far) else None
        to_near = self._rows.where(np.flatnonzero(self._rows.far == near))
        to_peer = self._rows.where(np.flatnonzero(self._rows.peer == peer))
        answers = (to_near.device == peer) & to_near.is_far_claimed
        by_answer = ~to_peer.is_far_claimed & (to_peer.far < self.joined.num_claimed)
        if answers.any() or by_answer.any() or any(key in known for key in keys):
            return None
        index_port(known, len(self._devices()) + len(self.ends), keys)
        return CableEnds(near, NO_PORT)
