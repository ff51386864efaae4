"""The port rows and neighbor entries of all claims under one numbering, as arrays.

First come the rows of the claims that were read, then the port lines of each sweep. A port line has
one entry, which is used only if the port hears a peer.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Final, NamedTuple

import numpy as np

from topology.identity.device_resolution import AMBIGUOUS
from topology.join.claim_columns import NO_SWEEP, ClaimColumns
from topology.join.claim_rows import Hashes, PortRows, expand_spans, neighbor_entries
from topology.join.neighbor_links import NO_PORT
from topology.join.port_table import PortTable, join_tables
from topology.join.swept_nodes import NO_NODE, FarLine, SweptNodes
from topology.model.fabric_columns import Codes, Flags, Index
from topology.model.facts import Neighbor, Source

_SPREAD: Final = 0x1E3779B97F4A7C15
"""Spreads the numbers of entities over 64 bits, so that an entity and a key make one number."""
_NO_NEIGHBOR: Final = Neighbor((), "", (), "", Source.IB)
"""Stands for the entry of a port line without a peer."""


@dataclass(slots=True)
class FabricRows:
    """The rows of all claims."""

    columns: ClaimColumns
    read: PortRows
    """The rows of the claims that were read; they come first."""
    first_lines: Sequence[int]
    """By sweep: the row of its first port line; then the number of rows."""
    far_lines: Sequence[FarLine]
    """By sweep: what its port lines hear."""
    first_rows: Index
    """By claim: its first row."""
    table: PortTable
    """The ports of all rows; the devices mean nothing."""
    _heard: tuple[int, Sequence[Neighbor]] = (-1, ())
    """The claim that was read last, and its entries."""

    @property
    def num_read(self) -> int:
        """The number of rows of claims that were read."""
        return len(self.read.has_name)

    @property
    def num_read_entries(self) -> int:
        """The number of entries of claims that were read."""
        return len(self.read.entries.rows)

    @property
    def sweeps(self) -> Sequence[SweptNodes]:
        """The sweeps that are taken from their columns."""
        return self.columns.sweeps

    def entry_counts(self) -> Index:
        """Return the number of neighbor entries of each row."""
        read = np.diff(self.read.entry_stops, prepend=0)
        return np.concatenate([read, *(sweep.has_peer() for sweep in self.sweeps)]).astype(np.intp)

    def first_entries(self) -> Index:
        """Return the first entry of each row."""
        read = self.read.entry_stops - np.diff(self.read.entry_stops, prepend=0)
        num_lines = self.first_lines[-1] - self.num_read
        return np.concatenate([read, self.num_read_entries + np.arange(num_lines)]).astype(np.intp)

    def is_swept(self) -> Flags:
        """Return one flag per entry: whether a sweep reports it."""
        num_lines = self.first_lines[-1] - self.num_read
        return np.concatenate([self.read.entries.is_swept, np.ones(num_lines, np.bool_)])

    def styles(self) -> Codes:
        """Return how the peer of each entry identifies its port; see `device_kinds`."""
        num_lines = self.first_lines[-1] - self.num_read
        return np.concatenate([self.read.entries.styles, np.zeros(num_lines, np.uint8)])

    def first_far_keys(self) -> Hashes:
        """Return the strongest key of the port that each entry means; 0 for a sweep or without."""
        entries = self.read.entries
        num_lines = self.first_lines[-1] - self.num_read
        starts = (entries.key_stops - np.diff(entries.key_stops, prepend=0)).astype(np.intp)
        has_key = starts < entries.key_stops
        keys = np.zeros(len(starts) + num_lines, np.int64)
        keys[: len(starts)][has_key] = entries.keys[starts[has_key]]
        return keys

    def find_owners(self, owner: Mapping[int, int]) -> Index:
        """Return the entity that has the first strong key of each entry's device, or AMBIGUOUS."""
        entries = self.read.entries
        owners = [owner.get(key, AMBIGUOUS) for key in entries.first_keys.tolist()]
        columns = [np.where(entries.has_key, np.array(owners, np.intp), AMBIGUOUS)]
        for sweep, far in zip(self.sweeps, self.far_lines, strict=True):
            of_nodes = np.array([owner.get(facts.keys[0], AMBIGUOUS) for facts in sweep.facts])
            columns.append(np.where(far.node == NO_NODE, AMBIGUOUS, of_nodes[far.node]))
        return np.concatenate(columns).astype(np.intp)

    def far_rows(self) -> Index:
        """Return the row of the port that each entry means, for entries of sweeps; or NO_PORT."""
        columns = [np.full(self.num_read_entries, NO_PORT, np.intp)]
        for start, far in zip(self.first_lines, self.far_lines, strict=False):
            columns.append(np.where(far.line == NO_NODE, NO_PORT, start + far.line))
        return np.concatenate(columns)

    def own_keys(self, claim: int) -> list[list[int]]:
        """Return the hashes of the keys of each port of a claim, strongest first."""
        sweep = self.columns.sweep_of_claim.item(claim)
        if sweep != NO_SWEEP:
            return self.sweeps[sweep].own_keys(self.columns.node_of_claim.item(claim))
        first = self.first_rows.item(claim)
        stops = self.read.key_stops[first : first + self.columns.num_rows.item(claim)].tolist()
        start = self.read.key_stops.item(first - 1) if first else 0
        keys = self.read.keys[start : stops[-1] if stops else start].tolist()
        spans = pairwise([0, *(stop - start for stop in stops)])
        return [keys[slice(*span)] for span in spans]

    def far_keys(self, entry: int) -> Sequence[int]:
        """Return the hashes of the keys of the port that an entry means, strongest first."""
        if entry < self.num_read_entries:
            stops = self.read.entries.key_stops
            start = stops.item(entry - 1) if entry else 0
            keys: list[int] = self.read.entries.keys[start : stops.item(entry)].tolist()
            return keys
        sweep, line = self._line(entry - self.num_read_entries + self.num_read)
        return sweep.far_keys(line)

    def neighbor(self, claim: int, entry: int) -> Neighbor:
        """Return a neighbor entry of a claim. Cost: reads the claim, once for entries in order."""
        is_swept = self.columns.sweep_of_claim[claim] != NO_SWEEP
        if self._heard[0] != claim:
            device = self.columns.table.claims[claim].device
            every: Iterator[Sequence[Neighbor]]
            if is_swept:
                every = (port.neighbors or (_NO_NEIGHBOR,) for port in device.ports)
            else:
                every = (neighbors for _, neighbors in neighbor_entries((device,)))
            self._heard = (claim, list(chain.from_iterable(every)))
        first_row = self.first_rows.item(claim)
        if is_swept:
            first_entry = first_row - self.num_read + self.num_read_entries
        else:
            first_entry = self.read.entry_stops.item(first_row - 1) if first_row else 0
        return self._heard[1][entry - first_entry]

    def _line(self, row: int) -> tuple[SweptNodes, int]:
        number = min(bisect_right(self.first_lines, row), len(self.sweeps)) - 1
        return self.sweeps[number], row - self.first_lines[number]


def build_rows(columns: ClaimColumns) -> FabricRows:
    """Return the rows of all claims. Cost: O(n) in ports, as arrays."""
    read = columns.rows.build()
    sizes = [len(read.has_name), *(len(sweep.has_peer()) for sweep in columns.sweeps)]
    first_lines = np.cumsum(sizes).tolist()
    first_rows = columns.first_rows.copy()
    for number, sweep in enumerate(columns.sweeps):
        own = np.flatnonzero(columns.sweep_of_claim == number)
        nodes = columns.node_of_claim[own]
        first_rows[own] = first_lines[number] + sweep.sweep.row_starts[nodes]
    return FabricRows(
        columns=columns,
        read=read,
        first_lines=first_lines,
        far_lines=[sweep.find_far_lines() for sweep in columns.sweeps],
        first_rows=first_rows,
        table=join_tables([read.table, *(sweep.table() for sweep in columns.sweeps)]),
    )


class PairedRows(NamedTuple):
    """Rows of entities in which a key is in two rows at most, and a row has one other at most."""

    is_paired: Flags
    """By entity: whether it is one of them."""
    first_rows: Index
    """By row: the row of an earlier claim that describes the same port, or NO_PORT."""
    line_codes: Hashes
    """The keys of port lines of these entities, by `mix_keys`."""
    line_rows: Index
    """The row of each of them."""


def no_pairs() -> PairedRows:
    """Return no rows at all."""
    empty = np.zeros(0, np.intp)
    return PairedRows(np.zeros(0, np.bool_), empty, empty, empty)


def pair_rows(
    rows: FabricRows, chosen: tuple[Index, Index], claims: Index, shared: Flags
) -> PairedRows:
    """Return the pairs of rows of two claims that have a key in common. Cost: O(n log n) in keys.

    Args:
        rows: the rows of all claims.
        chosen: rows of some entities in the order of their claims, and the entity of each.
        claims: by row: the position of its claim in that order.
        shared: by entity: whether it is one of these.
    """
    read, lines = _read_keys(rows, chosen), _line_keys(rows, chosen)
    codes, of_rows, owners = (np.concatenate(parts) for parts in zip(read, lines, strict=True))
    order = np.lexsort((of_rows, codes))
    codes, of_rows, owners = codes[order], of_rows[order], owners[order]
    is_other = np.ones(len(codes), np.bool_)
    is_other[1:] = (codes[1:] != codes[:-1]) | (of_rows[1:] != of_rows[:-1])
    codes, of_rows, owners = codes[is_other], of_rows[is_other], owners[is_other]
    at = np.flatnonzero(codes[1:] == codes[:-1])
    pairs = np.stack([of_rows[at], of_rows[at + 1]], axis=1)
    is_early = claims[pairs[:, 0]] < claims[pairs[:, 1]]
    pairs = np.where(is_early[:, None], pairs, pairs[:, ::-1])
    is_paired = shared.copy()
    is_paired[owners[at[:-1]][np.diff(at) == 1]] = False  # three rows have a key
    is_paired[owners[at][claims[pairs[:, 0]] == claims[pairs[:, 1]]]] = False
    first_rows = np.full(rows.table.size, NO_PORT, np.intp)
    second_rows = first_rows.copy()
    first_rows[pairs[:, 1]], second_rows[pairs[:, 0]] = pairs[:, 0], pairs[:, 1]
    has_several = (first_rows[pairs[:, 1]] != pairs[:, 0]) | (
        second_rows[pairs[:, 0]] != pairs[:, 1]
    )
    has_several |= (second_rows[pairs[:, 1]] != NO_PORT) | (first_rows[pairs[:, 0]] != NO_PORT)
    is_paired[owners[at][has_several]] = False
    first_rows[pairs[:, 1][~is_paired[owners[at]]]] = NO_PORT
    used = is_paired[lines[2]]
    return PairedRows(is_paired, first_rows, lines[0][used], lines[1][used])


def _read_keys(rows: FabricRows, chosen: tuple[Index, Index]) -> tuple[Hashes, Index, Index]:
    """Return the keys of rows that were read, by `mix_keys`, with the row and entity of each."""
    own, owners = (column[chosen[0] < rows.num_read] for column in chosen)
    stops = rows.read.key_stops.astype(np.intp)
    sizes = np.diff(stops, prepend=0)
    keys = rows.read.keys[expand_spans((stops - sizes)[own], sizes[own])]
    key_owners = np.repeat(owners, sizes[own])
    return mix_keys(keys, key_owners), np.repeat(own, sizes[own]), key_owners


def _line_keys(rows: FabricRows, chosen: tuple[Index, Index]) -> tuple[Hashes, Index, Index]:
    """Return the keys of port lines, by `mix_keys`, with the row and entity of each."""
    empty = np.zeros(0, np.intp)
    found = [(np.zeros(0, np.int64), empty, empty)]
    for sweep, span in zip(rows.sweeps, pairwise(rows.first_lines), strict=True):
        is_own = (chosen[0] >= span[0]) & (chosen[0] < span[1])
        own, owners = (column[is_own] for column in chosen)
        for keys, has_key in sweep.line_keys(own - span[0]):
            used = np.ones(len(own), np.bool_) if has_key is None else has_key
            found.append((mix_keys(keys[used], owners[used]), own[used], owners[used]))
    codes, of_rows, of_entities = zip(*found, strict=True)
    return np.concatenate(codes), np.concatenate(of_rows), np.concatenate(of_entities)


def mix_keys(keys: Hashes, entities: Index) -> Hashes:
    """Return one number for each key in an entity."""
    codes: Hashes = keys ^ (entities * _SPREAD)
    return codes
