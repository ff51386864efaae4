"""Claims to devices: which claims speak of one device, and what cannot be joined.

A device is the union of claims whose strong ids overlap. Names are the weakest id: they join only
what no strong id objects to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from topology.model.claims import Claim, Key, Origin, claim_keys, duplicate_name_finding, strong_key
from topology.model.errors import show
from topology.model.facts import Device, DeviceKind, Finding, FindingKind, Severity
from topology.model.ids import Id, IdKind, parse_node_name, short_name

AMBIGUOUS: Final = -1


@dataclass(slots=True)
class Entity:
    """One device while it is put together; private to the building of a fabric."""

    kind: DeviceKind = DeviceKind.UNKNOWN
    node: str | None = None
    names: list[str] = field(default_factory=list)
    heard_ids: set[Id] = field(default_factory=set)
    """Ids that others tell of it."""
    claims: list[Claim] = field(default_factory=list)
    is_mention: bool = False
    """Known only from what others hear."""

    def absorb(self, claim: Claim, device: Device) -> None:
        """Take in a claim of this device; a known kind and the first name stay."""
        self.claims.append(claim)
        if self.kind is DeviceKind.UNKNOWN:
            self.kind = device.kind
        if device.name and device.name not in self.names:
            self.names.append(device.name)
        for found in device.ids:
            if found.kind is IdKind.NODE_NAME and self.node is None:
                self.node = parse_node_name(found.value)

    @property
    def ids(self) -> set[Id]:
        """All its ids. Cost: that of spelling out its claims."""
        return self.heard_ids.union(*(claim.device.ids for claim in self.claims))

    @property
    def origins(self) -> set[Origin]:
        """Who makes claims about it; empty where only others hear it."""
        return {claim.origin for claim in self.claims}

    @property
    def model(self) -> str:
        """What it is, as the first source that says it says it; empty if none does."""
        models = (claim.device.model for claim in self.claims)
        return next(filter(None, models), "")

    @property
    def is_reporting(self) -> bool:
        """Whether the device speaks for itself, so that its silence about a cable means much."""
        return any(claim.origin is not Origin.INVENTORY for claim in self.claims)


@dataclass(slots=True)
class Identities:
    """All devices of a fabric, and who owns which strong key."""

    entities: list[Entity] = field(default_factory=list)
    owner: dict[int, int] = field(default_factory=dict)
    """By the hash of a key, of 64 bits: the texts of half a million keys are not kept."""
    findings: list[Finding] = field(default_factory=list)
    by_name: dict[str, int] = field(default_factory=dict)
    """Short name to entity, AMBIGUOUS where several carry it; filled by `index_names`."""

    def forget_keys(self) -> None:
        """Keep no more than the entities: all that speaks of them was resolved."""
        self.owner.clear()
        self.by_name.clear()

    def index_names(self) -> None:
        """Make `by_name` from the names of all entities."""
        self.by_name.clear()
        for at, entity in enumerate(self.entities):
            for name in {short_name(name) for name in [*entity.names, entity.node or ""] if name}:
                self.by_name[name] = AMBIGUOUS if name in self.by_name else at


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
    device = claim.device
    keys = claim_keys(device)
    owned = {key: at for key in keys if (at := found.owner.get(hash(key))) is not None}
    home = _find_entity(found, Claim(device, claim.origin), owned)
    at = _new_entity(found) if home is None else home
    found.entities[at].absorb(claim, device)
    for key in keys:
        other = owned.get(key, at)
        if other == at:
            found.owner[hash(key)] = at
        else:
            _record_disputed_id(found, key, claim, (at, other))


def _find_entity(found: Identities, claim: Claim, owned: Mapping[Key, int]) -> int | None:
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


def _record_disputed_id(found: Identities, key: Key, claim: Claim, rivals: tuple[int, int]) -> None:
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
        found.owner[hash(key)] = AMBIGUOUS
    names = sorted(_display_name(found.entities[one]) for one in rivals if one != AMBIGUOUS)
    who = f"{' and '.join(names)} both claim" if len(names) > 1 else f"{names[0]} also claims"
    found.findings.append(
        Finding(
            kind=FindingKind.DUPLICATE_ID,
            device=_display_name(found.entities[at]),
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
    device = claim.device
    keys = [hash(key) for key in claim_keys(device)]
    owners = [at for key in keys if (at := found.owner.get(key, AMBIGUOUS)) != AMBIGUOUS]
    at = owners[0] if owners else _new_entity(found)
    found.entities[at].absorb(claim, device)
    for key in keys:
        found.owner.setdefault(key, at)


def _new_entity(found: Identities) -> int:
    found.entities.append(Entity())
    return len(found.entities) - 1


def _display_name(entity: Entity) -> str:
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
    _merge_entities(found, gone)


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
        _record_shared_name(found, name, parts)
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


def _record_shared_name(found: Identities, name: str, parts: Sequence[int]) -> None:
    found.findings.append(duplicate_name_finding(name, len(parts)))
    for at in parts:
        if any(claim.origin is Origin.SWEEP for claim in found.entities[at].claims):
            found.entities[at].names.clear()


def _merge_entities(found: Identities, gone: Mapping[int, int]) -> None:
    for at, home in gone.items():
        for claim in found.entities[at].claims:
            found.entities[home].absorb(claim, claim.device)
    kept = [at for at in range(len(found.entities)) if at not in gone]
    place = {at: index for index, at in enumerate(kept)}
    place.update({at: place[home] for at, home in gone.items()})
    found.owner.update(
        {key: place[at] for key, at in found.owner.items() if at != AMBIGUOUS},
    )
    found.entities = [found.entities[at] for at in kept]
