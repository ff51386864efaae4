"""Join claims to a fabric one by one, and keep the state that an incremental update needs.

This is the general way: it handles claims of any origin, contradictions, and devices without a
claim. The state beside the fabric is the claims and arrays of the neighbor entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from topology.identity.claim_facts import HashRows
from topology.identity.device_kinds import PeerColumns, resolve_kinds, resolve_nodes
from topology.identity.device_names import display_names, sort_names
from topology.identity.device_resolution import Entity, resolve_claims
from topology.identity.heard_descriptions import limit_claims
from topology.identity.id_index import KeyTable, build_key_table
from topology.identity.node_names import NodeNames, read_node_names
from topology.identity.quarantine import resolve_disputes
from topology.join.claim_columns import index_ids, read_claims
from topology.join.fabric_rows import build_rows
from topology.join.link_pairs import PairingResult, pair_entries
from topology.join.neighbor_links import NeighborRows
from topology.join.neighbor_resolution import Mention, NeighborResolver
from topology.join.port_table import PortTable
from topology.join.same_devices import join_same_devices
from topology.model.claims import (
    Claim,
    Key,
    Origin,
    PreviousOwners,
    SweptClaims,
)
from topology.model.fabric import Fabric, FabricDevice, Link
from topology.model.fabric_columns import (
    KIND_CODES,
    MEDIUM_CODES,
    Codes,
    FabricColumns,
    Flags,
    Index,
    LinkColumns,
    Numbers,
    PortNames,
    Rates,
    rate_or_none,
)
from topology.model.facts import DeviceKind, Finding, Medium, sort_findings
from topology.model.ids import Id
from topology.model.lazy_rows import LazyRows


@dataclass(frozen=True, slots=True)
class JoinedFabric:
    """A fabric and the state of its join; sequences are by device number unless noted."""

    fabric: Fabric
    table: PortTable
    """The fabric's ports."""
    claims: tuple[tuple[Claim, ...], ...]
    """The claims about each device, without the ids that they lost; empty for a device that is
    known only as a neighbor."""
    names: NodeNames
    """Which node a name means."""
    keys: KeyTable
    """Strong id to device; it does not change when cables move."""
    ids: HashRows
    """The strong ids of devices, without those of their ports."""
    entity_numbers: Index
    """The number of each device while the fabric was built; it orders the neighbor entries."""
    neighbor_rows: NeighborRows
    """All neighbor entries."""
    num_claimed: int
    """Number of claimed ports; ports known only from neighbor entries have higher numbers."""
    added_keys: tuple[bytes, ...]
    """The keys of each of the ports from `num_claimed` on, by `pack_keys`."""
    added_by: Index
    """The device that hears the entry which added the port, in the order of `added_keys`."""
    is_confirmed: Flags
    """By port: whether it is on a cable that both ends report."""
    is_kind_guessed: Flags
    """Whether the kind was guessed from the devices that hear this device."""
    on_shared_ports: frozenset[int]
    """Devices that are heard on the same port as another device."""
    mentions: Mapping[Mention, int]
    """Devices known only as neighbors, if all entries describe them alike."""
    inconsistent_mentions: frozenset[int]
    """Devices known only as neighbors that entries describe differently."""
    unsettled: frozenset[int]
    """Devices whose descriptions are joined, or may be, because of what neighbor entries say."""
    loose: frozenset[int]
    """Devices that no strong id identifies; their ports show which other description is theirs."""
    contested_keys: frozenset[Key]
    """Ids whose owner a new cable may change."""
    previous_owners: Mapping[Key, str | None]
    """By contested id: the node that had it in the last generation."""


def join_claims(
    claims: Iterable[Claim | SweptClaims], *, previous_owners: PreviousOwners
) -> JoinedFabric:
    """Join claims to one fabric; their order has no effect.

    Cost: O(n log n) in ports and neighbors, as arrays: 15 µs for each port of a claim that is read,
    1 µs for a port line of a sweep, and 150 bytes each meanwhile.
    """
    columns = read_claims(claims)
    limited = limit_claims(columns.table, columns.heard_descriptions)
    columns.replace(limited.changed_claims)
    texts = columns.free_texts()
    names = read_node_names(columns.table, texts.values())
    columns.name_hosts(texts, names)
    undisputed = resolve_disputes(
        columns.table, names, previous_owners, columns.heard_descriptions.names()
    )
    columns.replace(undisputed.changed_claims)
    identities = resolve_claims(columns.table, names)
    resolver = NeighborResolver(identities, len(identities.entities))
    rows = build_rows(columns)
    entries = join_same_devices(resolver, rows, resolver.resolve_all(rows))
    entities = identities.entities
    identities.forget_keys()
    is_guessed = [entity.node is None and entity.kind is DeviceKind.UNKNOWN for entity in entities]
    styles = rows.styles()[entries.numbers]
    peer_columns = PeerColumns(entries.devices, entries.rows, entries.peers, styles)
    shared = resolve_kinds(entities, peer_columns)
    findings = resolve_nodes(entities, names)
    titles = display_names(entities)
    entity_order = sort_names(titles)
    number_by_entity = {entity_index: number for number, entity_index in enumerate(entity_order)}
    pairing = pair_entries(rows, entities, entries, entity_order)
    ids = index_ids(columns, [entities[entity_index] for entity_index in entity_order])
    all_findings = [*undisputed.findings, *identities.findings, *findings]
    devices = tuple(
        _build_device(entities[entity_index], titles[entity_index], own_ids)
        for entity_index, own_ids in zip(entity_order, ids.ids, strict=True)
    )
    fabric_columns = _build_columns(devices, pairing, ids.has_shared_image)
    own_claims = tuple(tuple(entities[entity_index].claims) for entity_index in entity_order)
    return JoinedFabric(
        fabric=assemble_fabric(fabric_columns, devices, pairing.table, sort_findings(all_findings)),
        table=pairing.table,
        claims=own_claims,
        names=names,
        keys=build_key_table(ids.keys, own_claims),
        ids=ids.rows,
        entity_numbers=np.array(entity_order, np.intp),
        neighbor_rows=pairing.neighbor_rows,
        num_claimed=pairing.num_claimed,
        added_keys=pairing.added_keys,
        added_by=pairing.added_by,
        is_confirmed=pairing.is_confirmed,
        is_kind_guessed=np.array(
            [is_guessed[entity_index] for entity_index in entity_order], np.bool_
        ),
        on_shared_ports=frozenset(number_by_entity[entity_index] for entity_index in shared),
        mentions={
            mention: number_by_entity[entity_index]
            for entity_index, mention in resolver.mentions.items()
            if entity_index not in resolver.inconsistent
        },
        inconsistent_mentions=frozenset(
            number_by_entity[entity_index]
            for entity_index in resolver.find_inconsistent(limited.contested_ids)
        ),
        unsettled=frozenset(number_by_entity[index] for index in resolver.unsettled),
        loose=frozenset(number_by_entity[index] for index in resolver.loose),
        contested_keys=undisputed.contested_keys | limited.contested_keys,
        previous_owners={key: previous_owners.get(key) for key in undisputed.contested_keys},
    )


def _build_device(entity: Entity, name: str, ids: Sequence[Id]) -> FabricDevice:
    has_report = Origin.REPORT in entity.origins
    return FabricDevice(name, entity.kind, entity.node, ids, entity.is_reporting, has_report)


def _build_columns(
    devices: Sequence[FabricDevice], pairing: PairingResult, has_shared_image: Flags
) -> FabricColumns:
    return FabricColumns(
        names=[device.name for device in devices],
        nodes=[device.node for device in devices],
        kinds=np.array([KIND_CODES[device.kind] for device in devices], np.uint8),
        **port_columns(pairing.table)._asdict(),
        links=pairing.links,
        has_shared_image=has_shared_image,
    )


class PortColumns(NamedTuple):
    """The port columns of `FabricColumns`."""

    port_devices: Index
    port_names: PortNames
    media: Codes
    states: Codes
    rates: Rates
    distances: Codes
    roce_devices: Numbers


def port_columns(table: PortTable) -> PortColumns:
    """Return the port columns of a table; the arrays are shared, not copied."""
    return PortColumns(
        port_devices=table.devices,
        port_names=table.port_names(),
        media=table.media,
        states=table.states,
        rates=table.rates,
        distances=table.distances,
        roce_devices=np.where(
            table.media == MEDIUM_CODES[Medium.ETHERNET], table.rdma, np.int32(0)
        ),
    )


def assemble_fabric(
    columns: FabricColumns,
    devices: Sequence[FabricDevice],
    table: PortTable,
    findings: tuple[Finding, ...],
) -> Fabric:
    """Return a fabric of arrays, with rows that are built on demand."""
    return Fabric(
        devices=devices,
        ports=table.rows(),
        links=link_rows(columns.links),
        findings=findings,
        columns=columns,
    )


def link_rows(links: LinkColumns) -> LazyRows[Link]:
    """Return links as rows that are built on demand."""

    def make(indices: Sequence[int]) -> Iterator[Link]:
        chosen = np.fromiter(indices, np.intp, len(indices))
        a, b, one_sided, disputed, rates = (column[chosen].tolist() for column in links)
        return map(Link, a, b, one_sided, disputed, map(rate_or_none, rates))

    return LazyRows(len(links.a), make)
