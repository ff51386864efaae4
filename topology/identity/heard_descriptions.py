"""Descriptions of heard devices, and the limit of what one host may say about another device.

A host's report may be wrong or hostile, and a switch without a report of its own is known only from
what hosts hear. So the description of such a device (its ids, name and kind) is the one that most
devices hear, and a host's own name never is the name of another device. A device that only one host
hears is described by this host alone. Switches' reports come from walks, and are not limited.

Two switches may send one chassis id, for example after a configuration was copied. If several hosts
hear each of two names, and hear the same ports under both, no single device has all these cables:
the id then identifies neither, and the names tell the switches apart.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Final, NamedTuple, TypeAlias

from topology.identity.claim_facts import ClaimTable, node_of
from topology.identity.dispute_findings import Dispute, Verdict, describe_disputes
from topology.identity.dispute_resolution import UndisputedClaims
from topology.model.claims import Claim, Origin, strong_key
from topology.model.facts import Device, DeviceKind, Neighbor, Port
from topology.model.ids import Id, IdKind, short_name

_Subject: TypeAlias = Id | str
"""A device that is heard: one of its ids, or its short name if it sends no id."""
_SPEAKING: Final = frozenset({Origin.REPORT, Origin.CAPTURE})
_MIN_WITNESSES: Final = 2
"""Hosts that hear a name, and ports that are heard under two names, so that no host alone makes two
devices of one."""


class Description(NamedTuple):
    """What a neighbor entry says about a device."""

    ids: tuple[Id, ...]
    """The ids that join devices: the strong ids, without any the others."""
    name: str
    kind: DeviceKind


@dataclass(slots=True)
class HeardDescriptions:
    """What all claims say about the devices that they hear; the order of claims has no effect."""

    first: dict[_Subject, Description] = field(default_factory=dict)
    """By id: the first description of its device."""
    first_by_name: dict[str, _Subject] = field(default_factory=dict)
    """By short name: the first device that is heard under it."""
    contested: set[_Subject] = field(default_factory=set)
    """Ids that are described differently."""
    other_names: set[tuple[Id, str]] = field(default_factory=set)
    """Contested ids with the names in further descriptions."""
    shared_names: set[str] = field(default_factory=set)
    """Short names that several devices are heard under."""
    heard_by_hosts: dict[str, str] = field(default_factory=dict)
    """By short name: the node that hears it; empty if several do."""
    claimed_names: set[str] = field(default_factory=set)
    """Short names of nodes, and of switches that report."""
    identified_names: set[str] = field(default_factory=set)
    """Short names of switches that report a strong id, so that no name joins them."""

    def add(self, origin: Origin, device: Device) -> None:
        """Add what one claim says. Cost: 3 µs per neighbor entry."""
        if origin not in _SPEAKING:
            if origin is Origin.INVENTORY:
                self.claimed_names.add(short_name(device.name))
            return
        node = node_of(device)
        if node is not None or device.kind is DeviceKind.SWITCH:
            self.claimed_names.add(short_name(node or device.name))
        if node is None and any(map(strong_key, device.ids)):
            self.identified_names.add(short_name(device.name))
        for neighbor in _entries(device):
            self._add_heard(describe(neighbor), node)

    def _add_heard(self, description: Description, node: str | None) -> None:
        """Add one device that a claim hears.

        Args:
            description: the description that `describe` returned.
            node: the node that hears it, if the claim is of a node.
        """
        for subject in description.ids:
            if self.first.setdefault(subject, description) != description:
                self.contested.add(subject)
                if isinstance(subject, Id):
                    self.other_names.add((subject, description.name))
        name = short_name(description.name)
        if not name:
            return
        subject_of_name = _subject_of(description)
        if self.first_by_name.setdefault(name, subject_of_name) != subject_of_name:
            self.shared_names.add(name)
        if node is not None and self.heard_by_hosts.setdefault(name, node) != node:
            self.heard_by_hosts[name] = ""

    def names(self) -> Iterator[tuple[Id, str]]:
        """Yield each id of the heard devices with the names under which they are heard."""
        for subject, description in self.first.items():
            if isinstance(subject, Id) and description.name:
                yield subject, description.name
        yield from self.other_names

    @property
    def is_consistent(self) -> bool:
        """Whether all entries describe each device alike, so that there is nothing to vote on."""
        return not self.contested and not self.shared_names

    def is_doubtful(self, device: Device, node: str) -> bool:
        """Return whether a host's report says anything that other devices may contradict."""
        return self.has_foreign_name(device.name, node) or any(
            self._is_doubted(describe(neighbor)) for neighbor in _entries(device)
        )

    def has_foreign_name(self, own_name: str, node: str) -> bool:
        """Return whether a host names itself as another device is named."""
        name = short_name(own_name)
        if not name or name == short_name(node):
            return False
        return name in self.claimed_names or self.heard_by_hosts.get(name, node) != node

    def _is_doubted(self, description: Description) -> bool:
        name = short_name(description.name)
        return (
            name in self.shared_names
            or name in self.identified_names
            or not self.contested.isdisjoint(description.ids)
        )


@dataclass(slots=True)
class _Votes:
    """How many devices give each description of a doubtful device."""

    descriptions: dict[Id, Counter[Description]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    speakers: dict[_Subject, set[int]] = field(default_factory=lambda: defaultdict(set))
    """By device: the numbers of the claims that hear it."""
    named: dict[str, dict[_Subject, set[int]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(set))
    )
    """By shared name: the devices that are heard under it, with the numbers of the claims."""
    witnesses: dict[Id, dict[str, dict[tuple[Id, ...], set[str]]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(lambda: defaultdict(set)))
    )
    """By contested id, name, and port that is heard: the nodes that hear it."""
    shared: dict[tuple[Id, str], str] = field(default_factory=dict)
    """By id and short name of a device that sends it: the short name of another that does too."""

    def find_shared_ids(self) -> None:
        """Find the ids that two devices send, after all votes are counted."""
        for identifier, by_name in self.witnesses.items():
            credible = {
                name: ports
                for name, ports in sorted(by_name.items())
                if name and len(set().union(*ports.values())) >= _MIN_WITNESSES
            }
            for (name, ports), (other, other_ports) in combinations(credible.items(), 2):
                both = [port for port in ports.keys() & other_ports.keys() if port]
                if sum(ports[port].isdisjoint(other_ports[port]) for port in both) > 1:
                    self.shared.setdefault((identifier, name), other)
                    self.shared.setdefault((identifier, other), name)

    def is_shared(self, description: Description) -> bool:
        """Return whether a description has an id that another device sends too."""
        name = short_name(description.name)
        return any((identifier, name) in self.shared for identifier in description.ids)

    def usual(self, identifier: Id) -> Description:
        """Return the description that most claims give; of several, the one with fewest ids."""
        votes = self.descriptions[identifier]
        return min(
            votes,
            key=lambda row: (-votes[row], len(row.ids), row.kind is DeviceKind.HOST, row),
        )

    def is_twin(self, name: str, subject: _Subject) -> bool:
        """Return whether a single claim hears this device, and others hear its name elsewhere.

        If every device of the name is heard by a single claim, they may be the ports of one switch,
        see `join.port_chassis_ids`.
        """
        named = self.named.get(name, {})
        if max(map(len, named.values()), default=0) < 2:  # noqa: PLR2004
            return False
        speakers = self.speakers[subject]
        return len(speakers) == 1 and any(
            other != subject and not found <= speakers for other, found in named.items()
        )


def limit_claims(table: ClaimTable, heard: HeardDescriptions) -> UndisputedClaims:
    """Limit the reports of hosts to what others do not contradict.

    Cost: O(claims); if devices are described differently, all reports are read once more, and
    those that are contradicted twice.

    Args:
        table: all claims; their order has no effect on the descriptions.
        heard: what the neighbor entries of all claims say.
    """
    votes = _Votes()
    if not heard.is_consistent:
        for number, claim in enumerate(table.claims):
            if claim.origin in _SPEAKING:
                _count_votes(votes, heard, number, claim.device)
        votes.find_shared_ids()
    changed: dict[int, Claim] = {}
    for number, (claim, facts) in enumerate(zip(table.claims, table.facts, strict=True)):
        node = facts.node_name if claim.origin is Origin.REPORT else None
        # Without votes, a host can contradict the others only by its own name.
        if node is not None and (
            not heard.is_consistent or heard.has_foreign_name(facts.name, node)
        ):
            limited = _limit_claim(claim, heard, votes)
        elif votes.shared and claim.origin in _SPEAKING:
            limited = _forget_shared_ids(claim, votes)
        else:
            continue
        if limited is not claim:
            changed[number] = limited
    disputes = {
        Dispute(
            Verdict.NEITHER, min(name, other), max(name, other), (identifier.kind, identifier.value)
        )
        for (identifier, name), other in votes.shared.items()
    }
    return UndisputedClaims(changed, tuple(describe_disputes(disputes)))


def _count_votes(votes: _Votes, heard: HeardDescriptions, number: int, device: Device) -> None:
    given: set[tuple[Id, Description]] = set()
    node = node_of(device)
    for neighbor in _entries(device):
        description = describe(neighbor)
        subject = _subject_of(description)
        votes.speakers[subject].add(number)
        contested = [id_ for id_ in description.ids if id_ in heard.contested]
        given.update((id_, description) for id_ in contested)
        name = short_name(description.name)
        if name in heard.shared_names:
            votes.named[name][subject].add(number)
        if node is not None:
            for identifier in contested:
                votes.witnesses[identifier][name][neighbor.port_ids].add(node)
    for identifier, description in given:
        votes.descriptions[identifier][description] += 1


def _limit_claim(claim: Claim, heard: HeardDescriptions, votes: _Votes) -> Claim:
    device = claim.device
    node = node_of(device)
    if node is None or not heard.is_doubtful(device, node):
        return claim
    name = node if heard.has_foreign_name(device.name, node) else device.name
    ports = _change_entries(device, lambda entry: _limit_entry(entry, heard, votes))
    limited = replace(device, name=name, ports=ports)
    return claim if limited == device else Claim(limited, claim.origin)


def _forget_shared_ids(claim: Claim, votes: _Votes) -> Claim:
    """Return a claim whose entries have no id that several devices send."""

    def forget(neighbor: Neighbor) -> Neighbor:
        return _without_ids(neighbor) if votes.is_shared(describe(neighbor)) else neighbor

    device = replace(claim.device, ports=_change_entries(claim.device, forget))
    return claim if device == claim.device else Claim(device, claim.origin)


def _without_ids(neighbor: Neighbor) -> Neighbor:
    """Return an entry that only its name identifies."""
    return neighbor._replace(device_ids=())


def _change_entries(device: Device, change: Callable[[Neighbor], Neighbor]) -> tuple[Port, ...]:
    """Return the ports of a device with its entries changed."""
    return tuple(
        port._replace(neighbors=tuple(map(change, port.neighbors))) for port in device.ports
    )


def _limit_entry(neighbor: Neighbor, heard: HeardDescriptions, votes: _Votes) -> Neighbor:
    """Return an entry as most devices describe what it hears."""
    description = describe(neighbor)
    if votes.is_shared(description):
        return _without_ids(neighbor)
    if not description.ids:
        return _identify_by_name(neighbor, heard, votes)
    first = description.ids[0]
    usual = votes.usual(first) if first in heard.contested else description
    kept = usual.ids
    if usual == description:
        kept = tuple(
            id_
            for id_ in description.ids
            if id_ not in heard.contested or votes.usual(id_).ids == description.ids
        ) or (first,)
    name = short_name(usual.name)
    is_foreign = name in heard.identified_names and len(votes.speakers.get(first, ())) == 1
    if name and (is_foreign or votes.is_twin(name, first)):
        usual = usual._replace(name="")
    return _redescribe(neighbor, kept, usual)


def _identify_by_name(neighbor: Neighbor, heard: HeardDescriptions, votes: _Votes) -> Neighbor:
    """Give an entry without ids the id and the kind of the only other device of its name."""
    name = short_name(neighbor.device_name)
    others = [subject for subject in votes.named.get(name, ()) if isinstance(subject, Id)]
    if len(others) != 1:
        return neighbor
    known = others[0]
    usual = votes.usual(known) if known in heard.contested else heard.first[known]
    return neighbor._replace(device_ids=(known,), kind=usual.kind)


def _redescribe(neighbor: Neighbor, kept: Sequence[Id], usual: Description) -> Neighbor:
    is_strong = any(map(strong_key, neighbor.device_ids))
    weak = (id_ for id_ in neighbor.device_ids if is_strong and not strong_key(id_))
    return neighbor._replace(
        device_ids=tuple(sorted({*kept, *weak})), device_name=usual.name, kind=usual.kind
    )


def _entries(device: Device) -> Iterator[Neighbor]:
    return (neighbor for port in device.ports for neighbor in port.neighbors)


def describe(neighbor: Neighbor) -> Description:
    """Return what a neighbor entry says about its device."""
    strong = [id_ for id_ in neighbor.device_ids if strong_key(id_)]
    ids = strong or sorted(neighbor.device_ids, key=_weak_order)
    return Description(tuple(ids), neighbor.device_name, neighbor.kind)


def _weak_order(identifier: Id) -> tuple[bool, Id]:
    return identifier.kind is not IdKind.CHASSIS_ID, identifier


def _subject_of(description: Description) -> _Subject:
    return description.ids[0] if description.ids else short_name(description.name)
