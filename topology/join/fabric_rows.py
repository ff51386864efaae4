"""The port rows and neighbor entries of all claims under one numbering, as arrays.

First come the rows of the claims that were read, then the port lines of each sweep.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Final, NamedTuple

import numpy as np

from topology.identity.claim_facts import HashRows
from topology.identity.device_resolution import AMBIGUOUS
from topology.join.claim_columns import NO_SWEEP, ClaimColumns
from topology.join.claim_rows import Hashes, PortRows, expand_spans, neighbor_entries
from topology.join.port_numbers import NO_PORT
from topology.join.port_table import PortTable, join_tables
from topology.join.swept_nodes import NO_NODE, SweptNodes
from topology.model.fabric_columns import Codes, Flags, Index, Numbers
from topology.model.facts import Neighbor

NO_KEY: Final = -1


@dataclass(slots=True)
class FabricRows:
    """The rows of all claims."""

    columns: ClaimColumns
    read: PortRows
    """The rows of the claims that were read; they come first."""
    first_lines: Sequence[int]
    """By sweep: the row of its first port line; then the number of rows."""
    first_rows: Index
    """By claim: its first row."""
    table: PortTable
    """The ports of all rows; the devices mean nothing."""
    entry_stops: Numbers
    """By row: the end of its neighbor entries."""
    is_swept: Flags
    """By entry: whether a sweep reports it."""
    styles: Codes
    """By entry: how the peer identifies its port; see `device_kinds`."""
    far_rows: Numbers
    """By entry: the row of the port that it means, for entries of sweeps; or NO_PORT."""
    device_keys: Sequence[int]
    """Hashes of strong keys of devices that are heard."""
    heard: Numbers
    """By entry: the first of `device_keys` that it has, or NO_KEY."""
    _heard: tuple[int, Sequence[Neighbor]] = (-1, ())
    """The claim that was read last, and its entries."""

    @property
    def num_read(self) -> int:
        """The number of rows of claims that were read."""
        return len(self.read.has_name)

    @property
    def num_read_entries(self) -> int:
        """The number of neighbor entries in `read`. They come before the entries of sweeps."""
        return len(self.read.entries.rows)

    @property
    def sweeps(self) -> Sequence[SweptNodes]:
        """The sweeps that are taken from their columns."""
        return self.columns.sweeps

    def first_far_keys(self) -> Hashes:
        """Return the strongest key of the port that each entry means; 0 for a sweep or without."""
        entries = self.read.entries
        starts = (entries.key_stops - np.diff(entries.key_stops, prepend=0)).astype(np.intp)
        has_key = starts < entries.key_stops
        keys = np.zeros(len(self.heard), np.int64)
        keys[: len(starts)][has_key] = entries.keys[starts[has_key]]
        return keys

    def find_owners(self, owner: Mapping[int, int]) -> Numbers:
        """Return the entity that has the first strong key of each entry's device, or AMBIGUOUS."""
        owners = [owner.get(key, AMBIGUOUS) for key in self.device_keys]
        owners.append(AMBIGUOUS)  # of NO_KEY
        found: Numbers = np.array(owners, np.int32)[self.heard]
        return found

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
        row = int(np.searchsorted(self.entry_stops, entry, "right"))
        number = bisect_right(self.first_lines, row) - 1
        return self.sweeps[number].far_keys(row - self.first_lines[number])

    def neighbor(self, claim: int, entry: int) -> Neighbor:
        """Return a neighbor entry of a claim. Cost: reads the claim, once for entries in order."""
        if self._heard[0] != claim:
            device = self.columns.table.claims[claim].device
            every = (neighbors for _, neighbors in neighbor_entries((device,)))
            self._heard = (claim, list(chain.from_iterable(every)))
        first_row = self.first_rows.item(claim)
        first_entry = self.entry_stops.item(first_row - 1) if first_row else 0
        return self._heard[1][entry - first_entry]

    def key_rows(self, own_rows: Numbers, entities: Index) -> KeyRows:
        """Return the keys of rows, sorted. Cost: O(n log n) in keys.

        Args:
            own_rows: the rows.
            entities: the entity of each row.
        """
        was_read = own_rows < self.num_read
        read, stops = own_rows[was_read], self.read.key_stops.astype(np.intp)
        starts = stops - np.diff(stops, prepend=0)
        sizes = stops[read] - starts[read]
        keys = [self.read.keys[expand_spans(starts[read], sizes)]]
        of_rows, owners = [np.repeat(read, sizes)], [np.repeat(entities[was_read], sizes)]
        for sweep, (start, stop) in zip(self.sweeps, pairwise(self.first_lines), strict=True):
            chosen = np.flatnonzero((own_rows >= start) & (own_rows < stop))
            for line_keys, has_key in sweep.line_keys(own_rows[chosen] - start):
                used = slice(None) if has_key is None else has_key
                keys.append(line_keys[used])
                of_rows.append(own_rows[chosen][used])
                owners.append(entities[chosen][used])
        return KeyRows.sort(np.concatenate(keys), np.concatenate(of_rows), np.concatenate(owners))


def build_rows(columns: ClaimColumns) -> FabricRows:
    """Return the rows of all claims. Cost: O(n) in ports, as arrays."""
    read = columns.rows.build()
    sizes = [len(read.has_name), *(len(sweep.line_nodes) for sweep in columns.sweeps)]
    first_lines = np.cumsum(sizes).tolist()
    first_rows = columns.first_rows.copy()
    device_keys = read.entries.first_keys.tolist()
    heard = [np.where(read.entries.has_key, np.arange(len(device_keys)), NO_KEY)]
    far_rows = [np.full(len(device_keys), NO_PORT)]
    counts = [np.diff(read.entry_stops, prepend=0)]
    for number, sweep in enumerate(columns.sweeps):
        own = np.flatnonzero(columns.sweep_of_claim == number)
        nodes = columns.node_of_claim[own]
        first_rows[own] = first_lines[number] + sweep.sweep.row_starts[nodes]
        has_peer, far = sweep.has_peer(), sweep.find_far_lines()
        counts.append(has_peer)
        node, line = far.node[has_peer], far.line[has_peer]
        heard.append(np.where(node == NO_NODE, NO_KEY, node + len(device_keys)).astype(np.int32))
        far_rows.append(
            np.where(line == NO_NODE, NO_PORT, line + first_lines[number]).astype(np.int32)
        )
        device_keys += [facts.keys[0] for facts in sweep.facts]
    num_swept = sum(map(len, heard[1:]))
    return FabricRows(
        columns=columns,
        read=read,
        first_lines=first_lines,
        first_rows=first_rows,
        table=join_tables([read.table, *(sweep.table() for sweep in columns.sweeps)]),
        entry_stops=np.cumsum(np.concatenate(counts), dtype=np.int32),
        is_swept=np.concatenate([read.entries.is_swept, np.ones(num_swept, np.bool_)]),
        styles=np.concatenate([read.entries.styles, np.zeros(num_swept, np.uint8)]),
        far_rows=np.concatenate(far_rows).astype(np.int32),
        device_keys=device_keys,
        heard=np.concatenate(heard).astype(np.int32),
    )


class KeyRows(NamedTuple):
    """The keys of rows, sorted by code, then row; each pair is there once."""

    codes: Hashes
    """By `HashRows.codes`."""
    rows: Numbers
    entities: Numbers

    @classmethod
    def sort(cls, keys: Hashes, rows: Numbers, entities: Index) -> KeyRows:
        """Return keys, given each with its row and entity."""
        codes = HashRows(keys, entities).codes()
        order = np.lexsort((rows, codes))
        codes, sorted_rows = codes[order], rows[order]
        is_other = np.ones(len(codes), np.bool_)
        is_other[1:] = (codes[1:] != codes[:-1]) | (sorted_rows[1:] != sorted_rows[:-1])
        chosen = order[is_other]
        return cls(
            codes[is_other], rows[chosen].astype(np.int32), entities[chosen].astype(np.int32)
        )


class PairedRows(NamedTuple):
    """Rows of entities in which a key is in two rows at most, and a row has one other at most."""

    is_paired: Flags
    """By entity: whether it is one of them."""
    first_rows: Numbers
    """By row: the row of an earlier claim that describes the same port, or NO_PORT."""


def pair_rows(keys: KeyRows, claims: Numbers, may_share: Flags) -> PairedRows:
    """Return the pairs of rows of two claims that have a key in common. Cost: O(n) in keys.

    Args:
        keys: the keys of some entities.
        claims: by row: the position of its claim in the order of all claims.
        may_share: by entity: whether it is one of these.
    """
    codes, of_rows, owners = keys
    at = np.flatnonzero(codes[1:] == codes[:-1])
    pairs = np.stack([of_rows[at], of_rows[at + 1]], axis=1)
    is_early = claims[pairs[:, 0]] < claims[pairs[:, 1]]
    pairs = np.where(is_early[:, None], pairs, pairs[:, ::-1])
    is_paired = may_share.copy()
    is_paired[owners[at[:-1]][np.diff(at) == 1]] = False  # three rows have a key
    is_paired[owners[at][claims[pairs[:, 0]] == claims[pairs[:, 1]]]] = False
    first_rows = np.full(len(claims), NO_PORT, np.int32)
    second_rows = first_rows.copy()
    first_rows[pairs[:, 1]], second_rows[pairs[:, 0]] = pairs[:, 0], pairs[:, 1]
    has_several = (first_rows[pairs[:, 1]] != pairs[:, 0]) | (
        second_rows[pairs[:, 0]] != pairs[:, 1]
    )
    has_several |= (second_rows[pairs[:, 1]] != NO_PORT) | (first_rows[pairs[:, 0]] != NO_PORT)
    is_paired[owners[at][has_several]] = False
    first_rows[pairs[:, 1][~is_paired[owners[at]]]] = NO_PORT
    return PairedRows(is_paired, first_rows)
