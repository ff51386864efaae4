"""Claims to devices: which claims speak of one device, and what cannot be joined.

A device is the union of claims whose strong ids overlap. The strong ids are node names, node
GUIDs, port GUIDs and usable MACs (a chassis id of subtype mac is one); node and port GUIDs are
separate name spaces. Names are the weakest id: they join only what no strong id objects to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import groupby

from topology.errors import show
from topology.facts import Device, DeviceKind, Finding, FindingKind, Severity
from topology.ids import Id, IdKind, parse_node_name, short_name

Key = tuple[str, str]
AMBIGUOUS = -1


class Origin(IntEnum):
    """Who makes a claim; the lower, the more it weighs."""

    INVENTORY = 0
    """The operator's list of nodes."""
    REPORT = 1
    """A device about itself, by its agent or an SNMP walk."""
    CAPTURE = 2
    """A device about itself, by a file that people collected."""
    SWEEP = 3
    """A subnet sweep about a device."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One device as one source describes it."""

    device: Device
    origin: Origin


@dataclass(frozen=True, slots=True)
class SweptClaims:
    """All claims of one sweep at once, so that they need not be made one by one."""

    devices: Sequence[Device]

    def __iter__(self) -> Iterator[Claim]:
        """Yield each as a claim of its own."""
        return (Claim(device, Origin.SWEEP) for device in self.devices)


def spell_out(claims: Iterable[Claim | SweptClaims]) -> Iterator[Claim]:
    """Yield all claims, those of sweeps one by one."""
    for claim in claims:
        yield from claim if isinstance(claim, SweptClaims) else (claim,)


@dataclass(slots=True)
class Entity:
    """One device while it is put together; private to the building of a fabric."""

    kind: DeviceKind = DeviceKind.UNKNOWN
    node: str | None = None
    names: list[str] = field(default_factory=list)
    ids: set[Id] = field(default_factory=set)
    claims: list[Claim] = field(default_factory=list)
    is_mention: bool = False
    """Known only from what others hear."""

    def absorb(self, claim: Claim) -> None:
        """Take in a claim; a known kind and the first name stay."""
        self.claims.append(claim)
        self.ids.update(claim.device.ids)
        if self.kind is DeviceKind.UNKNOWN:
            self.kind = claim.device.kind
        if claim.device.name:
            self.names.append(claim.device.name)
        for found in claim.device.ids:
            if found.kind is IdKind.NODE_NAME and self.node is None:
                self.node = parse_node_name(found.value)

    @property
    def origins(self) -> set[Origin]:
        """Who makes claims about it; empty where only others hear it."""
        return {claim.origin for claim in self.claims}

    @property
    def model(self) -> str:
        """What it is, as the first source that says it says it; empty if none does."""
        return next((claim.device.model for claim in self.claims if claim.device.model), "")

    @property
    def is_reporting(self) -> bool:
        """Whether the device speaks for itself, so that its silence about a cable means much."""
        return any(claim.origin is not Origin.INVENTORY for claim in self.claims)


_STRONG = frozenset({IdKind.NODE_GUID, IdKind.PORT_GUID, IdKind.NODE_NAME, IdKind.MAC})
_LLDP = frozenset({IdKind.CHASSIS_ID, IdKind.PORT_ID})


def strong_key(found: Id) -> Key | None:
    """Return the key under which an id joins devices, None for weak ids."""
    kind, value, subtype = found
    if kind in _STRONG:
        return (kind, value)
    return (IdKind.MAC, value) if subtype == "mac" and kind in _LLDP else None


def claim_keys(device: Device) -> list[Key]:
    """Return the strong keys of a device and its ports, node GUIDs first, without repeats."""
    keys: dict[Key, None] = {}
    for found in device.ids:
        key = strong_key(found)
        if key is not None:
            keys[key] = None
    for port in device.ports:
        for found in port.ids:
            if found.kind is IdKind.PORT_GUID or found.kind is IdKind.MAC:
                keys[(found.kind, found.value)] = None
            elif found.kind is IdKind.NODE_GUID:
                keys[(IdKind.NODE_GUID, found.value)] = None
    return list(keys)


@dataclass(slots=True)
class Identities:
    """All devices of a fabric, and who owns which strong key."""

    entities: list[Entity] = field(default_factory=list)
    owner: dict[Key, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    by_name: dict[str, int] = field(default_factory=dict)
    """Short name to entity, AMBIGUOUS where several carry it; filled by `index_names`."""

    def index_names(self) -> None:
        """Make `by_name` from the names of all entities."""
        self.by_name.clear()
        for at, entity in enumerate(self.entities):
            for name in {short_name(name) for name in [*entity.names, entity.node or ""] if name}:
                self.by_name[name] = AMBIGUOUS if name in self.by_name else at


def _claim_order(claim: Claim) -> tuple[object, ...]:
    device = claim.device
    return (claim.origin, device.name, device.ids, len(device.ports))


def sort_claims(claims: Iterable[Claim]) -> Iterator[Claim]:
    """Yield claims in an order that their content alone decides."""
    ordered = sorted(claims, key=_claim_order)
    for _, alike in groupby(ordered, key=_claim_order):
        group = list(alike)  # nearly always one; spelling it out for all would cost seconds
        yield from group if len(group) == 1 else sorted(group, key=repr)


def resolve_claims(ordered: Sequence[Claim]) -> Identities:
    """Join claims to devices, in the order of `sort_claims`; O(n log n) in their ids.

    A union that would join two devices that speak for themselves is refused: the id then
    identifies nobody, except where the inventory gives it to one of them. Source: design of
    identity by id sets, IEEE 802.1AB 9.2.7.7 for what a chassis id is worth.
    """
    found = Identities()
    for claim in ordered:
        if claim.origin is not Origin.SWEEP:
            _add_anchor(found, claim)
    for claim in ordered:
        if claim.origin is Origin.SWEEP:
            _add_swept(found, claim)
    _join_names(found)
    found.index_names()
    return found


def _add_anchor(found: Identities, claim: Claim) -> None:
    keys = claim_keys(claim.device)
    owned = {key: found.owner[key] for key in keys if key in found.owner}
    home = _home(found, claim, owned)
    at = _new_entity(found) if home is None else home
    found.entities[at].absorb(claim)
    for key in keys:
        other = owned.get(key, at)
        if other == at:
            found.owner[key] = at
        else:
            _refuse(found, key, claim, (at, other))


def _home(found: Identities, claim: Claim, owned: Mapping[Key, int]) -> int | None:
    """Return the device that a claim belongs to, None for a new one.

    The node's name decides. A claim without one (a file that people collected) is of the one
    device that has its ids already, unless that spoke for itself in the same way.
    """
    named = [at for key, at in owned.items() if key[0] == IdKind.NODE_NAME]
    if named:
        return named[0]
    owners = set(owned.values())
    has_name = any(one.kind is IdKind.NODE_NAME for one in claim.device.ids)
    if has_name or len(owners) != 1 or AMBIGUOUS in owners:
        return None
    home = owners.pop()
    is_twin = any(other.origin is claim.origin for other in found.entities[home].claims)
    return None if is_twin else home


def _refuse(found: Identities, key: Key, claim: Claim, rivals: tuple[int, int]) -> None:
    """Record that two devices claim one id; the inventory's word stands, else nobody has it.

    Args:
        found: all devices.
        key: the id.
        claim: what claims it now.
        rivals: the device of this claim, and the one that had the id first or AMBIGUOUS.
    """
    at, other = rivals
    is_listed = other != AMBIGUOUS and claim.origin is not Origin.INVENTORY
    is_listed = is_listed and any(
        earlier.origin is Origin.INVENTORY and key in claim_keys(earlier.device)
        for earlier in found.entities[other].claims
    )
    if not is_listed:
        found.owner[key] = AMBIGUOUS
    names = sorted(_title(found.entities[one]) for one in rivals if one != AMBIGUOUS)
    who = f"{' and '.join(names)} both claim" if len(names) > 1 else f"{names[0]} also claims"
    found.findings.append(
        Finding(
            kind=FindingKind.DUPLICATE_ID,
            device=_title(found.entities[at]),
            port=None,
            severity=Severity.ERROR,
            message=(
                f"{who} {key[0]} {show(key[1])}; "
                + ("the inventory's claim stands. " if is_listed else "it identifies neither. ")
                + "Check for cloned firmware or a misbehaving node."
            ),
        )
    )


def _add_swept(found: Identities, claim: Claim) -> None:
    keys = claim_keys(claim.device)
    owners = [at for key in keys if (at := found.owner.get(key, AMBIGUOUS)) != AMBIGUOUS]
    at = owners[0] if owners else _new_entity(found)
    found.entities[at].absorb(claim)
    for key in keys:
        found.owner.setdefault(key, at)


def _new_entity(found: Identities) -> int:
    found.entities.append(Entity())
    return len(found.entities) - 1


def _title(entity: Entity) -> str:
    return entity.node or next((show(name) for name in entity.names), "unnamed device")


def _join_names(found: Identities) -> None:
    """Join what only names can: the HCAs of one swept host, and hosts with listed nodes."""
    named: dict[str, list[int]] = defaultdict(list)
    listed: dict[str, list[int]] = defaultdict(list)
    for at, entity in enumerate(found.entities):
        if entity.node is not None:
            listed[short_name(entity.node)].append(at)
        elif entity.names and entity.kind in (DeviceKind.HOST, DeviceKind.UNKNOWN):
            named[short_name(entity.names[0])].append(at)
    gone: dict[int, int] = {}
    for name in sorted(named):
        gone.update(_join_one_name(found, name, named[name], listed.get(name, [])))
    _merge(found, gone)


def _join_one_name(
    found: Identities, name: str, parts: list[int], nodes: list[int]
) -> Iterator[tuple[int, int]]:
    """Yield (entity, entity that it is part of) for the entities that carry one name."""
    entities = found.entities
    labels = [label for at in parts for label in set(_hca_labels(entities[at]))]
    is_one_host = len(labels) == len(set(labels)) and (len(parts) == 1 or len(labels) > 0)
    has_objection = len(nodes) == 1 and any(
        strong_key(one) for one in entities[nodes[0]].ids if one.kind != IdKind.NODE_NAME
    )
    if not is_one_host or len(nodes) > 1 or has_objection:
        _refuse_name(found, name, parts)
        return
    home = nodes[0] if nodes else parts[0]
    yield from ((at, home) for at in parts if at != home)


def _hca_labels(entity: Entity) -> list[str]:
    return [
        port.rdma_device or port.name
        for claim in entity.claims
        if claim.origin is Origin.SWEEP
        for port in claim.device.ports[:1]
    ]


def _refuse_name(found: Identities, name: str, parts: Sequence[int]) -> None:
    found.findings.append(same_name(name, len(parts)))
    for at in parts:
        if any(claim.origin is Origin.SWEEP for claim in found.entities[at].claims):
            found.entities[at].names.clear()


def same_name(name: str, num_devices: int) -> Finding:
    """Return the finding about devices that their name cannot tell apart."""
    kept = show(name)
    return Finding(
        kind=FindingKind.DUPLICATE_NAME,
        device=kept,
        port=None,
        severity=Severity.WARNING,
        message=(
            f"{num_devices} device(s) called {kept} cannot be told apart from each other or "
            "from a listed node by name. Give every host its own name, run the agent "
            "there, or list its GUIDs or MACs in the inventory."
        ),
    )


def _merge(found: Identities, gone: Mapping[int, int]) -> None:
    for at, home in gone.items():
        for claim in found.entities[at].claims:
            found.entities[home].absorb(claim)
    kept = [at for at in range(len(found.entities)) if at not in gone]
    place = {at: index for index, at in enumerate(kept)}
    place.update({at: place[home] for at, home in gone.items()})
    found.owner.update(
        {key: place[at] for key, at in found.owner.items() if at != AMBIGUOUS},
    )
    found.entities = [found.entities[at] for at in kept]
