"""The port rows and neighbor entries of all claims under one numbering, as arrays.

First come the rows of the claims that were read, then the port lines of each sweep. A port line has
one entry, which is used only if the port hears a peer.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Final

import numpy as np

from topology.identity.device_resolution import AMBIGUOUS
from topology.join.claim_columns import NO_SWEEP, ClaimColumns
from topology.join.claim_rows import PortRows, neighbor_entries
from topology.join.neighbor_links import NO_PORT
from topology.join.port_table import PortTable, join_tables
from topology.join.swept_nodes import NO_NODE, FarLine, SweptNodes
from topology.model.fabric_columns import Codes, Flags, Index
from topology.model.facts import Neighbor, Source

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
