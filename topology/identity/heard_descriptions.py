"""Descriptions of heard devices, and the limit of what one host may say about another device.

A host's report may be wrong or hostile, and a switch without a report of its own is known only from
what hosts hear. So the description of such a device (its ids, name and kind) is the one that most
devices hear, and a host's own name never is the name of another device. A device that only one host
hears is described by this host alone. Switches' reports come from walks, and are not limited.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeAlias

from topology.identity.claim_facts import ClaimTable, node_of
from topology.model.claims import Claim, Origin, strong_key
from topology.model.facts import Device, DeviceKind, Neighbor, Port
from topology.model.ids import Id, IdKind, short_name

_Subject: TypeAlias = Id | str
"""A device that is heard: one of its ids, or its short name if it sends no id."""
_SPEAKING: Final = frozenset({Origin.REPORT, Origin.CAPTURE})


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
            description: by `describe`.
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

    def usual(self, identifier: Id) -> Description:
        """Return the description that most claims give; of several, the one with fewest ids."""
        votes = self.descriptions[identifier]
        return min(
            votes,
            key=lambda one: (-votes[one], len(one.ids), one.kind is DeviceKind.HOST, one),
        )

    def is_twin(self, name: str, subject: _Subject) -> bool:
        """Return whether one claim alone hears a name from a device that others hear elsewhere.

        If each device of the name is heard by one claim alone, they may be the ports of one switch,
        see `join.port_chassis_ids`.
        """
        named = self.named.get(name, {})
        if max(map(len, named.values()), default=0) < 2:  # noqa: PLR2004
            return False
        speakers = self.speakers[subject]
        return len(speakers) == 1 and any(
            other != subject and not found <= speakers for other, found in named.items()
        )


def limit_claims(table: ClaimTable, heard: HeardDescriptions) -> Mapping[int, Claim]:
    """Limit the reports of hosts to what others do not contradict.

    Cost: O(claims); where devices are described differently, all reports are read once more, and
    those that are contradicted twice.

    Args:
        table: all claims; their order has no effect on the descriptions.
        heard: what all of them say.

    Returns:
        By claim number: the claim, corrected where most other devices contradict it.
    """
    votes = _Votes()
    if not heard.is_consistent:
        for number, claim in enumerate(table.claims):
            if claim.origin in _SPEAKING:
                _count_votes(votes, heard, number, claim.device)
    changed: dict[int, Claim] = {}
    for number, (claim, facts) in enumerate(zip(table.claims, table.facts, strict=True)):
        if claim.origin is not Origin.REPORT or facts.node_name is None:
            continue
        # Without votes, a host can contradict the others only by its own name.
        if heard.is_consistent and not heard.has_foreign_name(facts.name, facts.node_name):
            continue
        limited = _limit_claim(claim, heard, votes)
        if limited is not claim:
            changed[number] = limited
    return changed


def _count_votes(votes: _Votes, heard: HeardDescriptions, number: int, device: Device) -> None:
    given: set[tuple[Id, Description]] = set()
    for neighbor in _entries(device):
        description = describe(neighbor)
        subject = _subject_of(description)
        votes.speakers[subject].add(number)
        given.update((id_, description) for id_ in description.ids if id_ in heard.contested)
        name = short_name(description.name)
        if name in heard.shared_names:
            votes.named[name][subject].add(number)
    for identifier, description in given:
        votes.descriptions[identifier][description] += 1


def _limit_claim(claim: Claim, heard: HeardDescriptions, votes: _Votes) -> Claim:
    device = claim.device
    node = node_of(device)
    if node is None or not heard.is_doubtful(device, node):
        return claim
    name = node if heard.has_foreign_name(device.name, node) else device.name
    ports = tuple(_limit_port(port, heard, votes) for port in device.ports)
    limited = replace(device, name=name, ports=ports)
    return claim if limited == device else Claim(limited, claim.origin)


def _limit_port(port: Port, heard: HeardDescriptions, votes: _Votes) -> Port:
    limited = tuple(_limit_entry(neighbor, heard, votes) for neighbor in port.neighbors)
    return port if limited == port.neighbors else port._replace(neighbors=limited)


def _limit_entry(neighbor: Neighbor, heard: HeardDescriptions, votes: _Votes) -> Neighbor:
    """Return an entry as most devices describe what it hears."""
    description = describe(neighbor)
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
    """Return an entry without ids with the id and the kind of the only other device of its name."""
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
