"""Claims to devices: which claims describe the same device, and which cannot be joined.

A device is the union of claims whose strong ids overlap. Names are the weakest id: a name joins
claims only if no strong id contradicts it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from topology.identity.claim_facts import ClaimTable
from topology.identity.dispute_findings import Dispute, Verdict, describe_disputes
from topology.identity.node_names import NameKey, NodeNames, describe_rivals
from topology.model.claims import Claim, Key, Origin, claim_keys, duplicate_name_finding
from topology.model.errors import show
from topology.model.facts import DeviceKind, Finding
from topology.model.ids import Id, IdKind, short_name

AMBIGUOUS: Final = -1


@dataclass(slots=True)
class Entity:
    """One device under construction; used only while a fabric is built."""

    kind: DeviceKind = DeviceKind.UNKNOWN
    node: str | None = None
    names: tuple[str, ...] = ()
    heard_ids: frozenset[Id] = frozenset()
    """Ids that neighbors report for it."""
    table: ClaimTable = field(default_factory=ClaimTable, repr=False)
    """All claims of the fabric."""
    numbers: list[int] = field(default_factory=list)
    """The numbers of its claims in the table."""
    is_mention: bool = False
    """Known only as a neighbor of other devices."""
    has_no_key: bool = False
    """Whether its claims have no strong id: a capture is named after its file."""
    is_loose: bool = False
    """Whether neighbors cannot know it by its claims: it is no node, and has no chassis id."""
    silent_node: str | None = None
    """For HCAs of a sweep: the node of their name, if its report lists no HCA at all."""

    def absorb(self, number: int) -> None:
        """Add a claim about this device; a known kind and the first name stay."""
        claim, facts = self.table.claims[number], self.table.facts[number]
        self.numbers.append(number)
        if self.kind is DeviceKind.UNKNOWN:
            self.kind = facts.kind
        if self.node is not None:
            if claim.origin is Origin.SWEEP:
                return  # its description names no node
        else:
            self.node = facts.node
        if facts.name and facts.name not in self.names:
            self.names += (facts.name,)

    def ranked_names(self, names: NodeNames) -> Iterator[tuple[int, NameKey]]:
        """Yield the names that entries may use for it, each with its rank; 0 is best."""
        if self.node:
            yield 0, NameKey(self.node, is_node=True)
        if self.kind is DeviceKind.HOST and self.origins <= {Origin.SWEEP}:
            return
        rank = 2 if self.kind is DeviceKind.HOST else 1
        yield from ((rank, names.key(name)) for name in self.names if name)

    def unite(self, other: Entity) -> None:
        """Add what another entity says about the same device; a known kind and node stay."""
        self.numbers += other.numbers
        self.heard_ids |= other.heard_ids
        if self.has_no_key and not other.has_no_key and other.names:
            self.names = ()  # the name of a file, which may be any
        names = other.names if other.numbers or not self.names else ()
        self.names += tuple(name for name in names if name not in self.names)
        self.heard_ids |= {Id(IdKind.HOSTNAME, name) for name in other.names if name}
        self.kind = other.kind if self.kind is DeviceKind.UNKNOWN else self.kind
        self.node = self.node or other.node
        self.has_no_key = self.has_no_key and other.has_no_key
        self.is_loose = self.is_loose and other.is_loose and bool(other.numbers)
        self.is_mention = self.is_mention and other.is_mention

    @property
    def claims(self) -> list[Claim]:
        """Its claims, in the order of their numbers."""
        return [self.table.claims[number] for number in self.numbers]

    @property
    def ids(self) -> frozenset[Id]:
        """All ids of the device. Cost: builds the device of each report."""
        return self.heard_ids.union(*(claim.ids for claim in self.claims))

    @property
    def origins(self) -> set[Origin]:
        """The origins of the device's claims; empty if the device is known only as a neighbor."""
        claims = self.table.claims
        return {claims[number].origin for number in self.numbers}

    @property
    def model(self) -> str:
        """The first hardware description in its claims; empty if there is none."""
        models = (claim.device.model for claim in self.claims)
        return next(filter(None, models), "")

    @property
    def is_reporting(self) -> bool:
        """Whether a source describes the device itself, so a cable missing there is evidence."""
        return not self.origins <= {Origin.INVENTORY}


@dataclass(slots=True)
class Identities:
    """All devices of a fabric, and the owner of each strong key."""

    table: ClaimTable = field(default_factory=ClaimTable)
    """All claims."""
    names: NodeNames = field(default_factory=NodeNames)
    """The index that says which node a name means."""
    entities: list[Entity] = field(default_factory=list)
    owner: dict[int, int] = field(default_factory=dict)
    """64-bit hash of a key to entity, or AMBIGUOUS. Half a million keys as text are too large."""
    findings: list[Finding] = field(default_factory=list)
    disputes: list[Dispute] = field(default_factory=list)
    """Ids that two devices claim and that no evidence decides."""
    by_name: dict[NameKey, int] = field(default_factory=dict)
    """Name to entity, AMBIGUOUS if several share it; filled by `index_names`."""

    def forget_keys(self) -> None:
        """Drop the indexes by key and name: all references to entities are resolved."""
        self.owner.clear()
        self.by_name.clear()

    def index_names(self) -> None:
        """Fill `by_name` from the names of all entities.

        The name of a node comes first, then the name of a device that is not a host, then the name
        that a host gives itself, because a host may use the name of another device. The description
        of an HCA in a sweep is not used: LLDP frames do not contain it.
        """
        self.by_name.clear()
        ranks: dict[NameKey, int] = {}
        for entity_index, entity in enumerate(self.entities):
            for rank, name in set(entity.ranked_names(self.names)):
                best = ranks.get(name, rank)
                if rank < best or name not in ranks:
                    ranks[name], self.by_name[name] = rank, entity_index
                elif rank == best and self.by_name[name] != entity_index:
                    self.by_name[name] = AMBIGUOUS


def resolve_claims(table: ClaimTable, names: NodeNames) -> Identities:
    """Join claims to devices. Cost: O(n log n) in their ids, 1 µs each.

    An id never joins two devices that each describe themselves: the id then identifies neither
    device, unless the inventory assigns it to one of them. Source: design of identity by id sets;
    IEEE 802.1AB 9.2.7.7 for the reliability of a chassis id.

    Args:
        table: all claims, sorted by origin, name, ids and other content.
        names: the index that says which node a name means.
    """
    identities = Identities(table, names)
    swept: list[int] = []
    for number, claim in enumerate(table.claims):
        if claim.origin is Origin.SWEEP:
            swept.append(number)
        else:
            _add_anchor(identities, number)
    for number in swept:
        _add_swept(identities, number)
    _join_names(identities)
    identities.index_names()
    identities.findings += describe_disputes(identities.disputes)
    return identities


def _add_anchor(identities: Identities, number: int) -> None:
    facts = identities.table.facts[number]
    keys = facts.keys
    owner = identities.owner
    owned = (
        {} if owner.keys().isdisjoint(keys) else {key: owner[key] for key in keys if key in owner}
    )
    target_index = _find_entity(identities, number, owned)
    entity_index = _new_entity(identities) if target_index is None else target_index
    entity = identities.entities[entity_index]
    entity.absorb(number)
    entity.has_no_key = not keys
    entity.is_loose = entity.node is None and not facts.has_chassis_id
    disputed = {key: rival for key, rival in owned.items() if rival != entity_index}
    undisputed = [key for key in keys if key not in disputed] if disputed else keys
    owner.update(dict.fromkeys(undisputed, entity_index))
    if disputed:
        claim = identities.table.claims[number]
        for text_key in claim_keys(claim.device):
            rival_index = disputed.get(hash(text_key))
            if rival_index is not None:
                _record_disputed_id(identities, text_key, claim, (entity_index, rival_index))


def _find_entity(identities: Identities, number: int, owned: Mapping[int, int]) -> int | None:
    """Return the device that a claim describes, or None for a new device.

    The node name decides. A claim without a node name (a file that a person collected) describes
    the single device that already has its ids, unless that device has another claim of the same
    origin that describes other cables.

    Args:
        identities: all devices.
        number: the claim.
        owned: the device that has each of the claim's keys already, by the hash of the key.
    """
    claim, facts = identities.table.claims[number], identities.table.facts[number]
    for key in facts.name_keys:
        if key in owned:
            return owned[key]
    owners = set(owned.values())
    if facts.name_keys or len(owners) != 1 or AMBIGUOUS in owners:
        return None
    target_index = owners.pop()
    is_twin = any(
        earlier_claim.origin is claim.origin and not _is_same_description(earlier_claim, claim)
        for earlier_claim in identities.entities[target_index].claims
    )
    return None if is_twin else target_index


def _is_same_description(first: Claim, second: Claim) -> bool:
    """Return whether two claims of one origin are of one device that was read twice.

    They then have the same name, and most ports of the shorter claim hear the same in the other.
    """
    rows = [
        {
            (port.name, neighbor.device_ids, neighbor.port_ids)
            for port in claim.device.ports
            for neighbor in port.neighbors
        }
        for claim in (first, second)
    ]
    is_named_alike = short_name(first.name) == short_name(second.name) != ""
    return is_named_alike and 2 * len(rows[0] & rows[1]) > min(map(len, rows))


def _record_disputed_id(
    identities: Identities, key: Key, claim: Claim, rivals: tuple[int, int]
) -> None:
    """Record that two devices claim one id; it stays with the inventory's device, if any.

    Args:
        identities: all devices.
        key: the id.
        claim: the later claim.
        rivals: the device of the later claim, and the device that had the id first or AMBIGUOUS.
    """
    entity_index, rival_index = rivals
    is_listed = rival_index != AMBIGUOUS and claim.origin is not Origin.INVENTORY
    is_listed = is_listed and any(
        earlier_claim.origin is Origin.INVENTORY and key in claim_keys(earlier_claim.device)
        for earlier_claim in identities.entities[rival_index].claims
    )
    if not is_listed:
        identities.owner[hash(key)] = AMBIGUOUS
    rival = "" if rival_index == AMBIGUOUS else _display_name(identities.entities[rival_index])
    identities.disputes.append(
        Dispute(
            Verdict.KEPT_AS_LISTED if is_listed else Verdict.NEITHER,
            _display_name(identities.entities[entity_index]),
            rival,
            key,
        )
    )


def _add_swept(identities: Identities, number: int) -> None:
    owner = identities.owner
    keys = identities.table.facts[number].keys
    entity_index = AMBIGUOUS
    for key in keys:
        entity_index = owner.get(key, AMBIGUOUS)
        if entity_index != AMBIGUOUS:
            break
    else:
        entity_index = _new_entity(identities)
    identities.entities[entity_index].absorb(number)
    for key in keys:
        if key not in owner:
            owner[key] = entity_index


def _new_entity(identities: Identities) -> int:
    identities.entities.append(Entity(table=identities.table))
    return len(identities.entities) - 1


def _display_name(entity: Entity) -> str:
    return entity.node or next((show(name) for name in entity.names), "unnamed device")


def _join_names(identities: Identities) -> None:
    """Join devices that only a weak id connects: HCAs of one swept host, and hosts with nodes."""
    node_entities: dict[str, int] = {}
    keys: dict[str, NameKey] = {}  # the HCAs of a host have one name
    parts_by_name: dict[NameKey, list[int]] = defaultdict(list)
    merged_into: dict[int, int] = {}
    for entity_index, entity in enumerate(identities.entities):
        if entity.node is not None:
            node_entities[entity.node] = entity_index
    for entity_index, entity in enumerate(identities.entities):
        if entity.node is not None or entity.kind not in (DeviceKind.HOST, DeviceKind.UNKNOWN):
            continue
        node = _find_node_by_image(identities, entity)
        if node is not None and node in node_entities:
            merged_into[entity_index] = node_entities[node]
        elif entity.names:
            name = entity.names[0]
            if name not in keys:
                keys[name] = identities.names.key(name)
            parts_by_name[keys[name]].append(entity_index)
    for key in sorted(parts_by_name):
        node_entity = node_entities.get(key.name) if key.is_node else None
        merged_into.update(_join_one_name(identities, key.name, parts_by_name[key], node_entity))
    _merge_entities(identities, merged_into)


def _find_node_by_image(identities: Identities, entity: Entity) -> str | None:
    """Return the node that lists the system image GUID of a swept HCA.

    The hosts on a multi-host adapter share that GUID, so the name of another node contradicts it.
    """
    names, table = identities.names, identities.table
    images = {image for number in entity.numbers for image in table.facts[number].images}
    listed = {image: node for image in images if (node := names.by_image.get(image))}
    if not listed:
        return None
    named = next(filter(None, map(names.find, entity.names[:1])), None)
    for node in listed.values():
        if named not in (None, node):
            identities.disputes += (
                Dispute(Verdict.LISTING_LOST, node, named or "", (found.kind, found.value))
                for found in table.claims[entity.numbers[0]].ids
                if listed.get(hash(found.value)) == node
            )
            return None
    nodes = set(listed.values())
    return nodes.pop() if len(nodes) == 1 else None


def _join_one_name(
    identities: Identities, name: str, parts: list[int], node_entity: int | None
) -> Iterator[tuple[int, int]]:
    """Yield (entity, entity to merge it into) for the entities that share one name.

    Args:
        identities: all devices.
        name: the name of the node, or else that of the host.
        parts: the entities.
        node_entity: the node that the name means.
    """
    entities, table = identities.entities, identities.table
    is_swept = any(Origin.SWEEP in entities[part].origins for part in parts)
    num_entities = len(parts) if node_entity is None else len(parts) + 1
    if not is_swept and num_entities > 1:
        return  # `same_devices` compares what hears them
    rivals = identities.names.find_rivals(name) if node_entity is None else ()
    if is_swept and rivals:
        identities.findings.append(describe_rivals(name, rivals))
    labels = [
        label for entity_index in parts for label in set(_hca_labels(table, entities[entity_index]))
    ]
    is_one_host = len(labels) == len(set(labels)) and (len(parts) == 1 or len(labels) > 0)
    node = None if node_entity is None else entities[node_entity]
    if not is_one_host or (node is not None and _has_other_hcas(table, node)):
        if node is not None and is_one_host and not _lists_guids(table, node):
            _clear_swept_names(identities, parts, silent_node=node.node)
            return
        identities.findings.append(duplicate_name_finding(name, len(parts)))
        _clear_swept_names(identities, parts)
        return
    target_index = parts[0] if node_entity is None else node_entity
    yield from (
        (entity_index, target_index) for entity_index in parts if entity_index != target_index
    )


def _has_other_hcas(table: ClaimTable, node: Entity) -> bool:
    """Return whether the ids of a node say that no further HCA is its own.

    An inventory that lists no GUID says nothing about HCAs; a node's own report lists all of them.
    """
    if _lists_guids(table, node):
        return True
    every = [table.facts[number] for number in node.numbers]
    is_only_named = any(facts.name_keys for facts in every) and not any(
        facts.has_hardware_id for facts in every
    )
    return Origin.REPORT in node.origins and not is_only_named


def _lists_guids(table: ClaimTable, node: Entity) -> bool:
    return any(table.facts[number].has_guid for number in node.numbers)


def _hca_labels(table: ClaimTable, entity: Entity) -> list[str]:
    return [
        label
        for number in entity.numbers
        if table.claims[number].origin is Origin.SWEEP
        if (label := table.facts[number].label) is not None
    ]


def _clear_swept_names(
    identities: Identities, parts: Sequence[int], *, silent_node: str | None = None
) -> None:
    """Take the names from the HCAs of a sweep that do not say which host they are in."""
    for entity_index in parts:
        entity = identities.entities[entity_index]
        if Origin.SWEEP in entity.origins:
            entity.names = ()
            entity.silent_node = silent_node


def _merge_entities(identities: Identities, merged_into: Mapping[int, int]) -> None:
    """Merge entities into others, and number the remaining entities anew."""
    for entity_index, target_index in merged_into.items():
        for claim in identities.entities[entity_index].numbers:
            identities.entities[target_index].absorb(claim)
    remaining_indices = [
        entity_index
        for entity_index in range(len(identities.entities))
        if entity_index not in merged_into
    ]
    # AMBIGUOUS is -1, so it reads the last entry.
    new_indices = [AMBIGUOUS] * (len(identities.entities) + 1)
    for new_index, entity_index in enumerate(remaining_indices):
        new_indices[entity_index] = new_index
    # A target is never merged itself, so its new index is known.
    for entity_index, target_index in merged_into.items():
        new_indices[entity_index] = new_indices[target_index]
    owner = identities.owner
    identities.owner = dict(zip(owner, map(new_indices.__getitem__, owner.values()), strict=True))
    identities.entities = [identities.entities[entity_index] for entity_index in remaining_indices]
