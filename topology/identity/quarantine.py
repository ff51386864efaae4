"""Ids that two devices claim, before claims are joined: whose they are, and who loses them.

A report is what a node says of itself, and the node may be broken or hostile. An id stays with
whom the other side of a cable confirms: it hears the id there, and is heard back. Where no cable
tells, a sweep that found the id under the node's name does, else it stays with whom had it first.
The others keep what nobody disputes. Where nothing tells, `identity` lets the id be nobody's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from topology.identity.disputed_ids import (
    MIN_HOSTS,
    claimant_of,
    find_disputed_hashes,
    neighbor_keys,
    node_of,
)
from topology.model.claims import Claim, PreviousOwners, Key, Origin, claim_keys, strong_key
from topology.model.errors import show
from topology.model.facts import Device, DeviceKind, Finding, FindingKind, Neighbor, Port, Severity
from topology.model.ids import Id, IdKind, short_name


@dataclass(frozen=True, slots=True)
class UndisputedClaims:
    """Claims without the ids that they lost."""

    claims: tuple[Claim, ...]
    findings: tuple[Finding, ...]
    contested_keys: frozenset[Key] = frozenset()
    """Ids that several claim, or that others than their claimant's neighbors hear: another cable
    may give them to somebody else."""


@dataclass(slots=True)
class _DisputeEvidence:
    """What all claims tell, by number of the claim."""

    claims: Mapping[int, Claim]
    """Those that have to do with an id in question, with their devices."""
    claimants: Mapping[Key, dict[str, list[int]]]
    """By key who claims it: a node by its name, a switch that is none by its number."""
    hearing_ports: Mapping[Key, list[tuple[int, Port]]]
    """By key the ports that hear it, and whose they are."""
    swept: Mapping[Key, Device]

    def confirms(self, key: Key, own: Collection[int]) -> bool:
        """Return whether a port that hears the key is heard by one of its claimant's ports."""
        entries = [
            near for at in own for port in self.claims[at].device.ports for near in port.neighbors
        ]
        return any(
            at not in own
            and any(_refers_to(near, self.claims[at].device, port) for near in entries)
            for at, port in self.hearing_ports.get(key, ())
        )

    def is_swept_as(self, key: Key, who: str) -> bool:
        """Return whether a sweep found the key on a host of this name."""
        found = self.swept.get(key)
        return found is not None and bool(found.name) and short_name(found.name) == short_name(who)

    def is_contested(self, key: Key, own: Sequence[int]) -> bool:
        """Return whether a key that one host alone claims may belong to a switch.

        A sweep says so, or other nodes hear it, or the host itself hears it as its neighbor's.
        """
        if self._is_swept_switch(key):
            return True
        hearing = {at for at, _ in self.hearing_ports.get(key, ())}
        others = hearing.difference(own)
        nodes = sum(node_of(self.claims[at].device) is not None for at in others)
        return nodes >= MIN_HOSTS or 0 < len(others) < len(hearing)

    def is_switch_key(self, key: Key, own: Sequence[int]) -> bool:
        """Return whether a contested key belongs to a switch: the host does not hear who hears it.

        What a sweep says of it stands.
        """
        return self._is_swept_switch(key) or not self.confirms(key, own)

    def _is_swept_switch(self, key: Key) -> bool:
        found = self.swept.get(key)
        return found is not None and found.kind is DeviceKind.SWITCH


def resolve_disputes(claims: Iterable[Claim], first_owners: PreviousOwners) -> UndisputedClaims:
    """Take ids away from those that claim them against the evidence. Cost: O(ids + neighbors).

    Args:
        claims: of all origins, in an order that their content alone decides.
        first_owners: by id the node that had it in the last generation.
    """
    ordered = tuple(claims)
    suspects = find_disputed_hashes(ordered)
    evidence = _gather_evidence(ordered, suspects) if suspects else _NO_EVIDENCE
    lost: dict[int, set[Key]] = defaultdict(set)
    findings: list[Finding] = []
    doubtful = {key for key in evidence.claimants if _is_contested(evidence, key)}
    for key in sorted(doubtful):
        claimants = evidence.claimants[key]
        winner = _find_rightful_owner(evidence, key, first_owners)
        for who in sorted(set(claimants) - {winner}) if winner is not None else ():
            findings.append(_finding(key, who, winner))
            for at in claimants[who]:
                lost[at].add(key)
    kept = (
        Claim(_remove_ids(claim.device, lost[at]), claim.origin) if at in lost else claim
        for at, claim in enumerate(ordered)
    )
    return UndisputedClaims(tuple(kept), tuple(findings), frozenset(doubtful))


def _is_contested(evidence: _DisputeEvidence, key: Key) -> bool:
    """Return whether an id may be another's: several claim it, or a host what looks a switch's.

    What the inventory says of it stands.
    """
    claimants = evidence.claimants[key]
    own = [at for numbers in claimants.values() for at in numbers]
    if any(evidence.claims[at].origin is Origin.INVENTORY for at in own):
        return False
    if len(claimants) > 1:
        return True
    is_host = all(evidence.claims[at].device.kind is DeviceKind.HOST for at in own)
    return is_host and evidence.is_contested(key, own)


def _find_rightful_owner(
    evidence: _DisputeEvidence, key: Key, first_owners: PreviousOwners
) -> str | None:
    """Return whose a key is, empty for a switch that makes no claim; None where nothing tells."""
    claimants = evidence.claimants[key]
    if len(claimants) == 1:
        (own,) = claimants.values()
        return "" if evidence.is_switch_key(key, own) else None
    tests: tuple[Callable[[str], bool], ...] = (
        lambda who: evidence.confirms(key, claimants[who]),
        lambda who: evidence.is_swept_as(key, who),
        lambda who: first_owners.get(key) == who,
    )
    for is_true in tests:
        found = [who for who in claimants if is_true(who)]
        if found:
            return found[0] if len(found) == 1 else None
    return None


_NO_EVIDENCE: Final = _DisputeEvidence({}, {}, {}, {})


def _gather_evidence(ordered: Sequence[Claim], suspects: Collection[int]) -> _DisputeEvidence:
    """Return what claims tell of some ids, given by the hashes of their keys."""
    claims: dict[int, Claim] = {}
    claimants: dict[Key, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    heard: dict[Key, list[tuple[int, Port]]] = defaultdict(list)
    swept: dict[Key, Device] = {}
    for at, claim in enumerate(ordered):
        device = claim.device
        keys = [key for key in claim_keys(device) if hash(key) in suspects]
        if claim.origin is Origin.SWEEP:
            swept.update(dict.fromkeys(keys, device))
            continue
        who = claimant_of(device, at)
        for key in keys if who is not None else ():
            if key[0] != IdKind.NODE_NAME:
                claimants[key][who or ""].append(at)
                claims[at] = Claim(device, claim.origin)
        for port in device.ports:
            for key in {key for near in port.neighbors for key in neighbor_keys(near)}:
                if hash(key) in suspects:
                    heard[key].append((at, port))
                    claims[at] = Claim(device, claim.origin)
    for rows in (heard, swept):
        for key in rows.keys() - claimants.keys():
            del rows[key]
    return _DisputeEvidence(claims, claimants, heard, swept)


def _refers_to(near: Neighbor, device: Device, port: Port) -> bool:
    """Return whether a neighbor entry speaks of this port of this device."""
    own = {key for one in device.ids if (key := strong_key(one))}
    is_device = any(key in own for key in neighbor_keys(near)) or (
        bool(device.name) and short_name(near.device_name) == short_name(device.name)
    )
    told = {one.value for one in near.port_ids} | ({near.port_name} if near.port_name else set())
    known = {one.value for one in port.ids} | {port.name}
    return is_device and (not told or not told.isdisjoint(known))


def _remove_ids(device: Device, lost: Collection[Key]) -> Device:
    ports = (port._replace(ids=_filter_ids(port.ids, lost)) for port in device.ports)
    return replace(device, ids=_filter_ids(device.ids, lost), ports=tuple(ports))


def _filter_ids(ids: Iterable[Id], lost: Collection[Key]) -> tuple[Id, ...]:
    return tuple(one for one in ids if strong_key(one) not in lost)


def _finding(key: Key, who: str, winner: str | None) -> Finding:
    name = show(who.partition("\0")[0])
    owner = show((winner or "").partition("\0")[0]) or "a switch"
    return Finding(
        kind=FindingKind.DUPLICATE_ID,
        device=name,
        port=None,
        severity=Severity.ERROR,
        message=(
            f"{name} claims {key[0]} {show(key[1])}, which is that of {owner} by what others "
            "see; that claim does not count, the rest of its report does. Check for cloned "
            "firmware or a misbehaving node."
        ),
    )
