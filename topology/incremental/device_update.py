"""The arrays of a fabric, rebuilt around one device: its entries, its ports, and their cables.

All other rows are copied. Ports that only neighbor entries mention are numbered by their first
entry, so those after the ones that this device adds may get new numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topology.identity.claim_facts import shows_ethernet
from topology.incremental.neighbor_update import NeighborUpdate
from topology.join.claim_join import JoinedFabric, assemble_fabric, port_columns
from topology.join.link_pairs import reported_media
from topology.join.neighbor_links import HALF, NO_PORT, NeighborRows, Numbers, pair_ends
from topology.join.port_numbers import far_port, pack_keys, port_keys, port_row
from topology.join.port_table import PortTable, splice
from topology.model.claims import Claim, Origin
from topology.model.fabric import FabricPort, columns_of
from topology.model.fabric_columns import Flags, Index, LinkColumns, rate_column
from topology.model.facts import Neighbor, Port, Source

NEW_ROW: Final = -1
"""The old row of an entry that is new."""


class NeighborSlot(NamedTuple):
    """A neighbor entry of the device, in row order."""

    row: int
    """Its row before the change, NEW_ROW for a new entry."""
    port: Port
    neighbor: Neighbor


class CableEnds(NamedTuple):
    """The two port numbers of the cable of a new entry."""

    near: int
    far: int
    """NO_PORT if the entry adds the port."""


class DeviceUpdate(NamedTuple):
    """The new contents of one device."""

    device: int
    claims: tuple[Claim, ...]
    """All claims about the device."""
    ports: Sequence[FabricPort]
    """All ports of the device."""
    slots: Sequence[NeighborSlot]
    """All neighbor entries of the device."""
    ends: Sequence[CableEnds]
    """The cables of the new entries."""


class FabricUpdate(NamedTuple):
    """The new fabric, and the ports where it may differ."""

    joined: JoinedFabric
    device: int
    """The device whose report changed."""
    before: Index
    """Ports whose cables may differ, in old numbers."""
    after: Index
    """The same ports and new ones, in new numbers."""
    numbers: Index | None
    """The new number of each old port, NO_PORT for a removed one; None if no number changed."""


def apply_device_update(
    joined: JoinedFabric, device_update: DeviceUpdate, neighbor_update: NeighborUpdate
) -> FabricUpdate:
    """Return the fabric with one device replaced. Cost: copies of the arrays."""
    return _DeviceUpdater(joined, device_update, neighbor_update).build()


@dataclass(slots=True)
class _AddedPorts:
    """The ports of other devices that only neighbor entries of this device mention."""

    first: int
    """Index of the first one among all added ports."""
    stop: int
    """Index after the last one, before the change."""
    old_numbers: list[int]
    """Their old numbers in the new order, NEW_ROW for new ports."""
    entries: list[Neighbor]
    """The entry that adds each port."""
    owners: list[int]
    """The device that each port belongs to."""


@dataclass(frozen=True, slots=True)
class _DeviceUpdater:
    joined: JoinedFabric
    device_update: DeviceUpdate
    neighbor_update: NeighborUpdate

    def build(self) -> FabricUpdate:
        joined, device_update = self.joined, self.device_update
        added_ports = self._added_ports()
        numbers = self._new_numbers(added_ports)
        rows = self._new_rows(added_ports, numbers)
        removed_rows = np.array(self.neighbor_update.removed_rows, np.intp)
        removed_ports = np.concatenate(
            [joined.neighbor_rows.near[removed_rows], joined.neighbor_rows.far[removed_rows]]
        )
        touched = self._touched_rows(rows)
        # A cable has a rate too, so every cable of the device is paired again.
        before = _unique_ports(removed_ports, self._old_ends())
        after = _unique_ports(before if numbers is None else numbers[before], touched)
        table = self._new_table(added_ports)
        is_confirmed, links = self._new_links(rows, after, numbers, table.size)
        columns = columns_of(joined.fabric)._replace(**port_columns(table)._asdict(), links=links)
        fabric = assemble_fabric(columns, joined.fabric.devices, table, joined.fabric.findings)
        added_by = joined.added_by
        own_owners = np.full(len(added_ports.old_numbers), device_update.device, np.intp)
        owner_parts = [added_by[: added_ports.first], own_owners, added_by[added_ports.stop :]]
        updated = replace(
            joined,
            fabric=fabric,
            table=table,
            claims=(
                *joined.claims[: device_update.device],
                device_update.claims,
                *joined.claims[device_update.device + 1 :],
            ),
            neighbor_rows=rows,
            added_keys=(
                *joined.added_keys[: added_ports.first],
                *(
                    pack_keys(port_keys(entry.port_ids, entry.port_name))
                    for entry in added_ports.entries
                ),
                *joined.added_keys[added_ports.stop :],
            ),
            added_by=np.concatenate(owner_parts),
            is_confirmed=is_confirmed,
        )
        return FabricUpdate(updated, device_update.device, before, after, numbers)

    def _row_range(self) -> tuple[int, int]:
        order = self.joined.entity_numbers[self.device_update.device]
        start, stop = np.searchsorted(self.joined.neighbor_rows.order, [order, order + 1])
        return int(start), int(stop)

    def _old_ends(self) -> Index:
        start, stop = self._row_range()
        rows = self.joined.neighbor_rows
        return np.concatenate([rows.near[start:stop], rows.far[start:stop]])

    def _touched_rows(self, rows: NeighborRows) -> Index:
        start, _ = self._row_range()
        stop = start + len(self.device_update.slots)
        return np.concatenate([rows.near[start:stop], rows.far[start:stop]])

    def _added_ports(self) -> _AddedPorts:
        """Return the ports that the device's entries add, in the order of the entries."""
        joined, device, base = self.joined, self.device_update.device, self.joined.num_claimed
        own_added_rows = np.flatnonzero(joined.added_by == device)
        insert_row = int(
            np.searchsorted(joined.entity_numbers[joined.added_by], joined.entity_numbers[device])
        )
        first, stop = (
            (int(own_added_rows[0]), int(own_added_rows[-1]) + 1)
            if len(own_added_rows)
            else (insert_row, insert_row)
        )
        added_ports = _AddedPorts(first, stop, [], [], [])
        new_entries = zip(self.device_update.ends, self.neighbor_update.peers, strict=True)
        for slot in self.device_update.slots:
            if slot.row == NEW_ROW:
                ends, owner = next(new_entries)
                is_added, old = ends.far == NO_PORT, NEW_ROW
            else:
                old = int(joined.neighbor_rows.far[slot.row])
                owner = int(joined.neighbor_rows.peer[slot.row])
                is_added = first <= old - base < stop and old not in added_ports.old_numbers
            if is_added:
                added_ports.old_numbers.append(old)
                added_ports.entries.append(slot.neighbor)
                added_ports.owners.append(owner)
        return added_ports

    def _new_numbers(self, added_ports: _AddedPorts) -> Index | None:
        base, size = self.joined.num_claimed, len(self.joined.is_confirmed)
        if added_ports.old_numbers == list(
            range(base + added_ports.first, base + added_ports.stop)
        ):
            return None
        numbers = np.arange(size)
        numbers[base + added_ports.stop :] += len(added_ports.old_numbers) - (
            added_ports.stop - added_ports.first
        )
        numbers[base + added_ports.first : base + added_ports.stop] = NO_PORT
        for number, old in enumerate(added_ports.old_numbers, base + added_ports.first):
            if old != NEW_ROW:
                numbers[old] = number
        return numbers

    def _new_rows(self, added_ports: _AddedPorts, numbers: Index | None) -> NeighborRows:
        rows, device = self.joined.neighbor_rows, self.device_update.device
        start, stop = self._row_range()
        old = rows if numbers is None else rows._replace(far=_renumber(rows.far, numbers))
        added = iter(
            self.joined.num_claimed + added_ports.first + index
            for index, old_number in enumerate(added_ports.old_numbers)
            if old_number == NEW_ROW
        )
        ends = iter(
            zip(
                self.device_update.ends,
                self.neighbor_update.peers,
                self.neighbor_update.styles,
                strict=True,
            )
        )
        own_rows: list[tuple[int, ...]] = []
        for slot in self.device_update.slots:
            if slot.row != NEW_ROW:
                own_rows.append(tuple(int(column[slot.row]) for column in old[:-1]))
                continue
            end, peer, style = next(ends)
            far = next(added) if end.far == NO_PORT else end.far
            order = int(self.joined.entity_numbers[device])
            claims = self.joined.claims[peer]
            media = reported_media(
                claims,
                [
                    claim.origin is Origin.REPORT and shows_ethernet(claim.device)
                    for claim in claims
                ],
            )
            can_report = media[slot.neighbor.source is Source.IB]
            is_claimed = end.far != NO_PORT
            own_rows.append(
                (order, device, peer, end.near, far, True, is_claimed, can_report, style)
            )
        table = np.array(own_rows, np.intp).reshape(-1, len(old) - 1).T
        rates = rate_column([slot.port.rate_bps for slot in self.device_update.slots])
        columns: tuple[NDArray[Any], ...] = old
        return NeighborRows._make(
            splice(column, (start, stop), fresh)
            for column, fresh in zip(columns, (*table, rates), strict=True)
        )

    def _new_links(
        self, rows: NeighborRows, after: Index, numbers: Index | None, num_ports: int
    ) -> tuple[Flags, LinkColumns]:
        """Return which ports are on confirmed cables, and all links of the fabric."""
        joined = self.joined
        is_confirmed = joined.is_confirmed
        links = columns_of(joined.fabric).links
        if numbers is not None:
            is_confirmed = np.zeros(num_ports, np.bool_)
            is_kept = numbers != NO_PORT
            is_confirmed[numbers[is_kept]] = joined.is_confirmed[is_kept]
            links = links._replace(a=numbers[links.a], b=numbers[links.b])
        is_touched = np.zeros(num_ports + 1, np.bool_)  # the last entry is for NO_PORT
        is_touched[after] = True
        touched_rows = rows.where(np.flatnonzero(is_touched[rows.near] | is_touched[rows.far]))
        is_confirmed = is_confirmed.copy()
        is_confirmed[after] = False
        cables = pair_ends(touched_rows)
        confirmed_ports = cables.confirmed_ports
        is_confirmed[confirmed_ports[is_touched[confirmed_ports]]] = True
        fresh = cables.links(is_confirmed)
        is_old = is_touched[links.a] | is_touched[links.b]
        return is_confirmed, _replace_links(links, np.flatnonzero(is_old), fresh)

    def _new_table(self, added_ports: _AddedPorts) -> PortTable:
        table, base = self.joined.table, self.joined.num_claimed
        start, stop = self._port_range()
        if self.joined.fabric.ports[start:stop] != tuple(self.device_update.ports):
            table = table.replace_ports((start, stop), self.device_update.ports)
        if not self._has_new_added_ports(added_ports):
            return table
        own_ports = [
            port_row(owner, far_port(neighbor))
            for owner, neighbor in zip(added_ports.owners, added_ports.entries, strict=True)
        ]
        return table.replace_ports((base + added_ports.first, base + added_ports.stop), own_ports)

    def _port_range(self) -> tuple[int, int]:
        """Return the range of the device's own ports."""
        start = int(
            np.searchsorted(self._owners()[: self.joined.num_claimed], self.device_update.device)
        )
        return start, start + len(self.device_update.ports)

    def _has_new_added_ports(self, added_ports: _AddedPorts) -> bool:
        return (
            len(added_ports.old_numbers) != added_ports.stop - added_ports.first
            or NEW_ROW in added_ports.old_numbers
        )

    def _owners(self) -> Index:
        return columns_of(self.joined.fabric).port_devices


def _replace_links(links: LinkColumns, removed_links: Index, fresh: LinkColumns) -> LinkColumns:
    """Return links with some rows replaced, sorted; the same object if the rows are equal."""
    if all(
        np.array_equal(old_column[removed_links], new_column)
        for old_column, new_column in zip(links, fresh, strict=True)
    ):
        return links
    kept_links = np.delete(np.arange(len(links.a)), removed_links)
    keys = (np.concatenate([links.a[kept_links], fresh.a]) << HALF) | np.concatenate(
        [links.b[kept_links], fresh.b]
    )
    order = np.argsort(keys, kind="stable")
    del keys
    return LinkColumns._make(
        np.concatenate([old_column[kept_links], new_column])[order]
        for old_column, new_column in zip(links, fresh, strict=True)
    )


def _unique_ports(*numbers: Index) -> Index:
    """Return the distinct port numbers, ascending, without NO_PORT."""
    distinct = np.unique(np.concatenate(numbers))
    are_ports: Index = distinct[distinct != NO_PORT]
    return are_ports


def _renumber(ports: Numbers, numbers: Index) -> Numbers:
    """Return the new numbers of ports."""
    return np.where(ports == NO_PORT, NO_PORT, numbers[ports]).astype(np.int32)
