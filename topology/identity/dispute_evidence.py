"""Evidence about ids that several devices claim: cables, names, sweeps, listings and reports."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from topology.identity.claim_facts import ClaimFacts, ClaimTable, node_of
from topology.identity.disputed_ids import (
    MIN_HOSTS,
    claimant_of,
    is_named_capture,
    neighbor_keys,
)
from topology.identity.node_names import NameKey, NodeNames
from topology.model.claims import Claim, Key, Origin, claim_keys, strong_key
from topology.model.facts import Device, DeviceKind, Neighbor, Port
from topology.model.ids import IdKind


@dataclass
class DisputeEvidence:
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
    captured: Mapping[Key, str] = field(default_factory=dict)
    """By key: the name that captures of the device that has it give; empty if they differ."""
    names: NodeNames = field(default_factory=NodeNames)
    """The index that says which node a name means."""
    listings: Mapping[str, int] = field(default_factory=dict)
    """By listed node: the number of its claim."""
    reporting: Collection[str] = frozenset()
    """The nodes that report an id of their own."""

    @cached_property
    def exchanged(self) -> frozenset[str]:
        """Listed nodes with an id that others describe as another node's."""
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
        for claim_number, port in self.hearing_ports.get(key, ()):
            if claim_number in own_claims or not entries:
                continue
            device = self.claims[claim_number].device
            if any(self._refers_to(neighbor, device, port) for neighbor in entries):
                return True
        return False

    def _refers_to(self, neighbor: Neighbor, device: Device, port: Port) -> bool:
        """Return whether a neighbor entry means this port of this device."""
        device_keys = {key for identifier in device.ids if (key := strong_key(identifier))}
        has_name = bool(device.name) and (
            self.names.key(neighbor.device_name) == self.names.key(device.name)
        )
        if not has_name and device_keys.isdisjoint(neighbor_keys(neighbor)):
            return False
        heard_port_names = {identifier.value for identifier in neighbor.port_ids}
        if neighbor.port_name:
            heard_port_names.add(neighbor.port_name)
        port_names = {identifier.value for identifier in port.ids} | {port.name}
        return not heard_port_names or not heard_port_names.isdisjoint(port_names)

    def is_found_as(self, key: Key, claimant: str) -> bool:
        """Return whether a sweep or a capture found the key on a host of this name."""
        name = self._find_name(key)
        return bool(name) and self.names.key(name) == self.names.key(claimant)

    def _find_name(self, key: Key) -> str:
        """Return the name of the device that has the key, by the sweep or else by a capture."""
        swept_device = self.swept.get(key)
        return self.captured.get(key, "") if swept_device is None else swept_device.name

    def is_heard_as(self, key: Key, claimant: str) -> bool:
        """Return whether another device hears the key under the claimant's name."""
        return self.names.key(claimant) in self._heard_names(key, self.claimants[key][claimant])

    def _heard_names(
        self, key: Key, own_claims: Collection[int], *, is_trusted: bool = False
    ) -> set[NameKey]:
        """Return the names under which others hear the key.

        Args:
            key: the id.
            own_claims: the numbers of the claims that do not count.
            is_trusted: whether the reports of nodes do not count either.
        """
        return {
            self.names.key(neighbor.device_name)
            for claim_number, port in self.hearing_ports.get(key, ())
            if claim_number not in own_claims
            if not (is_trusted and node_of(self.claims[claim_number].device) is not None)
            for neighbor in port.neighbors
            if neighbor.device_name and key in neighbor_keys(neighbor)
        }

    def is_reported_by(self, key: Key, claimant: str) -> bool:
        """Return whether the claimant's own report contains the key."""
        return any(
            self.claims[claim_number].origin is Origin.REPORT
            for claim_number in self.claimants[key].get(claimant, ())
        )

    def list_listings(self, key: Key) -> list[str]:
        """Return the nodes that the inventory lists the key for."""
        return [
            claimant
            for claimant, claim_numbers in self.claimants[key].items()
            if any(self.claims[number].origin is Origin.INVENTORY for number in claim_numbers)
        ]

    def find_listing(self, key: Key) -> str | None:
        """Return the only node that the inventory lists the key for."""
        nodes = self.list_listings(key)
        return nodes[0] if len(nodes) == 1 else None

    def find_described(self, key: Key) -> str | None:
        """Return the listed node to which the sweep, a capture or its switches assign the key.

        Neighbor entries of hosts do not count: one host could move others.
        """
        if self._is_swept_switch(key):
            return None
        name = self._find_name(key)
        if key in self.swept or name:
            owners = {self.names.key(name)}
        else:
            owners = self._heard_names(key, (), is_trusted=True)
        if len(owners) != 1:
            return None
        owner = owners.pop()
        return owner.name if owner.is_node and owner.name in self.listings else None

    def is_exchanged(self, node: str) -> bool:
        """Return whether others describe an id that is listed for the node as another's."""
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
        if they hear it under other names than the host's. The key does not belong to a switch if
        they hear it under the name of the host's node.
        """
        names = self._heard_names(key, own_claims)
        nodes = (node_of(self.claims[claim_number].device) for claim_number in own_claims)
        if not names.isdisjoint(self.names.key(node) for node in nodes if node):
            return self._is_swept_switch(key)
        own_names = {
            self.names.key(self.claims[claim_number].device.name) for claim_number in own_claims
        }
        return (
            self._is_swept_switch(key)
            or (bool(names) and names.isdisjoint(own_names))
            or not self.confirms(key, own_claims)
        )

    def _is_swept_switch(self, key: Key) -> bool:
        swept_device = self.swept.get(key)
        return swept_device is not None and swept_device.kind is DeviceKind.SWITCH


NO_EVIDENCE: Final = DisputeEvidence({}, {}, {}, {})


def gather_evidence(
    table: ClaimTable, names: NodeNames, suspects: Collection[int]
) -> DisputeEvidence:
    """Return the evidence about suspect ids, given by the hashes of their keys.

    Cost: O(claims); reads the claims that have or mention such an id.
    """
    draft = _EvidenceDraft(suspects, names)
    for claim_number, (claim, facts) in enumerate(zip(table.claims, table.facts, strict=True)):
        if claim.origin is not Origin.SWEEP:
            draft.add_speaker(claim_number, claim.origin, facts)
    for claim_number in table.find_mentions(suspects):
        draft.add(claim_number, table.claims[claim_number], table.facts[claim_number])
    return draft.build()


@dataclass
class _EvidenceDraft:
    suspects: Collection[int]
    names: NodeNames
    claims: dict[int, Claim] = field(default_factory=dict)
    claimants: dict[Key, dict[str, list[int]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    hearing_ports: dict[Key, list[tuple[int, Port]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    swept: dict[Key, Device] = field(default_factory=dict)
    captured: dict[Key, str] = field(default_factory=dict)
    listings: dict[str, int] = field(default_factory=dict)
    reporting: set[str] = field(default_factory=set)

    def add_speaker(self, claim_number: int, origin: Origin, facts: ClaimFacts) -> None:
        """Add the claimant of a claim, unless the claim comes from a sweep."""
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
        if is_named_capture(claim.origin, facts):
            self._add_capture(keys, facts.name)
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

    def _add_capture(self, keys: Iterable[Key], name: str) -> None:
        for key in keys:
            if self.names.key(self.captured.setdefault(key, name)) != self.names.key(name):
                self.captured[key] = ""

    def build(self) -> DisputeEvidence:
        """Return the evidence about ids that have a claimant."""
        claimed = self.claimants.keys()
        return DisputeEvidence(
            self.claims,
            self.claimants,
            {key: rows for key, rows in self.hearing_ports.items() if key in claimed},
            {key: device for key, device in self.swept.items() if key in claimed},
            {key: name for key, name in self.captured.items() if key in claimed},
            self.names,
            self.listings,
            frozenset(self.reporting),
        )
