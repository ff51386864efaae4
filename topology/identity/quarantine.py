"""Decide which device owns an id that two devices claim, before claims are joined.

A report is what a node says about itself, and the node may be broken or hostile. The claimants of a
disputed id are compared with three kinds of evidence, in this order:

1. A cable: a port at the other end hears the id, and the claimant hears that port.
2. A sweep: it found the id on a host with the claimant's name.
3. The last generation: the claimant already had the id.

The first evidence that confirms any claimant decides. If it confirms exactly one, the others lose
the id and keep their undisputed ids. If it confirms several, or if no evidence confirms any,
`device_resolution` lets the id identify no device.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from topology.identity.claim_facts import ClaimTable, node_of
from topology.identity.disputed_ids import (
    MIN_HOSTS,
    claimant_of,
    find_disputed_hashes,
    neighbor_keys,
)
from topology.model.claims import Claim, Key, Origin, PreviousOwners, claim_keys, strong_key
from topology.model.errors import show
from topology.model.facts import Device, DeviceKind, Finding, FindingKind, Neighbor, Port, Severity
from topology.model.ids import Id, IdKind, short_name


@dataclass(frozen=True, slots=True)
class UndisputedClaims:
    """The claims that lost ids, and why."""

    changed_claims: Mapping[int, Claim]
    """By the number of the claim: the claim without the ids that it lost."""
    findings: tuple[Finding, ...]
    contested_keys: frozenset[Key] = frozenset()
    """Ids that several devices claim, or that devices other than their claimant's neighbors hear; a
    new cable may change their owner."""


@dataclass(slots=True)
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

        This is so if a sweep says so, or if the host hears none of the ports that hear the key.
        """
        return self._is_swept_switch(key) or not self.confirms(key, own_claims)

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
    findings: list[Finding] = []
    doubtful = {key for key in evidence.claimants if _is_contested(evidence, key)}
    for key in sorted(doubtful):
        claimants = evidence.claimants[key]
        winner = _find_rightful_owner(evidence, key, first_owners)
        for claimant in sorted(set(claimants) - {winner}) if winner is not None else ():
            findings.append(_finding(key, claimant, winner))
            for claim_number in claimants[claimant]:
                lost_keys[claim_number].add(key)
    changed_claims = {
        claim_number: Claim(
            _remove_ids(table.claims[claim_number].device, keys), table.claims[claim_number].origin
        )
        for claim_number, keys in lost_keys.items()
    }
    return UndisputedClaims(changed_claims, tuple(findings), frozenset(doubtful))


def _is_contested(evidence: _DisputeEvidence, key: Key) -> bool:
    """Return whether an id may have another owner.

    This is so if several devices claim it, or if it looks like a switch's id and a host claims it.
    An id that the inventory lists is never disputed.
    """
    claimants = evidence.claimants[key]
    own_claims = [claim_number for numbers in claimants.values() for claim_number in numbers]
    if any(evidence.claims[claim_number].origin is Origin.INVENTORY for claim_number in own_claims):
        return False
    if len(claimants) > 1:
        return True
    is_host = all(
        evidence.claims[claim_number].device.kind is DeviceKind.HOST for claim_number in own_claims
    )
    return is_host and evidence.is_contested(key, own_claims)


def _find_rightful_owner(
    evidence: _DisputeEvidence, key: Key, first_owners: PreviousOwners
) -> str | None:
    """Return the owner of a key; empty for a switch without a claim, None if undecided."""
    claimants = evidence.claimants[key]
    if len(claimants) == 1:
        (own_claims,) = claimants.values()
        return "" if evidence.is_switch_key(key, own_claims) else None
    tests: tuple[Callable[[str], bool], ...] = (
        lambda claimant: evidence.confirms(key, claimants[claimant]),
        lambda claimant: evidence.is_swept_as(key, claimant),
        lambda claimant: first_owners.get(key) == claimant,
    )
    for is_confirmed in tests:
        confirmed = [claimant for claimant in claimants if is_confirmed(claimant)]
        if confirmed:
            return confirmed[0] if len(confirmed) == 1 else None
    return None


_NO_EVIDENCE: Final = _DisputeEvidence({}, {}, {}, {})


def _gather_evidence(table: ClaimTable, suspects: Collection[int]) -> _DisputeEvidence:
    """Return the evidence about suspect ids, given by the hashes of their keys.

    Cost: it reads the claims that have or mention such an id.
    """
    claims: dict[int, Claim] = {}
    claimants: dict[Key, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    hearing_ports: dict[Key, list[tuple[int, Port]]] = defaultdict(list)
    swept: dict[Key, Device] = {}
    for claim_number in table.find_mentions(suspects):
        claim, device = table.claims[claim_number], table.claims[claim_number].device
        keys = [key for key in claim_keys(device) if hash(key) in suspects]
        if claim.origin is Origin.SWEEP:
            swept.update(dict.fromkeys(keys, device))
            continue
        claimant = claimant_of(table.facts[claim_number], claim_number)
        for key in keys if claimant is not None else ():
            if key[0] != IdKind.NODE_NAME:
                claimants[key][claimant or ""].append(claim_number)
                claims[claim_number] = Claim(device, claim.origin)
        for port in device.ports:
            for key in {key for neighbor in port.neighbors for key in neighbor_keys(neighbor)}:
                if hash(key) in suspects:
                    hearing_ports[key].append((claim_number, port))
                    claims[claim_number] = Claim(device, claim.origin)
    for rows in (hearing_ports, swept):
        for key in rows.keys() - claimants.keys():
            del rows[key]
    return _DisputeEvidence(claims, claimants, hearing_ports, swept)


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


def _filter_ids(ids: Iterable[Id], lost_keys: Collection[Key]) -> tuple[Id, ...]:
    return tuple(identifier for identifier in ids if strong_key(identifier) not in lost_keys)


def _finding(key: Key, claimant: str, winner: str | None) -> Finding:
    name = show(claimant.partition("\0")[0])
    owner = show((winner or "").partition("\0")[0]) or "a switch"
    return Finding(
        kind=FindingKind.DUPLICATE_ID,
        device=name,
        port=None,
        severity=Severity.ERROR,
        message=(
            f"{name} claims {key[0]} {show(key[1])}, which belongs to {owner} according to other "
            "devices; this id is ignored, the rest of the report counts. Check for cloned "
            "firmware or a misbehaving node."
        ),
    )
