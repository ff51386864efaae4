"""Claims to a Fabric: devices with one identity each, and links paired from both ends.

Nothing is dropped: a cable that only one end reports is a link with one side, parallel cables
stay parallel, and what contradicts itself becomes a finding. Which links matter to jobs is
decided in `planes`, what they mean in `tiers`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from topology.device_names import display_names, sort_names
from topology.errors import show
from topology.facts import (
    DeviceKind,
    Finding,
    GpuDistance,
    Medium,
    Neighbor,
    Port,
    PortName,
    PortState,
    Source,
    sort_findings,
)
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
    strong_key,
)
from topology.ids import Id, IdKind
from topology.kinds import Heard, settle_kinds, settle_nodes
from topology.quarantine import Undisputed, settle_disputes

if TYPE_CHECKING:
    from topology.fabric_columns import FabricColumns


_NOBODY: Final[Mapping[Key, str]] = MappingProxyType({})


class FabricDevice(NamedTuple):
    """One device; its index in `Fabric.devices` is its number everywhere else."""

    name: str
    """Unique: the node name, else the device's own, else its lowest id."""
    kind: DeviceKind
    node: str | None
    """The cluster node it is, None for switches and for hosts that are none."""
    ids: tuple[Id, ...]
    is_reporting: bool = True
    """It speaks for itself, so that its silence about a cable means much."""
    has_report: bool = False
    """An agent reports for it; only that tells what no cable of the network shows."""


class FabricPort(NamedTuple):
    """One port; its index in `Fabric.ports` is its number in links."""

    device: int
    name: str
    medium: Medium
    state: PortState
    rate_bps: int | None
    rdma_device: str | None
    gpu_distance: GpuDistance | None
    firmware_lldp: bool | None = None
    """Whether its card eats LLDP frames; None where nothing tells."""
    subnet: str | None = None
    """Prefix of its InfiniBand subnet, where its owner tells."""


class Link(NamedTuple):
    """One cable between two ports, `a` < `b`."""

    a: int
    b: int
    is_one_sided: bool
    """Only one end reports it although the other could have."""
    is_disputed: bool
    """The end that does not report it is on another cable, which both of its ends confirm."""
    rate_bps: int | None
    """The lower of what the two ends say."""


@dataclass(frozen=True, slots=True)
class Fabric:
    """Everything that is known about how devices are wired; devices in natural name order."""

    devices: Sequence[FabricDevice]
    ports: Sequence[FabricPort]
    """Grouped by device."""
    links: Sequence[Link]
    """Sorted by ports."""
    findings: tuple[Finding, ...]
    columns: FabricColumns | None = field(default=None, compare=False, repr=False)
    """The same as arrays, where it was made of arrays; see `fabric_columns.columns_of`."""

    def port_name(self, port: int) -> PortName:
        """Return a port as people find it."""
        found = self.ports[port]
        return PortName(self.devices[found.device].name, found.name)

    def owners(self) -> dict[Key, str]:
        """Return the node that has an id, for ids that one node alone has."""
        found: dict[Key, set[str]] = defaultdict(set)
        for device in self.devices:
            for key in map(strong_key, device.ids if device.node else ()):
                if key is not None and device.node:
                    found[key].add(device.node)
        return {key: next(iter(nodes)) for key, nodes in found.items() if len(nodes) == 1}

    def show_link(self, link: Link) -> str:
        """Return both ends of a link as a message names them."""
        ends = (self.port_name(link.a), self.port_name(link.b))
        return " and ".join(f"{end.device} port {end.port}" for end in ends)


def build_fabric(
    claims: Iterable[Claim | SweptClaims], *, first_owners: Mapping[Key, str] = _NOBODY
) -> Fabric:
    """Join claims to one fabric. The order of claims does not matter.

    Cost: O(n log n) in ports and neighbors, 20 µs each; 1 µs where all claims are of sweeps
    without contradictions, which are then joined as columns, to the same fabric.

    Args:
        claims: of all origins.
        first_owners: by id the node that had it before, for ids that two claim now.
    """
    claims = list(claims)
    swept = [claim for claim in claims if isinstance(claim, SweptClaims)]
    if swept and len(swept) == len(claims):
        from topology.fabric_swept import build_swept  # noqa: PLC0415 - numpy for large sweeps only

        found = build_swept(swept)
        if found is not None:
            return found
    return _build_carefully(settle_disputes(sort_claims(spell_out(claims)), first_owners))


def _build_carefully(settled: Undisputed) -> Fabric:
    identities = resolve_claims(settled.claims)
    heard = list(_hear(identities))
    settle_kinds(identities.entities, map(_view, heard))
    findings = settle_nodes(identities.entities)
    names = display_names(identities.entities)
    order = sort_names(names)
    ports = _number_ports(identities, order)
    cables = _pair(identities, ports, heard)
    return Fabric(
        devices=tuple(_device(identities.entities[at], names[at]) for at in order),
        ports=tuple(ports.facts),
        links=tuple(_links(cables)),
        findings=sort_findings([*settled.findings, *identities.findings, *findings]),
    )


class _Heard(NamedTuple):
    device: int
    port: int
    """Running number of the hearing port over all claims."""
    claim_port: Port
    peer: int
    neighbor: Neighbor


def _hear(identities: Identities) -> Iterator[_Heard]:
    """Yield every neighbor entry with its device resolved; LLDP wins over CDP and the like."""
    number = 0
    for at in range(len(identities.entities)):
        for claim in identities.entities[at].claims:
            for port in _in_order(claim.device.ports):
                number += 1
                for neighbor in _best_source(port.neighbors):
                    yield _Heard(at, number, port, identities.resolve(neighbor), neighbor)


def _view(row: _Heard) -> Heard:
    named = (one.subtype for one in row.neighbor.port_ids if one.kind is IdKind.PORT_ID)
    return Heard(row.device, row.port, row.peer, style=next(named, ""))


def _best_source(neighbors: Sequence[Neighbor]) -> Sequence[Neighbor]:
    if len(neighbors) < 2:  # noqa: PLR2004 - one neighbor needs no choice
        return neighbors
    best = [one for one in neighbors if one.source in (Source.LLDP, Source.IB)]
    return sorted(best or neighbors, key=repr)


def _in_order(ports: Sequence[Port]) -> Sequence[Port]:
    """Return ports in an order that their facts alone decide, in nearly all cases the natural one.

    Sources give them in natural order; where one does not, nothing may depend on it.
    """
    return sorted(ports, key=lambda port: (len(port.name), port.name, port.ids))


def _device(entity: Entity, name: str) -> FabricDevice:
    ids = tuple(sorted(entity.ids))
    has_report = Origin.REPORT in entity.origins
    return FabricDevice(name, entity.kind, entity.node, ids, entity.is_reporting, has_report)


_PortKey = tuple[str, str]


@dataclass(slots=True)
class _Ports:
    """The ports of all devices while they are numbered."""

    place: dict[int, int]
    """Entity to device number."""
    facts: list[FabricPort] = field(default_factory=list)
    known: list[dict[_PortKey, int]] = field(default_factory=list)
    """Per entity: key to port; -1 where several ports share the key, as bond slaves do."""

    def find(self, entity: int, keys: Iterable[_PortKey]) -> int | None:
        known = self.known[entity]
        for key in keys:
            at = known.get(key)
            if at is not None and at >= 0:
                return at
        return None

    def add(self, entity: int, port: Port, keys: Iterable[_PortKey]) -> int:
        self.facts.append(
            FabricPort(
                device=self.place[entity],
                name=show(port.name),
                medium=port.medium,
                state=port.state,
                rate_bps=port.rate_bps,
                rdma_device=port.rdma_device,
                gpu_distance=port.gpu_distance,
                firmware_lldp=port.firmware_lldp,
                subnet=port.subnet,
            )
        )
        at = len(self.facts) - 1
        self.learn(entity, at, keys)
        return at

    def learn(self, entity: int, at: int, keys: Iterable[_PortKey]) -> None:
        known = self.known[entity]
        for key in keys:
            known[key] = at if known.get(key, at) == at else -1

    def refine(self, at: int, port: Port) -> None:
        """Fill in what an earlier claim about the same port left open."""
        old = self.facts[at]
        self.facts[at] = old._replace(
            rate_bps=old.rate_bps if old.rate_bps is not None else port.rate_bps,
            state=old.state if old.state is not PortState.UNKNOWN else port.state,
        )


def _port_keys(ids: Iterable[Id], name: str) -> list[_PortKey]:
    """Return the keys of a port within its device, strongest first (GUID or MAC, then names)."""
    strong: list[_PortKey] = []
    named: list[_PortKey] = []
    for found in ids:
        if found.kind is IdKind.NODE_GUID:
            strong.insert(0, ("guid", f"{found.value}/{found.subtype}"))
        elif found.kind is IdKind.PORT_GUID or found.kind is IdKind.MAC:
            strong.append((found.kind, found.value))
        elif found.kind is IdKind.IFNAME or found.kind is IdKind.PORT_ID:
            named.append(("name", found.value))
        elif found.kind is IdKind.IFINDEX:
            named.append((found.kind, found.value))
    if name:
        named.append(("name", name))
    return strong + named


def _number_ports(identities: Identities, order: Sequence[int]) -> _Ports:
    ports = _Ports(place={at: number for number, at in enumerate(order)})
    ports.known = [{} for _ in identities.entities]
    for at in order:
        for number, claim in enumerate(identities.entities[at].claims):
            for port in _in_order(claim.device.ports):
                keys = _port_keys(port.ids, port.name)
                old = ports.find(at, keys) if number else None
                if old is None:
                    ports.add(at, port, keys)
                else:
                    ports.learn(at, old, keys)
                    ports.refine(old, port)
    return ports


@dataclass(slots=True)
class _Cable:
    """What was heard about one pair of ports."""

    ends: set[int] = field(default_factory=set)
    """Ports whose devices report it."""
    can_confirm: set[int] = field(default_factory=set)
    rates: list[int] = field(default_factory=list)


def _pair(
    identities: Identities, ports: _Ports, heard: Iterable[_Heard]
) -> dict[tuple[int, int], _Cable]:
    cables: dict[tuple[int, int], _Cable] = defaultdict(_Cable)
    answers: dict[tuple[int, int], set[int]] = defaultdict(set)
    rows: list[tuple[_Heard, int, int | None]] = []
    for row in heard:
        near = _near_port(ports, row)
        if near is None:
            continue
        told = ports.find(row.peer, _port_keys(row.neighbor.port_ids, row.neighbor.port_name))
        rows.append((row, near, told))
        if told is not None:
            answers[row.device, told].add(near)
    confirming = _confirming(identities.entities)
    for row, near, told in rows:
        far = _far_port(ports, row, answers.get((row.peer, near), ())) if told is None else told
        if near == far:
            continue
        cable = cables[min(near, far), max(near, far)]
        cable.ends.add(near)
        if row.peer in confirming[row.neighbor.source is Source.IB]:
            cable.can_confirm.add(far)
        if row.claim_port.rate_bps is not None:
            cable.rates.append(row.claim_port.rate_bps)
    return cables


def _near_port(ports: _Ports, row: _Heard) -> int | None:
    at = ports.find(row.device, (("name", row.claim_port.name),))
    if at is not None:
        return at
    return ports.find(row.device, _port_keys(row.claim_port.ids, row.claim_port.name))


def _far_port(ports: _Ports, row: _Heard, answers: Collection[int]) -> int:
    """Return the port that a neighbor entry speaks of, a new one where nothing tells.

    Args:
        ports: all ports.
        row: the entry.
        answers: ports of that neighbor which hear the port of this entry: a port that sends an
            id which its owner does not know (an alias, a bond's MAC) is known by its answer.
    """
    neighbor = row.neighbor
    keys = _port_keys(neighbor.port_ids, neighbor.port_name)
    at = ports.find(row.peer, keys)
    if at is not None:
        return at
    if len(answers) == 1:
        return next(iter(answers))
    name = neighbor.port_name or next((one.value for one in neighbor.port_ids), "")
    medium = Medium.INFINIBAND if neighbor.source is Source.IB else Medium.ETHERNET
    return ports.add(row.peer, Port(name=name or "unknown", medium=medium), keys)


def _confirming(entities: Sequence[Entity]) -> tuple[set[int], set[int]]:
    """Return which devices would report an Ethernet cable of theirs, and which an InfiniBand one.

    What an HCA is cabled to only a sweep tells, not the host's own report.
    """
    origins = [{claim.origin for claim in entity.claims} for entity in entities]
    spoken = {at for at, own in enumerate(origins) if own & {Origin.REPORT, Origin.CAPTURE}}
    swept = {at for at, own in enumerate(origins) if Origin.SWEEP in own}
    return spoken, swept


def _links(cables: dict[tuple[int, int], _Cable]) -> Iterator[Link]:
    confirmed = {port for pair, cable in cables.items() if len(cable.ends) > 1 for port in pair}
    for (a, b), cable in sorted(cables.items()):
        quiet = {a, b} - cable.ends
        yield Link(
            a=a,
            b=b,
            is_one_sided=bool(quiet) and quiet <= cable.can_confirm,
            is_disputed=bool(quiet & confirmed),
            rate_bps=min(cable.rates, default=None),
        )
