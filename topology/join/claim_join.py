"""Claims to a fabric, joined one by one, and what is needed to join one of them anew.

The careful way: any origins, contradictions, devices that nobody claims. What is kept beside the
fabric are arrays of the entries and the claims as they came.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from topology.identity.device_kinds import PeerColumns, resolve_kinds, resolve_nodes
from topology.identity.device_names import display_names, sort_names
from topology.identity.device_resolution import Entity, resolve_claims
from topology.identity.id_index import KeyTable
from topology.identity.quarantine import resolve_disputes
from topology.join.link_pairs import PairingResult, pair_entries
from topology.join.neighbor_links import NeighborRows
from topology.join.neighbor_resolution import NeighborEntries, NeighborResolver, Mention
from topology.join.port_table import PortTable
from topology.model.claims import (
    Claim,
    PreviousOwners,
    Key,
    Origin,
    SweptClaims,
    sort_claims,
    expand_claims,
)
from topology.model.fabric import Fabric, FabricDevice, Link
from topology.model.fabric_columns import (
    KIND_CODES,
    Codes,
    FabricColumns,
    Flags,
    Index,
    LinkColumns,
    PortNames,
    Rates,
    rate_or_none,
)
from topology.model.facts import DeviceKind, Finding, Neighbor, sort_findings
from topology.model.ids import Id
from topology.model.lazy_rows import LazyRows


@dataclass(frozen=True, slots=True)
class JoinedFabric:
    """A fabric, and how it was joined; by device number where nothing else is said."""

    fabric: Fabric
    table: PortTable
    """The fabric's ports."""
    claims: tuple[tuple[Claim, ...], ...]
    """Those about each device, without the ids that they lost; empty where it is only heard of."""
    keys: KeyTable
    """Who has which id; the same whatever cables move."""
    entity_numbers: Index
    """Its number while it was put together, which orders the entries."""
    fetch_rows: NeighborRows
    num_claimed: int
    """Ports that claims tell; those that only entries speak of have higher numbers."""
    added: tuple[Neighbor, ...]
    """The entry that added each of those, in their order."""
    added_by: Index
    """The device that hears that entry."""
    is_confirmed: Flags
    """By port, whether it is on a cable that both ends report."""
    is_kind_guessed: Flags
    """Whether its kind is told by who hears it."""
    on_shared_ports: frozenset[int]
    """Devices heard on one port with others."""
    mentions: Mapping[Mention, int]
    """Devices that are only heard of, where all entries tell the same."""
    inconsistent_mentions: frozenset[int]
    """The others that are only heard of."""
    contested_keys: frozenset[Key]
    """Ids that another cable may give to somebody else."""
    previous_owners: Mapping[Key, str | None]
    """By doubtful id the node that had it before."""


def join_claims(
    claims: Iterable[Claim | SweptClaims], *, previous_owners: PreviousOwners
) -> JoinedFabric:
    """Join claims to one fabric; the same whatever their order.

    Cost: O(n log n) in ports and neighbors, 40 µs each, and 150 bytes each while it lasts: claims
    are spelled out one by one, some five times each.
    """
    settled = resolve_disputes(sort_claims(expand_claims(claims)), previous_owners)
    identities = resolve_claims(settled.claims)
    hearing = NeighborResolver(identities, len(identities.entities))
    entries = hearing.resolve_all()
    entities = identities.entities
    identities.forget_keys()
    is_guessed = [one.node is None and one.kind is DeviceKind.UNKNOWN for one in entities]
    shared = resolve_kinds(entities, _peer_columns(entries))
    findings = resolve_nodes(entities)
    names = display_names(entities)
    order = sort_names(names)
    place = {at: number for number, at in enumerate(order)}
    found = pair_entries(entities, entries, order)
    settled_findings = [*settled.findings, *identities.findings, *findings]
    devices = tuple(
        _build_device(entities[at], names[at], ids)
        for at, ids in zip(order, found.ids, strict=True)
    )
    columns = _build_columns(devices, found)
    own_claims = tuple(tuple(entities[at].claims) for at in order)
    return JoinedFabric(
        fabric=assemble_fabric(columns, devices, found.table, sort_findings(settled_findings)),
        table=found.table,
        claims=own_claims,
        keys=found.keys.build(own_claims),
        entity_numbers=np.array(order, np.intp),
        fetch_rows=found.fetch_rows,
        num_claimed=found.num_claimed,
        added=found.added,
        added_by=found.added_by,
        is_confirmed=found.is_confirmed,
        is_kind_guessed=np.array([is_guessed[at] for at in order], np.bool_),
        on_shared_ports=frozenset(place[at] for at in shared),
        mentions={
            told: place[at]
            for at, told in hearing.mentions.items()
            if at not in hearing.inconsistent
        },
        inconsistent_mentions=frozenset(place[at] for at in hearing.inconsistent),
        contested_keys=settled.contested_keys,
        previous_owners={key: previous_owners.get(key) for key in settled.contested_keys},
    )


def _peer_columns(entries: NeighborEntries) -> PeerColumns:
    return PeerColumns(
        np.array(entries.devices, np.intp),
        np.array(entries.ports, np.intp),
        np.array(entries.peers, np.intp),
        np.array(entries.styles, np.uint8),
    )


def _build_device(entity: Entity, name: str, ids: Sequence[Id]) -> FabricDevice:
    has_report = Origin.REPORT in entity.origins
    return FabricDevice(name, entity.kind, entity.node, ids, entity.is_reporting, has_report)


def _build_columns(devices: Sequence[FabricDevice], found: PairingResult) -> FabricColumns:
    return FabricColumns(
        names=[device.name for device in devices],
        nodes=[device.node for device in devices],
        kinds=np.array([KIND_CODES[device.kind] for device in devices], np.uint8),
        **port_columns(found.table)._asdict(),
        links=found.links,
        has_shared_image=found.has_shared_image,
    )


class PortColumns(NamedTuple):
    """The columns of a fabric that are of ports; see `fabric_columns`."""

    port_devices: Index
    port_names: PortNames
    media: Codes
    states: Codes
    rates: Rates
    has_gpu_distance: Flags


def port_columns(table: PortTable) -> PortColumns:
    """Return a table as a fabric has it; its arrays are the same."""
    return PortColumns(
        port_devices=table.devices,
        port_names=table.port_names(),
        media=table.media,
        states=table.states,
        rates=table.rates,
        has_gpu_distance=table.has_gpu_distance,
    )


def assemble_fabric(
    columns: FabricColumns,
    devices: Sequence[FabricDevice],
    table: PortTable,
    findings: tuple[Finding, ...],
) -> Fabric:
    """Return a fabric of arrays, and rows for whoever looks at them."""
    return Fabric(
        devices=devices,
        ports=table.fetch_rows(),
        links=link_rows(columns.links),
        findings=findings,
        columns=columns,
    )


def link_rows(links: LinkColumns) -> LazyRows[Link]:
    """Return links as rows, made when somebody looks."""

    def make(places: Sequence[int]) -> Iterator[Link]:
        chosen = np.fromiter(places, np.intp, len(places))
        a, b, one_sided, disputed, rates = (column[chosen].tolist() for column in links)
        return map(Link, a, b, one_sided, disputed, map(rate_or_none, rates))

    return LazyRows(len(links.a), make)
