"""Decide which device owns an id that two devices claim, before claims are joined.

A report is what a node says about itself, and the node may be broken or hostile. The claimants of a
disputed id are compared with these kinds of evidence, in this order:

1. A cable: a port at the other end hears the id, and the claimant hears that port.
2. A name: a port of another device hears the id under the claimant's node name.
3. A sweep: it found the id on a host with the claimant's name.
4. A walk: the claimant is a switch, whose report comes from a walk and not from an agent.
5. The last generation: the claimant already had the id.

Each kind of evidence that confirms any remaining claimant excludes the others. If one claimant
remains, the others lose the id and keep their undisputed ids. If several do, `device_resolution`
lets the id identify no device.

An id that the inventory lists stays with its node, unless two witnesses contradict the list: the
node itself reports other ids and another node reports this one, or a sweep and the report of the
node that it names agree, or the list and the sweep exchange nodes. A node can only report itself
and describe its own HCAs, so no node can bring this about for the ids of another.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from topology.identity.claim_facts import ClaimFacts, ClaimTable, node_of
from topology.identity.dispute_findings import Dispute, Verdict, describe_disputes
from topology.identity.disputed_ids import (
    MIN_HOSTS,
    claimant_of,
    find_disputed_hashes,
    neighbor_keys,
)
from topology.model.claims import Claim, Key, Origin, PreviousOwners, claim_keys, strong_key
from topology.model.errors import show
from topology.model.facts import Device, DeviceKind, Finding, Neighbor, Port
from topology.model.ids import Id, IdKind, short_name


@dataclass(frozen=True, slots=True)
class UndisputedClaims:
    """The claims that lost or gained ids, and why."""

    changed_claims: Mapping[int, Claim]
    """By the number of the claim: the claim with the ids that it has now."""
    findings: tuple[Finding, ...]
    contested_keys: frozenset[Key] = frozenset()
    """Ids that several devices claim, or that devices other than their claimant's neighbors hear; a
    new cable may change their owner."""


@dataclass
class _DisputeEvidence:
    """The evidence in all claims; claims are identified by their number in the input."""

    claims: Mapping[int, Claim]
    """The claims that mention a suspect id, with their devices built."""
    claimants: Mapping[Key, dict[str, list[int]]]
    """By key: claimant to the numbers of its claims. A node is identified by its name, a switch
    that is not a node by name and claim number."""
    hearing_ports: Mapping[Key, list[tuple[int, Port]]]
    """By key: the ports that hear it, each with the number of its claim."""
    swept: Mapping[Key, Device]
    """By key: the swept device that has it."""
    listed: Mapping[str, str] = field(default_factory=dict)
    """By short name: the listed node, if only one has it."""
    listings: Mapping[str, int] = field(default_factory=dict)
    """By listed node: the number of its claim."""
    reporting: Collection[str] = frozenset()
    """The nodes that report an id of their own."""

    @cached_property
    def exchanged(self) -> frozenset[str]:
        """Listed nodes with an HCA that the sweep describes as another node's."""
        rows = ((self.find_listing(key), self.find_described(key)) for key in self.claimants)
        return frozenset(
            listed for listed, described in rows if listed and described not in (None, listed)
        )

    def confirms(self, key: Key, own_claims: Collection[int]) -> bool:
        """Return whether the claimant hears a port that hears the key."""
        entries = [
            neighbor
            for claim_number in own_claims
            for port in self.claims[claim_number].device.ports
            for neighbor in port.neighbors
        ]
        return any(
            claim_number not in own_claims
            and any(
                _refers_to(neighbor, self.claims[claim_number].device, port) for neighbor in entries
            )
            for claim_number, port in self.hearing_ports.get(key, ())
        )

    def is_swept_as(self, key: Key, claimant: str) -> bool:
        """Return whether a sweep found the key on a host of this name."""
        swept_device = self.swept.get(key)
        return (
            swept_device is not None
            and bool(swept_device.name)
            and short_name(swept_device.name) == short_name(claimant)
        )

    def is_heard_as(self, key: Key, claimant: str) -> bool:
        """Return whether another device hears the key under the claimant's name."""
        return short_name(claimant) in self._heard_names(key, self.claimants[key][claimant])

    def _heard_names(self, key: Key, own_claims: Collection[int]) -> set[str]:
        return {
            short_name(neighbor.device_name)
            for claim_number, port in self.hearing_ports.get(key, ())
            if claim_number not in own_claims
            for neighbor in port.neighbors
            if neighbor.device_name and key in neighbor_keys(neighbor)
        }

    def is_reported_by(self, key: Key, claimant: str) -> bool:
        """Return whether the claimant's own report contains the key."""
        return any(
            self.claims[claim_number].origin is Origin.REPORT
            for claim_number in self.claimants[key].get(claimant, ())
        )

    def find_listing(self, key: Key) -> str | None:
        """Return the only node that the inventory lists the key for."""
        nodes = [
            claimant
            for claimant, claim_numbers in self.claimants[key].items()
            if any(self.claims[number].origin is Origin.INVENTORY for number in claim_numbers)
        ]
        return nodes[0] if len(nodes) == 1 else None

    def find_described(self, key: Key) -> str | None:
        """Return the listed node that the sweep describes the key's HCA as."""
        swept_device = self.swept.get(key)
        if swept_device is None or swept_device.kind is DeviceKind.SWITCH:
            return None
        return self.listed.get(short_name(swept_device.name)) if swept_device.name else None

    def is_exchanged(self, node: str) -> bool:
        """Return whether the sweep describes an HCA that is listed for the node as another's."""
        return node in self.exchanged

    def is_contested(self, key: Key, own_claims: Sequence[int]) -> bool:
        """Return whether a key that only one host claims may belong to a switch.

        This is so if a sweep says so, if at least MIN_HOSTS other nodes hear the key, or if both
        the host and another device hear it.
        """
        if self._is_swept_switch(key):
            return True
        hearing = {claim_number for claim_number, _ in self.hearing_ports.get(key, ())}
        others = hearing.difference(own_claims)
        nodes = sum(
            node_of(self.claims[claim_number].device) is not None for claim_number in others
        )
        return nodes >= MIN_HOSTS or 0 < len(others) < len(hearing)

    def is_switch_key(self, key: Key, own_claims: Sequence[int]) -> bool:
        """Return whether a disputed key of one host belongs to a switch.

        This is so if a sweep says so, or if the host hears none of the ports that hear the key, or
        if they hear it under other names than the host's. It does not if they hear it under the
        name of the host's node.
        """
        names = self._heard_names(key, own_claims)
        nodes = (node_of(self.claims[claim_number].device) for claim_number in own_claims)
        if not names.isdisjoint(short_name(node) for node in nodes if node):
            return self._is_swept_switch(key)
        own_names = {
            short_name(self.claims[claim_number].device.name) for claim_number in own_claims
        }
        return (
            self._is_swept_switch(key)
            or (bool(names) and names.isdisjoint(own_names))
            or not self.confirms(key, own_claims)
        )

    def _is_swept_switch(self, key: Key) -> bool:
        swept_device = self.swept.get(key)
        return swept_device is not None and swept_device.kind is DeviceKind.SWITCH


def resolve_disputes(table: ClaimTable, first_owners: PreviousOwners) -> UndisputedClaims:
    """Remove ids from claims that contradict the evidence. Cost: O(ids + neighbors).

    Args:
        table: claims of all origins, in an order that depends only on their content.
        first_owners: the node that had each id in the last generation.
    """
    suspects = find_disputed_hashes(table)
    evidence = _gather_evidence(table, suspects) if suspects else _NO_EVIDENCE
    lost_keys: dict[int, set[Key]] = defaultdict(set)
    gained_keys: dict[int, set[Key]] = defaultdict(set)
    disputes: list[Dispute] = []
    doubtful = {key for key in evidence.claimants if _is_contested(evidence, key)}
    for key in sorted(doubtful):
        claimants = evidence.claimants[key]
        winner = _find_rightful_owner(evidence, key, first_owners)
        disputes += _describe_outcome(evidence, key, winner)
        for claimant in set(claimants) - {winner} if winner is not None else ():
            for claim_number in claimants[claimant]:
                lost_keys[claim_number].add(key)
        if winner and winner not in claimants:
            gained_keys[evidence.listings[winner]].add(key)
    changed_claims = {
        number: Claim(
            _add_ids(
                _remove_ids(table.claims[number].device, lost_keys[number]), gained_keys[number]
            ),
            table.claims[number].origin,
        )
        for number in sorted({*lost_keys, *gained_keys})
    }
    return UndisputedClaims(changed_claims, tuple(describe_disputes(disputes)), frozenset(doubtful))


def _describe_outcome(
    evidence: _DisputeEvidence, key: Key, winner: str | None
) -> Iterator[Dispute]:
    listed, described = evidence.find_listing(key), evidence.find_described(key)
    for claimant in sorted(set(evidence.claimants[key]) - {winner}) if winner is not None else ():
        verdict = (
            Verdict.KEPT_AS_LISTED
            if winner == listed
            else Verdict.LISTING_LOST
            if claimant == listed
            else Verdict.CLAIM_LOST
        )
        yield Dispute(verdict, _shown(claimant), _shown(winner or "") or "a switch", key)
    if listed and described and winner == listed != described:
        yield Dispute(Verdict.LISTING_KEPT, listed, described, key)


def _is_contested(evidence: _DisputeEvidence, key: Key) -> bool:
    """Return whether an id may have another owner.

    This is so if several devices claim it, if the inventory lists it for one node and a sweep
    describes it as another's, or if it looks like a switch's id and a host claims it.
    """
    claimants = evidence.claimants[key]
    if len(claimants) > 1:
        return True
    listed, described = evidence.find_listing(key), evidence.find_described(key)
    if listed is not None:
        return described not in (None, listed)
    own_claims = [claim_number for numbers in claimants.values() for claim_number in numbers]
    is_host = all(
        evidence.claims[claim_number].device.kind is DeviceKind.HOST for claim_number in own_claims
    )
    return is_host and evidence.is_contested(key, own_claims)


def _find_rightful_owner(
    evidence: _DisputeEvidence, key: Key, first_owners: PreviousOwners
) -> str | None:
    """Return the owner of a key; empty for a switch without a claim, None if undecided."""
    claimants = evidence.claimants[key]
    listed = evidence.find_listing(key)
    if listed is not None:
        return _find_owner_of_listed(evidence, key, listed, first_owners)
    if _is_listed(evidence, key):
        return None
    if len(claimants) == 1:
        (own_claims,) = claimants.values()
        return "" if evidence.is_switch_key(key, own_claims) else None
    return _narrow_down(evidence, key, claimants, first_owners)


def _is_listed(evidence: _DisputeEvidence, key: Key) -> bool:
    """Return whether the inventory lists a key for any node."""
    return any(
        evidence.claims[claim_number].origin is Origin.INVENTORY
        for numbers in evidence.claimants[key].values()
        for claim_number in numbers
    )


def _find_owner_of_listed(
    evidence: _DisputeEvidence, key: Key, listed: str, first_owners: PreviousOwners
) -> str:
    """Return the owner of a key that the inventory lists for one node."""
    if evidence.is_reported_by(key, listed):
        return listed
    described = evidence.find_described(key)
    if described is not None and described != listed:
        is_confirmed = evidence.is_reported_by(key, described) or evidence.is_exchanged(described)
        return described if is_confirmed else listed
    others = [one for one in evidence.claimants[key] if evidence.is_reported_by(key, one)]
    if described is None and others and listed in evidence.reporting:
        return _narrow_down(evidence, key, others, first_owners) or listed
    return listed


def _narrow_down(
    evidence: _DisputeEvidence,
    key: Key,
    claimants: Iterable[str],
    first_owners: PreviousOwners,
) -> str | None:
    """Return the only claimant that the evidence leaves, None if it leaves several."""
    tests: tuple[Callable[[str], bool], ...] = (
        lambda claimant: evidence.confirms(key, evidence.claimants[key][claimant]),
        lambda claimant: evidence.is_heard_as(key, claimant),
        lambda claimant: evidence.is_swept_as(key, claimant),
        lambda claimant: "\0" in claimant,
        lambda claimant: first_owners.get(key) == claimant,
    )
    remaining = list(claimants)
    for is_confirmed in tests:
        if len(remaining) > 1:
            remaining = [one for one in remaining if is_confirmed(one)] or remaining
    return remaining[0] if len(remaining) == 1 else None


_NO_EVIDENCE: Final = _DisputeEvidence({}, {}, {}, {})


def _gather_evidence(table: ClaimTable, suspects: Collection[int]) -> _DisputeEvidence:
    """Return the evidence about suspect ids, given by the hashes of their keys.

    Cost: O(claims); reads the claims that have or mention such an id.
    """
    draft = _EvidenceDraft(suspects)
    for claim_number, (claim, facts) in enumerate(zip(table.claims, table.facts, strict=True)):
        if claim.origin is not Origin.SWEEP:
            draft.add_speaker(claim_number, claim.origin, facts)
    for claim_number in table.find_mentions(suspects):
        draft.add(claim_number, table.claims[claim_number], table.facts[claim_number])
    return draft.build()


@dataclass
class _EvidenceDraft:
    suspects: Collection[int]
    claims: dict[int, Claim] = field(default_factory=dict)
    claimants: dict[Key, dict[str, list[int]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    hearing_ports: dict[Key, list[tuple[int, Port]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    swept: dict[Key, Device] = field(default_factory=dict)
    listings: dict[str, int] = field(default_factory=dict)
    reporting: set[str] = field(default_factory=set)

    def add_speaker(self, claim_number: int, origin: Origin, facts: ClaimFacts) -> None:
        """Add the claimant of a claim of another origin than a sweep."""
        claimant = claimant_of(facts, claim_number)
        if claimant is not None:
            if origin is Origin.INVENTORY:
                self.listings[claimant] = claim_number
            elif len(facts.keys) > len(facts.name_keys):
                self.reporting.add(claimant)

    def add(self, claim_number: int, claim: Claim, facts: ClaimFacts) -> None:
        """Add the evidence in one claim that has or mentions a suspect id."""
        device = claim.device
        keys = [key for key in claim_keys(device) if hash(key) in self.suspects]
        if claim.origin is Origin.SWEEP:
            self.swept.update(dict.fromkeys(keys, device))
            return
        claimant = claimant_of(facts, claim_number)
        if claimant is not None:
            for key in keys:
                if key[0] != IdKind.NODE_NAME:
                    self.claimants[key][claimant].append(claim_number)
                    self.claims[claim_number] = Claim(device, claim.origin)
        for port in device.ports:
            for key in {key for neighbor in port.neighbors for key in neighbor_keys(neighbor)}:
                if hash(key) in self.suspects:
                    self.hearing_ports[key].append((claim_number, port))
                    self.claims[claim_number] = Claim(device, claim.origin)

    def build(self) -> _DisputeEvidence:
        """Return the evidence about ids that have a claimant."""
        counts = Counter(map(short_name, self.listings))
        claimed = self.claimants.keys()
        return _DisputeEvidence(
            self.claims,
            self.claimants,
            {key: rows for key, rows in self.hearing_ports.items() if key in claimed},
            {key: device for key, device in self.swept.items() if key in claimed},
            {short_name(node): node for node in self.listings if counts[short_name(node)] == 1},
            self.listings,
            frozenset(self.reporting),
        )


def _refers_to(neighbor: Neighbor, device: Device, port: Port) -> bool:
    """Return whether a neighbor entry means this port of this device."""
    device_keys = {key for identifier in device.ids if (key := strong_key(identifier))}
    is_device = any(key in device_keys for key in neighbor_keys(neighbor)) or (
        bool(device.name) and short_name(neighbor.device_name) == short_name(device.name)
    )
    heard_port_names = {identifier.value for identifier in neighbor.port_ids}
    if neighbor.port_name:
        heard_port_names.add(neighbor.port_name)
    port_names = {identifier.value for identifier in port.ids} | {port.name}
    return is_device and (not heard_port_names or not heard_port_names.isdisjoint(port_names))


def _remove_ids(device: Device, lost_keys: Collection[Key]) -> Device:
    ports = (port._replace(ids=_filter_ids(port.ids, lost_keys)) for port in device.ports)
    return replace(device, ids=_filter_ids(device.ids, lost_keys), ports=tuple(ports))


def _add_ids(device: Device, keys: Collection[Key]) -> Device:
    ids = {*device.ids, *(Id(IdKind(kind), value) for kind, value in keys)}
    return replace(device, ids=tuple(sorted(ids))) if keys else device


def _filter_ids(ids: Iterable[Id], lost_keys: Collection[Key]) -> tuple[Id, ...]:
    return tuple(identifier for identifier in ids if strong_key(identifier) not in lost_keys)


def _shown(claimant: str) -> str:
    return show(claimant.partition("\0")[0])
