"""All claims of a fabric as columns: each claim is read once, a sweep is taken from its columns.

The rows of ports of all claims have one numbering: first the ports of claims that were read, then
the port lines of each sweep. A claim has a span of rows.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, pairwise
from typing import Final, NamedTuple

import numpy as np

from topology.identity.claim_facts import (
    ClaimFacts,
    ClaimTable,
    HashRows,
    read_facts,
)
from topology.identity.device_resolution import AMBIGUOUS
from topology.identity.disputed_ids import neighbor_keys
from topology.identity.heard_descriptions import HeardDescriptions
from topology.identity.node_names import NodeNames, find_free_texts
from topology.join.port_rows import (
    NO_PORT,
    Hashes,
    PortRowBuilder,
    PortRows,
    PortTable,
    expand_spans,
    join_tables,
    neighbor_entries,
)
from topology.join.swept_nodes import NO_NODE, SweptNodes, read_swept_nodes
from topology.model.claims import Claim, Key, Origin, SweptClaims
from topology.model.fabric import Codes, Flags, Index, Numbers
from topology.model.facts import Device, DeviceKind, Neighbor
from topology.model.ids import Id
from topology.sources.ibnetdiscover.devices import SweptDevices

NO_SWEEP = -1


@dataclass(slots=True)
class ClaimColumns:
    """All claims of a fabric, sorted by origin, name, ids and other content."""

    table: ClaimTable
    sweeps: list[SweptNodes]
    """The sweeps that are joined as columns; all other claims are read row by row."""
    sweep_of_claim: Index
    """NO_SWEEP for a claim that was read."""
    node_of_claim: Index
    """The node of the sweep; 0 for a claim that was read."""
    first_rows: Index
    """The first port row of each claim that was read; 0 for a node of a sweep."""
    num_rows: Index
    """Number of ports of each claim."""
    rows: PortRowBuilder
    """The ports of the claims that were read."""
    heard_descriptions: HeardDescriptions
    """What all claims say about other devices."""

    def free_texts(self) -> dict[int, str]:
        """Return the descriptions of HCAs in sweeps that are not of the usual form, by claim."""
        rows = enumerate(zip(self.table.claims, self.table.facts, strict=True))
        hcas = (
            (number, facts.name, facts.has_label)
            for number, (claim, facts) in rows
            if claim.origin is Origin.SWEEP and facts.kind is DeviceKind.HOST
        )
        return find_free_texts(hcas, self._description)

    def _description(self, number: int) -> str:
        sweep = self.sweep_of_claim.item(number)
        if sweep == NO_SWEEP:
            return self.table.claims[number].device.model
        return self.sweeps[sweep].sweep.description(self.node_of_claim.item(number))

    def name_hosts(self, texts: Mapping[int, str], names: NodeNames) -> None:
        """Name hosts in sweeps by the nodes in their descriptions, given by claim."""
        for number, text in texts.items():
            facts = self.table.facts[number]
            name = names.name_host(text, facts.name, has_label=facts.has_label)
            self.table.facts[number] = facts._replace(name=name)

    def replace(self, changed_claims: Mapping[int, Claim]) -> None:
        """Read changed claims again, given by their numbers."""
        if not changed_claims:
            return
        self.table.forget_heard(changed_claims)
        for number, claim in changed_claims.items():
            device = claim.device
            self.table.claims[number], self.table.facts[number] = claim, read_facts(device)
            self.first_rows[number], self.num_rows[number] = len(self.rows), len(device.ports)
            self.rows.add(number, device, is_swept=claim.origin is Origin.SWEEP)
            self.table.add_heard(number, list(map(hash, _heard_keys(claim.origin, device))))


def _heard_keys(origin: Origin, device: Device) -> set[Key]:
    """Return the keys that a claim mentions as neighbors; a sweep's entries are no evidence."""
    if origin is Origin.SWEEP:
        return set()
    return {
        key
        for port in device.ports
        for neighbor in port.neighbors
        for key in neighbor_keys(neighbor)
    }


@dataclass(slots=True)
class ClaimReader:
    """Reads claims in the order given. Until they are sorted, a claim's number is its position."""

    claims: list[Claim] = field(default_factory=list)
    facts: list[ClaimFacts] = field(default_factory=list)
    sweeps: list[SweptNodes] = field(default_factory=list)
    sweep_of_claim: array[int] = field(default_factory=lambda: array("q"))
    node_of_claim: array[int] = field(default_factory=lambda: array("q"))
    first_rows: array[int] = field(default_factory=lambda: array("q"))
    num_rows: array[int] = field(default_factory=lambda: array("q"))
    heard: dict[int, Sequence[int]] = field(default_factory=dict)
    """By position: the hashes of the keys that the claim mentions as neighbors."""
    rows: PortRowBuilder = field(default_factory=PortRowBuilder)
    heard_descriptions: HeardDescriptions = field(default_factory=HeardDescriptions)

    def read_device(self, claim: Claim, device: Device) -> None:
        """Add a claim, given its device."""
        first_row, number = len(self.rows), len(self.claims)
        self.claims.append(claim)
        self.facts.append(read_facts(device))
        self.heard_descriptions.add(claim.origin, device)
        heard_keys = list(map(hash, _heard_keys(claim.origin, device)))
        if heard_keys:
            self.heard[number] = heard_keys
        self.rows.add(number, device, is_swept=claim.origin is Origin.SWEEP)
        self.sweep_of_claim.append(NO_SWEEP)
        self.node_of_claim.append(0)
        self.first_rows.append(first_row)
        self.num_rows.append(len(self.rows) - first_row)

    def read_sweep(self, swept: SweptClaims) -> None:
        """Add the claims of a sweep: as columns, or one by one if it contradicts itself."""
        devices = swept.devices
        is_new = all(sweep.devices is not devices for sweep in self.sweeps)
        nodes = read_swept_nodes(devices) if is_new and isinstance(devices, SweptDevices) else None
        if nodes is None:
            for claim, device in zip(swept, devices, strict=True):
                self.read_device(claim, device)
            return
        known = self._find_known(nodes)
        added = np.flatnonzero(~known).tolist()
        self.sweep_of_claim.extend([len(self.sweeps)] * len(added))
        self.node_of_claim.extend(added)
        self.first_rows.extend([0] * len(added))
        self.num_rows.extend(nodes.sweep.columns.num_rows[added].tolist())
        self.sweeps.append(nodes)
        claims, facts = list(nodes.claims()), nodes.facts
        self.claims += claims if len(added) == len(claims) else [claims[node] for node in added]
        self.facts += facts if len(added) == len(claims) else [facts[node] for node in added]

    def _find_known(self, nodes: SweptNodes) -> Flags:
        """Return one flag per node: whether an earlier sweep has the same claim.

        The sweep of a report and a file of the same subnet have most claims in common.
        """
        is_known = np.zeros(len(nodes.names), np.bool_)
        guids = nodes.sweep.columns.guids
        for sweep in self.sweeps:
            if np.isin(guids, sweep.sweep.columns.guids).any():
                is_known |= np.isin(nodes.digests(), sweep.digests())
        return is_known

    def build(self) -> ClaimColumns:
        """Return all claims, sorted."""
        order = list(self._sort())
        chosen = np.array(order, np.intp)
        table = ClaimTable(
            [self.claims[position] for position in order],
            [self.facts[position] for position in order],
        )
        for number, position in enumerate(order) if self.heard else ():
            table.add_heard(number, self.heard.get(position, ()))
        return ClaimColumns(
            table=table,
            sweeps=self.sweeps,
            sweep_of_claim=np.array(self.sweep_of_claim, np.intp)[chosen],
            node_of_claim=np.array(self.node_of_claim, np.intp)[chosen],
            first_rows=np.array(self.first_rows, np.intp)[chosen],
            num_rows=np.array(self.num_rows, np.intp)[chosen],
            rows=self.rows,
            heard_descriptions=self.heard_descriptions,
        )

    def _sort(self) -> Iterator[int]:
        """Yield the positions of the claims by origin, then name, then all other content."""
        by_origin: dict[Origin, list[int]] = {origin: [] for origin in Origin}
        for position, claim in enumerate(self.claims):
            by_origin[claim.origin].append(position)
        names = [facts.name for facts in self.facts]
        for positions in by_origin.values():
            positions.sort(key=names.__getitem__)
            for _, namesakes in groupby(positions, key=names.__getitem__):
                group = list(namesakes)
                yield from group if len(group) == 1 else self._sort_group(group)

    def _sort_group(self, positions: Sequence[int]) -> Iterable[int]:
        """Return the positions of claims with one name in order; nodes of a sweep are in order."""
        sweeps = {self.sweep_of_claim[position] for position in positions}
        if len(sweeps) == 1 and NO_SWEEP not in sweeps:
            return positions
        rank = self._node_rank if NO_SWEEP not in sweeps else self._rank
        ranked = sorted((rank(position), position) for position in positions)
        ordered: list[int] = []
        for _, alike in groupby(ranked, key=lambda row: row[0]):
            group = [position for _, position in alike]
            if len(group) > 1:
                group.sort(key=lambda position: repr(self.claims[position].device))
            ordered += group
        return ordered

    def _node_rank(self, position: int) -> tuple[int, int, int]:
        """Return numbers in the order of `_rank`, for nodes of sweeps alone."""
        columns = self.sweeps[self.sweep_of_claim[position]].sweep.columns
        node = self.node_of_claim[position]
        return columns.guids.item(node), columns.images.item(node), self.num_rows[position]

    def _rank(self, position: int) -> tuple[tuple[Id, ...], int]:
        return self.claims[position].ids, self.num_rows[position]


def read_claims(claims: Iterable[Claim | SweptClaims]) -> ClaimColumns:
    """Return all claims as columns.

    Cost: O(n log n) in claims and ports: 10 µs a port, 5 µs a node of a sweep.
    """
    reader = ClaimReader()
    for claim in claims:
        if isinstance(claim, SweptClaims):
            reader.read_sweep(claim)
        else:
            reader.read_device(claim, claim.device)
    return reader.build()


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
        """The sweeps that are joined as columns; all other claims are read row by row."""
        return self.columns.sweeps

    def first_far_keys(self) -> Hashes:
        """Return the strongest key of the port that each entry means; 0 if none, and in sweeps."""
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


class PairedRows(NamedTuple):
    """Pairs of rows with a common key: at most two rows have a key, and a row is in one pair."""

    is_paired: Flags
    """By entity: whether its rows are paired in this way."""
    first_rows: Numbers
    """By row: the row of an earlier claim that describes the same port, or NO_PORT."""


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

    def pair(self, claims: Numbers, may_share: Flags) -> PairedRows:
        """Return the pairs of rows of two claims that have a key in common. Cost: O(n) in keys.

        Args:
            claims: the position of each row's claim in the order of all claims.
            may_share: one flag per entity: whether two of its rows may share a key.
        """
        codes, of_rows, owners = self
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
