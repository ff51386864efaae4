"""Claims to a fabric, joined one by one, and what is needed to join one of them anew.

The careful way: any origins, contradictions, devices that nobody claims. What is kept beside the
fabric are arrays of the entries and the claims as they came.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from topology.device_names import display_names, sort_names
from topology.fabric import Fabric, FabricDevice, FabricPort, Link
from topology.fabric_columns import (
    KIND_CODES,
    MEDIUM_CODES,
    STATE_CODES,
    Codes,
    FabricColumns,
    Flags,
    Index,
    LinkColumns,
    Rates,
    known_rate,
    rate_column,
)
from topology.facts import DeviceKind, Finding, Neighbor, Source, sort_findings
from topology.heard_links import NO_PORT, STYLES, HeardRows, confirmed_ports, pair_ends
from topology.hearing import Entry, Hearing, Mention
from topology.identity import (
    Claim,
    Entity,
    Identities,
    Key,
    Origin,
    SweptClaims,
    resolve_claims,
    sort_claims,
    spell_out,
)
from topology.ids import IdKind
from topology.kinds import Heard, settle_kinds, settle_nodes
from topology.lazy_rows import LazyRows
from topology.port_numbers import (
    Known,
    PortNumbers,
    far_port,
    find_near,
    find_port,
    port_keys,
)
from topology.quarantine import settle_disputes


@dataclass(frozen=True, slots=True)
class Joined:
    """A fabric, and how it was joined; by device number where nothing else is said."""

    fabric: Fabric
    claims: tuple[tuple[Claim, ...], ...]
    """Those about each device, without the ids that they lost; empty where it is only heard of."""
    orders: Index
    """Its number while it was put together, which orders the entries."""
    rows: HeardRows
    num_claimed: int
    """Ports that claims tell; those that only entries speak of have higher numbers."""
    added: tuple[Neighbor, ...]
    """The entry that added each of those, in their order."""
    added_by: Index
    """The device that hears that entry."""
    is_confirmed: Flags
    """By port, whether it is on a cable that both ends report."""
    is_guessed: Flags
    """Whether its kind is told by who hears it."""
    shared: frozenset[int]
    """Devices heard on one port with others."""
    mentions: Mapping[Mention, int]
    """Devices that are only heard of, where all entries tell the same."""
    odd: frozenset[int]
    """The others that are only heard of."""
    doubtful: frozenset[Key]
    """Ids that another cable may give to somebody else."""
    first_owners: Mapping[Key, str | None]
    """By doubtful id the node that had it before."""


def join_claims(
    claims: Iterable[Claim | SweptClaims], *, first_owners: Mapping[Key, str]
) -> Joined:
    """Join claims to one fabric; the same whatever their order.

    Cost: O(n log n) in ports and neighbors, 10 µs each.
    """
    settled = settle_disputes(sort_claims(spell_out(claims)), first_owners)
    identities = resolve_claims(settled.claims)
    hearing = Hearing(identities, len(identities.entities))
    entries = list(hearing.listen())
    entities = identities.entities
    is_guessed = [one.node is None and one.kind is DeviceKind.UNKNOWN for one in entities]
    shared = settle_kinds(entities, map(_view, entries))
    findings = settle_nodes(entities)
    names = display_names(entities)
    order = sort_names(names)
    place = {at: number for number, at in enumerate(order)}
    found = _pair(identities, entries, order, place)
    settled_findings = [*settled.findings, *identities.findings, *findings]
    devices = tuple(_device(entities[at], names[at]) for at in order)
    columns = _columns(devices, found.ports, found.links)
    return Joined(
        fabric=fabric_of(columns, devices, tuple(found.ports), sort_findings(settled_findings)),
        claims=tuple(tuple(entities[at].claims) for at in order),
        orders=np.array(order, np.intp),
        rows=found.rows,
        num_claimed=found.num_claimed,
        added=tuple(found.added),
        added_by=np.array(found.added_by, np.intp),
        is_confirmed=found.is_confirmed,
        is_guessed=np.array([is_guessed[at] for at in order], np.bool_),
        shared=frozenset(place[at] for at in shared),
        mentions={
            told: place[at] for at, told in hearing.mentions.items() if at not in hearing.odd
        },
        odd=frozenset(place[at] for at in hearing.odd),
        doubtful=settled.doubtful,
        first_owners={key: first_owners.get(key) for key in settled.doubtful},
    )


def _view(row: Entry) -> Heard:
    return Heard(row.device, row.port, row.peer, style=style_of(row.neighbor))


def style_of(heard: Neighbor) -> str:
    """Return how a neighbor names its port."""
    return next((one.subtype for one in heard.port_ids if one.kind is IdKind.PORT_ID), "")


def style_code(style: str) -> int:
    """Return the index in STYLES of how a neighbor names its port."""
    return 0 if not style else 1 if style == STYLES[1] else 2


def _device(entity: Entity, name: str) -> FabricDevice:
    ids = tuple(sorted(entity.ids))
    has_report = Origin.REPORT in entity.origins
    return FabricDevice(name, entity.kind, entity.node, ids, entity.is_reporting, has_report)


@dataclass(slots=True)
class _Paired:
    ports: list[FabricPort]
    rows: HeardRows
    links: LinkColumns
    is_confirmed: Flags
    num_claimed: int
    added: list[Neighbor]
    added_by: list[int]


def _pair(
    identities: Identities,
    entries: Sequence[Entry],
    order: Sequence[int],
    place: Mapping[int, int],
) -> _Paired:
    numbers = PortNumbers()
    known = {at: numbers.add_device(place[at], identities.entities[at].claims) for at in order}
    num_claimed = len(numbers.facts)
    near, told = _find_ends(entries, known)
    answers = _answers(entries, near, told)
    added: list[Neighbor] = []
    added_by: list[int] = []
    far = [*told]
    for at, row in enumerate(entries):
        if told[at] != NO_PORT or near[at] == NO_PORT:
            continue
        keys = port_keys(row.neighbor.port_ids, row.neighbor.port_name)
        end = find_port(known[row.peer], keys)
        heard_by = answers.get((row.peer, near[at]), set())
        if end is None and len(heard_by) == 1:
            (end,) = heard_by
        if end is None:
            end = numbers.add(place[row.peer], far_port(row.neighbor), known[row.peer], keys)
            added.append(row.neighbor)
            added_by.append(place[row.device])
        far[at] = end
    rows = _rows(identities.entities, entries, place, near=near, far=far)
    rows = rows._replace(is_told=np.array(told, np.intp) != NO_PORT)
    is_confirmed = np.zeros(len(numbers.facts), np.bool_)
    is_confirmed[confirmed_ports(rows)] = True
    links = pair_ends(rows, is_confirmed)
    return _Paired(numbers.facts, rows, links, is_confirmed, num_claimed, added, added_by)


def _find_ends(entries: Sequence[Entry], known: Mapping[int, Known]) -> tuple[list[int], list[int]]:
    """Return for each entry the port that hears and the one heard, as far as claims tell it."""
    near: list[int] = []
    told: list[int] = []
    for row in entries:
        start = find_near(known[row.device], row.claim_port)
        end = None
        if start is not None:
            heard = row.neighbor
            end = find_port(known[row.peer], port_keys(heard.port_ids, heard.port_name))
        near.append(NO_PORT if start is None else start)
        told.append(NO_PORT if end is None else end)
    return near, told


def _answers(
    entries: Sequence[Entry], near: Sequence[int], told: Sequence[int]
) -> dict[tuple[int, int], set[int]]:
    """Return by device and far port the ports of the device that hear it.

    Only for far ports of which an entry does not tell who hears: a port that sends an id which its
    owner does not know (an alias, a bond's MAC) is known by its answer.
    """
    unanswered = {start for start, end in zip(near, told, strict=True) if end == NO_PORT}
    found: dict[tuple[int, int], set[int]] = defaultdict(set)
    for row, start, end in zip(entries, near, told, strict=True):
        if end != NO_PORT and end in unanswered:
            found[row.device, end].add(start)
    return found


def _rows(
    entities: Sequence[Entity],
    entries: Sequence[Entry],
    place: Mapping[int, int],
    *,
    near: Sequence[int],
    far: Sequence[int],
) -> HeardRows:
    can_confirm = [confirms(entity.claims) for entity in entities]
    return HeardRows(
        order=np.array([row.device for row in entries], np.intp),
        device=np.array([place[row.device] for row in entries], np.intp),
        peer=np.array([place[row.peer] for row in entries], np.intp),
        near=np.array(near, np.intp),
        far=np.array(far, np.intp),
        is_plain=np.array([row.is_plain for row in entries], np.bool_),
        is_told=np.ones(len(entries), np.bool_),
        can_confirm=np.array(
            [can_confirm[row.peer][row.neighbor.source is Source.IB] for row in entries], np.bool_
        ),
        style=np.array([style_code(style_of(row.neighbor)) for row in entries], np.uint8),
        rates=rate_column([row.claim_port.rate_bps for row in entries]),
    )


def confirms(claims: Iterable[Claim]) -> tuple[bool, bool]:
    """Return whether a device would report an Ethernet cable of its own, and an InfiniBand one.

    What an HCA is cabled to only a sweep tells, not the host's own report.
    """
    own = {claim.origin for claim in claims}
    return bool(own & {Origin.REPORT, Origin.CAPTURE}), Origin.SWEEP in own


class PortColumns(NamedTuple):
    """The columns of a fabric that are of ports; see `fabric_columns`."""

    port_devices: Index
    port_names: list[str]
    media: Codes
    states: Codes
    rates: Rates
    is_placed: Flags


def columns_of_ports(ports: Sequence[FabricPort]) -> PortColumns:
    """Return rows of ports as columns."""
    return PortColumns(
        port_devices=np.array([port.device for port in ports], np.intp),
        port_names=[port.name for port in ports],
        media=np.array([MEDIUM_CODES[port.medium] for port in ports], np.uint8),
        states=np.array([STATE_CODES[port.state] for port in ports], np.uint8),
        rates=rate_column([port.rate_bps for port in ports]),
        is_placed=np.array([port.gpu_distance is not None for port in ports], np.bool_),
    )


def _columns(
    devices: Sequence[FabricDevice], ports: Sequence[FabricPort], links: LinkColumns
) -> FabricColumns:
    return FabricColumns(
        names=[device.name for device in devices],
        nodes=[device.node for device in devices],
        kinds=np.array([KIND_CODES[device.kind] for device in devices], np.uint8),
        **columns_of_ports(ports)._asdict(),
        links=links,
    )


def fabric_of(
    columns: FabricColumns,
    devices: Sequence[FabricDevice],
    ports: Sequence[FabricPort],
    findings: tuple[Finding, ...],
) -> Fabric:
    """Return a fabric whose links are arrays, and rows for whoever looks at them."""
    return Fabric(
        devices=devices,
        ports=ports,
        links=link_rows(columns.links),
        findings=findings,
        columns=columns,
    )


def link_rows(links: LinkColumns) -> LazyRows[Link]:
    """Return links as rows, made when somebody looks."""

    def make(places: Sequence[int]) -> Iterator[Link]:
        chosen = np.fromiter(places, np.intp, len(places))
        a, b, one_sided, disputed, rates = (column[chosen].tolist() for column in links)
        return map(Link, a, b, one_sided, disputed, map(known_rate, rates))

    return LazyRows(len(links.a), make)
