"""A fabric put together again around one device: its entries, its ports, and the cables they touch.

All else is copied. Ports that only entries speak of are numbered by the first entry that does, so
those behind the device's own may get other numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from topology.incremental.neighbor_update import NeighborUpdate
from topology.join.claim_join import JoinedFabric, port_columns, assemble_fabric
from topology.join.link_pairs import reported_media
from topology.join.neighbor_links import HALF, NO_PORT, NeighborRows, Numbers, pair_ends
from topology.join.port_numbers import far_port, port_row
from topology.join.port_table import PortTable, splice
from topology.model.claims import Claim
from topology.model.fabric import FabricPort, columns_of
from topology.model.fabric_columns import Flags, Index, LinkColumns, rate_column
from topology.model.facts import Neighbor, Port, Source

AnyT = TypeVar("AnyT", bound="np.generic[Any]")

NEW_ROW: Final = -1


class NeighborSlot(NamedTuple):
    """An entry of the device, in the order of its rows."""

    row: int
    """Where it was; NEW where it was not."""
    port: Port
    neighbor: Neighbor


class CableEnds(NamedTuple):
    """The cable of a new entry."""

    near: int
    far: int
    """NO_PORT where the entry adds the port."""


class DeviceUpdate(NamedTuple):
    """One device anew."""

    device: int
    claims: tuple[Claim, ...]
    ports: Sequence[FabricPort]
    """Its ports."""
    slots: Sequence[NeighborSlot]
    """Its entries."""
    ends: Sequence[CableEnds]
    """The cables of the new ones."""


class FabricUpdate(NamedTuple):
    """The new fabric, and where it differs."""

    joined: JoinedFabric
    device: int
    """Whose report it was."""
    before: Index
    """Ports, as they were numbered, whose cables may be others."""
    after: Index
    """The same, and new ones, as they are numbered now."""
    numbers: Index | None
    """By port its new number, NO_PORT where it is no more; None where all keep theirs."""


def apply_device_update(
    joined: JoinedFabric, redone: DeviceUpdate, reheard: NeighborUpdate
) -> FabricUpdate:
    """Return the fabric with one device anew. Cost: copies of the arrays."""
    return _DeviceUpdater(joined, redone, reheard).build()


@dataclass(slots=True)
class _AddedPorts:
    """The ports that only entries speak of."""

    first: int
    """Where those of the device start among them; the next is where they end."""
    stop: int
    kept: list[int]
    """Those of the device by their old numbers, NEW for the others; in their new order."""
    entries: list[Neighbor]
    """That add them."""
    owners: list[int]


@dataclass(frozen=True, slots=True)
class _DeviceUpdater:
    joined: JoinedFabric
    redone: DeviceUpdate
    reheard: NeighborUpdate

    def build(self) -> FabricUpdate:
        joined, redone = self.joined, self.redone
        tail = self._added_ports()
        numbers = self._numbers(tail)
        rows = self._rows(tail, numbers)
        places = np.array(self.reheard.gone, np.intp)
        gone = np.concatenate([joined.fetch_rows.near[places], joined.fetch_rows.far[places]])
        touched = self._touched_rows(rows)
        # A rate is of the cable, too, so every cable of the device is paired anew.
        before = _unique_ports(gone, self._old_ends())
        after = _unique_ports(before if numbers is None else numbers[before], touched)
        table = self._table(tail)
        is_confirmed, links = self._links(rows, after, numbers, table.size)
        columns = columns_of(joined.fabric)._replace(**port_columns(table)._asdict(), links=links)
        fabric = assemble_fabric(columns, joined.fabric.devices, table, joined.fabric.findings)
        by = joined.added_by
        own = np.full(len(tail.kept), redone.device, np.intp)
        added_by = [by[: tail.first], own, by[tail.stop :]]
        again = replace(
            joined,
            fabric=fabric,
            table=table,
            claims=(
                *joined.claims[: redone.device],
                redone.claims,
                *joined.claims[redone.device + 1 :],
            ),
            fetch_rows=rows,
            added=(*joined.added[: tail.first], *tail.entries, *joined.added[tail.stop :]),
            added_by=np.concatenate(added_by),
            is_confirmed=is_confirmed,
        )
        return FabricUpdate(again, redone.device, before, after, numbers)

    def _segment(self) -> tuple[int, int]:
        order = self.joined.entity_numbers[self.redone.device]
        start, stop = np.searchsorted(self.joined.fetch_rows.order, [order, order + 1])
        return int(start), int(stop)

    def _old_ends(self) -> Index:
        start, stop = self._segment()
        rows = self.joined.fetch_rows
        return np.concatenate([rows.near[start:stop], rows.far[start:stop]])

    def _touched_rows(self, rows: NeighborRows) -> Index:
        start, _ = self._segment()
        stop = start + len(self.redone.slots)
        return np.concatenate([rows.near[start:stop], rows.far[start:stop]])

    def _added_ports(self) -> _AddedPorts:
        """Return the added ports of the device, in the order of its entries."""
        joined, device, base = self.joined, self.redone.device, self.joined.num_claimed
        own = np.flatnonzero(joined.added_by == device)
        at = int(
            np.searchsorted(joined.entity_numbers[joined.added_by], joined.entity_numbers[device])
        )
        first, stop = (int(own[0]), int(own[-1]) + 1) if len(own) else (at, at)
        tail = _AddedPorts(first, stop, [], [], [])
        new = zip(self.redone.ends, self.reheard.peers, strict=True)
        for slot in self.redone.slots:
            if slot.row == NEW_ROW:
                ends, owner = next(new)
                is_added, old = ends.far == NO_PORT, NEW_ROW
            else:
                old = int(joined.fetch_rows.far[slot.row])
                owner = int(joined.fetch_rows.peer[slot.row])
                is_added = first <= old - base < stop and old not in tail.kept
            if is_added:
                tail.kept.append(old)
                tail.entries.append(slot.neighbor)
                tail.owners.append(owner)
        return tail

    def _numbers(self, tail: _AddedPorts) -> Index | None:
        base, size = self.joined.num_claimed, len(self.joined.is_confirmed)
        if tail.kept == list(range(base + tail.first, base + tail.stop)):
            return None
        numbers = np.arange(size)
        numbers[base + tail.stop :] += len(tail.kept) - (tail.stop - tail.first)
        numbers[base + tail.first : base + tail.stop] = NO_PORT
        for at, old in enumerate(tail.kept, base + tail.first):
            if old != NEW_ROW:
                numbers[old] = at
        return numbers

    def _rows(self, tail: _AddedPorts, numbers: Index | None) -> NeighborRows:
        rows, device = self.joined.fetch_rows, self.redone.device
        start, stop = self._segment()
        old = rows if numbers is None else rows._replace(far=_renumber(rows.far, numbers))
        added = iter(
            self.joined.num_claimed + tail.first + at
            for at, old_number in enumerate(tail.kept)
            if old_number == NEW_ROW
        )
        ends = iter(zip(self.redone.ends, self.reheard.peers, self.reheard.styles, strict=True))
        own: list[tuple[int, ...]] = []
        for slot in self.redone.slots:
            if slot.row != NEW_ROW:
                own.append(tuple(int(column[slot.row]) for column in old[:-1]))
                continue
            end, peer, style = next(ends)
            far = next(added) if end.far == NO_PORT else end.far
            order = int(self.joined.entity_numbers[device])
            can = reported_media(self.joined.claims[peer])[slot.neighbor.source is Source.IB]
            is_told = end.far != NO_PORT
            own.append((order, device, peer, end.near, far, True, is_told, can, style))
        table = np.array(own, np.intp).reshape(-1, len(old) - 1).T
        rates = rate_column([slot.port.rate_bps for slot in self.redone.slots])
        columns: tuple[NDArray[Any], ...] = old
        return NeighborRows._make(
            splice(column, (start, stop), fresh)
            for column, fresh in zip(columns, (*table, rates), strict=True)
        )

    def _links(
        self, rows: NeighborRows, after: Index, numbers: Index | None, num_ports: int
    ) -> tuple[Flags, LinkColumns]:
        """Return which ports are on confirmed cables, and all links."""
        joined = self.joined
        is_confirmed = joined.is_confirmed
        links = columns_of(joined.fabric).links
        if numbers is not None:
            is_confirmed = np.zeros(num_ports, np.bool_)
            is_there = numbers != NO_PORT
            is_confirmed[numbers[is_there]] = joined.is_confirmed[is_there]
            links = links._replace(a=numbers[links.a], b=numbers[links.b])
        is_touched = np.zeros(num_ports + 1, np.bool_)  # the last one is for NO_PORT
        is_touched[after] = True
        own = rows.where(np.flatnonzero(is_touched[rows.near] | is_touched[rows.far]))
        is_confirmed = is_confirmed.copy()
        is_confirmed[after] = False
        cables = pair_ends(own)
        found = cables.confirmed_ports
        is_confirmed[found[is_touched[found]]] = True
        fresh = cables.links(is_confirmed)
        is_old = is_touched[links.a] | is_touched[links.b]
        return is_confirmed, _replace_links(links, np.flatnonzero(is_old), fresh)

    def _table(self, tail: _AddedPorts) -> PortTable:
        table, base = self.joined.table, self.joined.num_claimed
        start, stop = self._span()
        if self.joined.fabric.ports[start:stop] != tuple(self.redone.ports):
            table = table.replace_ports((start, stop), self.redone.ports)
        if not self._has_new_added_ports(tail):
            return table
        own = [
            port_row(owner, far_port(heard))
            for owner, heard in zip(tail.owners, tail.entries, strict=True)
        ]
        return table.replace_ports((base + tail.first, base + tail.stop), own)

    def _span(self) -> tuple[int, int]:
        """Return where the device's own ports start and end."""
        start = int(np.searchsorted(self._owners()[: self.joined.num_claimed], self.redone.device))
        return start, start + len(self.redone.ports)

    def _has_new_added_ports(self, tail: _AddedPorts) -> bool:
        return len(tail.kept) != tail.stop - tail.first or NEW_ROW in tail.kept

    def _owners(self) -> Index:
        return columns_of(self.joined.fabric).port_devices


def _replace_links(links: LinkColumns, gone: Index, fresh: LinkColumns) -> LinkColumns:
    """Return links without some and with others, sorted; the very same where those are equal."""
    if all(np.array_equal(was[gone], now) for was, now in zip(links, fresh, strict=True)):
        return links
    kept = np.delete(np.arange(len(links.a)), gone)
    keys = (np.concatenate([links.a[kept], fresh.a]) << HALF) | np.concatenate(
        [links.b[kept], fresh.b]
    )
    order = np.argsort(keys, kind="stable")
    del keys
    return LinkColumns._make(
        np.concatenate([was[kept], now])[order] for was, now in zip(links, fresh, strict=True)
    )


def _unique_ports(*numbers: Index) -> Index:
    """Return those that are ports, each once, ascending."""
    found = np.unique(np.concatenate(numbers))
    are_ports: Index = found[found != NO_PORT]
    return are_ports


def _renumber(ports: Numbers, numbers: Index) -> Numbers:
    """Return ports by their new numbers."""
    return np.where(ports == NO_PORT, NO_PORT, numbers[ports]).astype(np.int32)
