"""All claims of a fabric as columns: each claim is read once, a sweep is taken from its columns.

The rows of ports of all claims have one numbering: first the ports of claims that were read, then
the port lines of each sweep. A claim has a span of rows.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from topology.identity.claim_facts import (
    MAX_STORED_IDS,
    ClaimFacts,
    ClaimTable,
    HashRows,
    read_facts,
)
from topology.identity.device_resolution import Entity
from topology.identity.disputed_ids import neighbor_keys
from topology.identity.heard_descriptions import HeardDescriptions
from topology.identity.node_names import NodeNames, find_free_texts
from topology.join.claim_rows import PortRowBuilder
from topology.join.swept_nodes import SweptNodes, read_swept_nodes
from topology.model.claims import Claim, Key, Origin, SweptClaims
from topology.model.fabric_columns import Flags, Index
from topology.model.facts import Device, DeviceKind
from topology.model.ids import Id, IdKind
from topology.model.lazy_rows import LazyTuple
from topology.sources.ibnetdiscover.columns import SweptDevices


class ClaimedIds(LazyTuple[Id]):
    """The sorted ids of a device, read from its claims on every access."""

    __slots__ = ("_claims", "_more_ids")

    def __init__(self, claims: Sequence[Claim], more_ids: Collection[Id]) -> None:
        """Store the sources of the ids.

        Args:
            claims: the claims about the device.
            more_ids: ids that something else reports for the device.
        """
        self._claims = tuple(claims)
        self._more_ids = frozenset(more_ids)

    def _all(self) -> tuple[Id, ...]:
        return tuple(sorted(self._more_ids.union(*(claim.ids for claim in self._claims))))


NO_SWEEP = -1


@dataclass(slots=True)
class ClaimColumns:
    """All claims of a fabric, sorted by origin, name, ids and other content."""

    table: ClaimTable
    sweeps: list[SweptNodes]
    """The sweeps that are taken from their columns."""
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
            (number, facts.name, _has_label(facts))
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
            name = names.name_host(text, facts.name, has_label=_has_label(facts))
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


def _has_label(facts: ClaimFacts) -> bool:
    """Return whether the description of an HCA has an RDMA name: without, ports have its GUID."""
    return facts.label is not None and "/" not in facts.label


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
    """Reads claims in the order given; their numbers are positions until they are sorted."""

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
        first_row = len(self.rows)
        self.rows.add(len(self.claims), device, is_swept=claim.origin is Origin.SWEEP)
        self.heard_descriptions.add(claim.origin, device)
        heard_keys = list(map(hash, _heard_keys(claim.origin, device)))
        if heard_keys:
            self.heard[len(self.claims)] = heard_keys
        self.claims.append(claim)
        self.facts.append(read_facts(device))
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
        for number, position in enumerate(order):
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


class DeviceIds(NamedTuple):
    """The ids of all devices of a fabric."""

    ids: list[tuple[Id, ...] | ClaimedIds]
    """By device: its ids, sorted."""
    has_shared_image: Flags
    """By device: whether another device has the same system image GUID."""


def index_ids(columns: ClaimColumns, devices: Sequence[Entity]) -> DeviceIds:
    """Return the ids of devices, given in the order of the fabric. Cost: O(n log n) in ids."""
    device_of_claim = np.zeros(len(columns.table), np.intp)
    for device, entity in enumerate(devices):
        device_of_claim[entity.numbers] = device
    images = columns.table.column(attrgetter("images"))
    heard_images = [
        (hash(found.value), device)
        for device, entity in enumerate(devices)
        for found in entity.heard_ids
        if found.kind is IdKind.SYSTEM_IMAGE_GUID
    ]
    return DeviceIds(
        ids=[_store_ids(columns, entity) for entity in devices],
        has_shared_image=_find_shared(
            _add_rows(HashRows(images.hashes, device_of_claim[images.speakers]), heard_images),
            len(devices),
        ),
    )


def _add_rows(rows: HashRows, added: Sequence[tuple[int, int]]) -> HashRows:
    """Return rows with more rows, given as (hash, device)."""
    more = np.array(added, np.int64).reshape(-1, 2)
    return HashRows(
        np.concatenate([rows.hashes, more[:, 0]]), np.concatenate([rows.speakers, more[:, 1]])
    )


def _find_shared(images: HashRows, num_devices: int) -> Flags:
    """Return one flag per device: whether another device has the same system image GUID."""
    shared = np.isin(images.hashes, images.find_repeated())
    has_shared_image = np.zeros(num_devices, np.bool_)
    has_shared_image[images.speakers[shared]] = True
    return has_shared_image


def _store_ids(columns: ClaimColumns, entity: Entity) -> tuple[Id, ...] | ClaimedIds:
    """Return the sorted ids of a device: stored if they are few, else read from its claims."""
    facts = columns.table.facts
    if sum(facts[number].num_ids for number in entity.numbers) > MAX_STORED_IDS:
        return ClaimedIds(entity.claims, entity.heard_ids)
    ids = set(entity.heard_ids)
    for number in entity.numbers:
        ids.update(facts[number].ids or columns.table.claims[number].ids)
    if len(ids) > MAX_STORED_IDS:
        return ClaimedIds(entity.claims, entity.heard_ids)
    return tuple(sorted(ids))
