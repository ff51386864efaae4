"""Decide which device owns an id that two devices claim, before claims are joined.

A report is what a node says about itself, and the node may be broken or hostile. The claimants of a
disputed id are compared with these kinds of evidence, in this order:

1. A cable: a port at the other end hears the id, and the claimant hears that port.
2. A name: a port of another device hears the id under the claimant's node name.
3. A sweep or a capture: it found the id on a host with the claimant's name.
4. A walk: the claimant is a switch, whose report comes from a walk and not from an agent.
5. The last generation: the claimant already had the id.

Each kind of evidence that confirms any remaining claimant excludes the others. If one claimant
remains, the others lose the id and keep their undisputed ids. If several do, `device_resolution`
lets the id identify no device.

If three hosts or more claim a MAC, and none of them has it on a port, the MAC is shared by design
and no fault. If nothing decides who owns the MAC, none of them does.

An id that the inventory lists stays with its node, unless two witnesses contradict the list: the
node itself reports other ids and another node reports this one, or a sweep and the report of the
node that it names agree, or the list exchanges nodes that a sweep, a capture or their switches name
otherwise. A node can only report itself and describe its own HCAs, so no node can bring this about
for the ids of another. If the inventory lists an id for several nodes, the id belongs to the node
that the evidence confirms, or that reports it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from topology.identity.claim_facts import ClaimTable
from topology.identity.dispute_evidence import NO_EVIDENCE, DisputeEvidence, gather_evidence
from topology.identity.dispute_findings import Dispute, Verdict, describe_disputes
from topology.identity.disputed_ids import HeardName, find_disputed_hashes
from topology.identity.node_names import NodeNames
from topology.model.claims import Claim, Key, Origin, PreviousOwners, strong_key
from topology.model.errors import show
from topology.model.facts import Device, DeviceKind, Finding
from topology.model.ids import Id, IdKind

MIN_SHARERS: Final = 3
"""So many hosts share a MAC that is on none of their ports by design, or from the factory."""


@dataclass(frozen=True, slots=True)
class UndisputedClaims:
    """The claims that are corrected, and why."""

    changed_claims: Mapping[int, Claim]
    """By claim number: the claim, corrected where other devices contradict it."""
    findings: tuple[Finding, ...]


def resolve_disputes(
    table: ClaimTable,
    names: NodeNames,
    first_owners: PreviousOwners,
    heard_names: Iterable[HeardName] = (),
) -> UndisputedClaims:
    """Remove ids from claims that contradict the evidence. Cost: O(ids + neighbors).

    Args:
        table: claims of all origins, in an order that depends only on their content.
        names: the index that says which node a name means.
        first_owners: the node that had each id in the last generation.
        heard_names: the names under which devices are heard.
    """
    suspects = find_disputed_hashes(table, names, heard_names)
    evidence = gather_evidence(table, names, suspects) if suspects else NO_EVIDENCE
    lost_keys: dict[int, set[Key]] = defaultdict(set)
    gained_keys: dict[int, set[Key]] = defaultdict(set)
    disputes: list[Dispute] = []
    doubtful = {key for key in evidence.claimants if _is_contested(evidence, key)}
    for key in sorted(doubtful):
        claimants = evidence.claimants[key]
        winner = _find_rightful_owner(evidence, key, first_owners)
        own_claims = [number for numbers in claimants.values() for number in numbers]
        is_shared = len(claimants) >= MIN_SHARERS and all(
            _is_of_no_port(table.claims[number], key) for number in own_claims
        )
        if not is_shared:
            disputes += _describe_outcome(evidence, key, winner)
        elif winner is None:
            for number in own_claims:
                lost_keys[number].add(key)
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
    return UndisputedClaims(changed_claims, tuple(describe_disputes(disputes)))


def _is_of_no_port(claim: Claim, key: Key) -> bool:
    """Return whether an id is a MAC that the claiming host has on none of its ports.

    Hosts share such MACs without a fault. Examples are the MACs of a bridge, of rshim, and of the
    interface that a BMC shows its host. lldpd may choose such a MAC as the chassis id.
    """
    kind, mac = key
    if kind != IdKind.MAC or claim.origin is not Origin.REPORT:
        return False
    device = claim.device
    macs = {id_.value for port in device.ports for id_ in port.ids if id_.kind is IdKind.MAC}
    return device.kind is DeviceKind.HOST and bool(macs) and mac not in macs


def _describe_outcome(evidence: DisputeEvidence, key: Key, winner: str | None) -> Iterator[Dispute]:
    listed, described = evidence.find_listing(key), evidence.find_described(key)
    listings = evidence.list_listings(key)
    losers = set() if winner is None else set(evidence.claimants[key]) - {winner}
    for claimant in sorted(losers):
        if winner == listed:
            verdict = Verdict.KEPT_AS_LISTED
        elif claimant in listings and not evidence.is_reported_by(key, claimant):
            verdict = Verdict.LISTING_LOST
        else:
            verdict = Verdict.CLAIM_LOST
        yield Dispute(verdict, _shown(claimant), _shown(winner or "") or "a switch", key)
    if listed and described and winner == listed != described:
        yield Dispute(Verdict.LISTING_KEPT, listed, described, key)


def _is_contested(evidence: DisputeEvidence, key: Key) -> bool:
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
    evidence: DisputeEvidence, key: Key, first_owners: PreviousOwners
) -> str | None:
    """Return the owner of a key; empty for a switch without a claim, None if undecided."""
    claimants = evidence.claimants[key]
    listed = evidence.find_listing(key)
    if listed is not None:
        return _find_owner_of_listed(evidence, key, listed, first_owners)
    listings = evidence.list_listings(key)
    if listings:
        return _find_owner_of_repeated(evidence, key, listings, first_owners)
    if len(claimants) == 1:
        (own_claims,) = claimants.values()
        return "" if evidence.is_switch_key(key, own_claims) else None
    return _narrow_down(evidence, key, claimants, first_owners)


def _find_owner_of_repeated(
    evidence: DisputeEvidence, key: Key, listings: Sequence[str], first_owners: PreviousOwners
) -> str | None:
    """Return the owner of a key that the inventory lists for several nodes, one of them.

    None if nothing decides between them.
    """
    owner = _narrow_down(evidence, key, listings, first_owners)
    reporters = [listing for listing in listings if evidence.is_reported_by(key, listing)]
    return owner or (reporters[0] if len(reporters) == 1 else None)


def _find_owner_of_listed(
    evidence: DisputeEvidence, key: Key, listed: str, first_owners: PreviousOwners
) -> str:
    """Return the owner of a key that the inventory lists for one node."""
    if evidence.is_reported_by(key, listed):
        return listed
    described = evidence.find_described(key)
    if described is not None and described != listed:
        is_confirmed = evidence.is_reported_by(key, described) or evidence.is_exchanged(described)
        return described if is_confirmed else listed
    others = [
        claimant for claimant in evidence.claimants[key] if evidence.is_reported_by(key, claimant)
    ]
    if described is None and others and listed in evidence.reporting:
        return _narrow_down(evidence, key, others, first_owners) or listed
    return listed


def _narrow_down(
    evidence: DisputeEvidence,
    key: Key,
    claimants: Iterable[str],
    first_owners: PreviousOwners,
) -> str | None:
    """Return the only claimant that the evidence leaves, None if it leaves several."""
    tests: tuple[Callable[[str], bool], ...] = (
        lambda claimant: evidence.confirms(key, evidence.claimants[key][claimant]),
        lambda claimant: evidence.is_heard_as(key, claimant),
        lambda claimant: evidence.is_found_as(key, claimant),
        lambda claimant: "\0" in claimant,
        lambda claimant: first_owners.get(key) == claimant,
    )
    remaining = list(claimants)
    for is_confirmed in tests:
        if len(remaining) > 1:
            remaining = [claimant for claimant in remaining if is_confirmed(claimant)] or remaining
    return remaining[0] if len(remaining) == 1 else None


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
