"""Join the descriptions that are of one device although no strong id connects them.

A device is described by its own claims, and by neighbors that hear it; each source uses its own
words: a file name, a system name with or without a domain, a chassis id of any subtype, a
management address. Descriptions are joined by three kinds of evidence:

1. Ports: both are at the other end of the same port, which has one cable. A claim without strong
   ids is joined by its ports alone; descriptions with a common word need one such port. If their
   ids contradict each other, they need two, and more than half of the ports.
2. Words: a name, a chassis id or an address that only descriptions without a contradiction share.
   A device that only one neighbor mentions is not joined with a device that has cables elsewhere:
   one false frame or report never joins two devices.
3. Ids per port: a switch may send another chassis id on each port, see `port_chassis_ids`.

Two descriptions that one port hears side by side are never one device. The order of claims has no
effect.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

from topology.identity.device_resolution import AMBIGUOUS, Entity
from topology.identity.node_names import NAME_SUBTYPES, NameKey, NodeNames
from topology.join.claim_columns import FabricRows
from topology.join.neighbor_resolution import NeighborEntries, NeighborResolver
from topology.join.port_chassis_ids import find_ids_per_port
from topology.join.port_ends import MAX_DESCRIPTIONS, FarPort, PortEnds, count_shared_ends
from topology.model.claims import Origin, duplicate_name_finding, strong_key, unclear_switch_finding
from topology.model.facts import DeviceKind
from topology.model.ids import Id, IdKind, first_label, full_name

_MAX_ROUNDS: Final = 12
"""A round joins descriptions; the next compares ports whose devices are joined now. A tier of
switches takes one or two rounds."""
_MAX_NAMESAKES: Final = 64
"""More devices with one name have a default name, which identifies none of them."""
_MIN_REPORTERS: Final = 2


def join_same_devices(
    resolver: NeighborResolver, rows: FabricRows, entries: NeighborEntries
) -> NeighborEntries:
    """Join entities, and return the entries with the new numbers of entities.

    Cost: O(names of devices) if all descriptions are connected by strong ids; else also reads the
    claims about the devices in question and about their neighbors, and copies the entries.
    """
    for _ in range(_MAX_ROUNDS):
        judge = _DeviceJudge(resolver, PortEnds(rows, entries))
        judge.join_by_ports()
        if not judge.targets:
            judge.join_namesakes()
        if not judge.targets:
            judge.record_undecided()
            break
        entries = _merge(resolver, entries, judge)
    return entries


@dataclass(slots=True)
class _DeviceJudge:
    """Decides which entities are one device."""

    resolver: NeighborResolver
    ends: PortEnds
    targets: dict[int, int] = field(default_factory=dict)
    """Entity to the entity that it is joined with, which has a lower number."""
    undecided: list[tuple[NameKey, tuple[int, ...]]] = field(default_factory=list)
    """Words, each with the descriptions that share it and may be of one device."""
    unclear_switches: dict[str, int] = field(default_factory=dict)
    """Names, each with the number of descriptions that may be of one switch or of several."""
    _far_ports: dict[int, set[FarPort]] = field(default_factory=dict)

    @property
    def entities(self) -> Sequence[Entity]:
        """All entities: those with claims, then those known only as neighbors."""
        return self.resolver.identities.entities

    def find(self, entity: int) -> int:
        """Return the entity that represents the device so far."""
        while entity in self.targets:
            entity = self.targets[entity]
        return entity

    def join(self, first: int, second: int) -> None:
        """Record that two entities are one device."""
        first, second = sorted((self.find(first), self.find(second)))
        if first != second:
            self.targets[second] = first

    def far_ports(self, entity: int) -> set[FarPort]:
        """Return the ports at the other ends of an entity's cables."""
        if entity not in self._far_ports:
            self._far_ports[entity] = self.ends.far_ports(entity)
        return self._far_ports[entity]

    def join_by_ports(self) -> None:
        """Join claims without strong ids with the descriptions at the same ports."""
        for entity in range(self.resolver.num_claimed):
            if self.entities[entity].is_loose:
                rival = self._find_same_cables(entity)
                if rival is not None:
                    self.join(entity, rival)

    def _find_same_cables(self, entity: int) -> int | None:
        """Return the only description that is at more than half of the far ports of an entity."""
        devices: dict[int, set[int]] = defaultdict(set)
        for end in self.far_ports(entity):
            rivals = self.ends.at_ports().get(end, ())
            for rival in rivals if len(rivals) <= MAX_DESCRIPTIONS else ():
                devices[rival].add(end[0])
        matches = [
            rival
            for rival, shared in sorted(devices.items())
            if self._may_be_one(entity, rival)
            and 2 * len(shared) > self._num_comparable(entity, rival)
        ]
        named = [rival for rival in matches if not self.entities[rival].is_loose]
        matches = named or matches
        return matches[0] if len(matches) == 1 else None

    def _num_comparable(self, entity: int, rival: int) -> int:
        """Return how many devices could show that two descriptions have the same cables.

        A device that is known only as a neighbor reports nothing itself. The devices that hear it
        count, except those that may have another description among the neighbors.
        """
        neighbors, heard = self.ends.heard_by(entity), self.ends.heard_by(rival)
        if heard:
            return min(len(neighbors), len(heard))
        reporting = {near for near in neighbors if self.ends.heard_by(near)}
        reporters = {
            near for near in self.ends.reporters(rival) if not self.entities[near].is_loose
        }
        return len(reporting | reporters)

    def _may_be_one(self, first: int, second: int) -> bool:
        entities = self.entities
        is_apart = first == second or any(
            entities[index].kind is DeviceKind.SWITCH and is_swept(entities[index])
            for index in (first, second)
        )
        is_apart = is_apart or self._is_disputed(first) or self._is_disputed(second)
        if is_apart or are_different(entities[first], entities[second]):
            return False
        return not self.ends.hearing_ports(first) & self.ends.hearing_ports(second)

    def _is_disputed(self, entity: int) -> bool:
        """Return whether a neighbor is known by an id that several devices claim."""
        owner = self.resolver.identities.owner
        return entity >= self.resolver.num_claimed and any(
            owner.get(hash(strong_key(identifier))) == AMBIGUOUS
            for identifier in self.entities[entity].heard_ids
        )

    def _shared_devices(self, members: Iterable[int]) -> dict[tuple[int, int], int]:
        """Return, by pair of members, how many devices have a port at which both are reported."""
        return count_shared_ends({entity: self.far_ports(entity) for entity in members})

    def join_namesakes(self) -> None:
        """Join the descriptions that share a word, as far as their ids and cables allow it."""
        for word, members in self._find_namesakes():
            self._join_ids_per_port(members)
            groups = sorted({self.find(entity) for entity in members})
            if 1 < len(groups) <= _MAX_NAMESAKES:
                self._join_by_word(word, groups)

    def _join_ids_per_port(self, members: Sequence[int]) -> None:
        """Join the descriptions of a switch that sends another id from each port.

        Descriptions that may be such a switch, or several switches, are put in `unclear_switches`.
        """
        for alike in find_ids_per_port(self.resolver, self.ends, members):
            if alike.are_one_switch:
                for description in alike.descriptions[1:]:
                    self.join(alike.descriptions[0], description)
            elif alike.are_forwarding:
                self.unclear_switches[alike.name] = len(alike.descriptions)

    def _join_by_word(self, word: NameKey, members: Sequence[int]) -> None:
        pairs = [pair for pair in combinations(members, 2) if self._may_be_one(*pair)]
        if not pairs:
            return
        shared = self._shared_devices(members)
        for pair in sorted(pairs, key=lambda pair: (-shared.get(pair, 0), pair)):
            if self._has_same_ports(pair, shared.get(pair, 0)):
                self.join(*pair)
        groups: dict[int, list[int]] = defaultdict(list)
        for entity in members:
            groups[self.find(entity)].append(entity)
        rest = list(groups.values())
        if len(rest) < 2:  # noqa: PLR2004 - one device
            return
        credible = [group for group in rest if self._is_credible(group, rest)]
        if self._are_consistent(credible):
            for group in credible[1:]:
                self.join(credible[0][0], group[0])
        if not self._are_consistent(credible) or len(credible) < len(rest):
            self.undecided.append((word, tuple(group[0] for group in rest)))

    def _has_same_ports(self, pair: tuple[int, int], num_shared: int) -> bool:
        if not num_shared or self.find(pair[0]) == self.find(pair[1]):
            return False
        if not has_contradiction(self.entities[pair[0]], self.entities[pair[1]]):
            return True
        num_devices = min(len({device for device, _ in self.far_ports(end)}) for end in pair)
        return num_shared > 1 and 2 * num_shared > num_devices

    def _are_consistent(self, groups: Sequence[Sequence[int]]) -> bool:
        """Return whether descriptions with one word may all be of one device."""
        for first, second in combinations(groups, 2):
            pairs = [(one, other) for one in first for other in second]
            if not all(self._may_be_one(*pair) for pair in pairs):
                return False
            if any(has_contradiction(self.entities[a], self.entities[b]) for a, b in pairs):
                return False
        return True

    def _is_credible(self, group: Sequence[int], groups: Sequence[Sequence[int]]) -> bool:
        """Return whether a description has enough evidence to join a device with other cables."""
        if any(entity < self.resolver.num_claimed for entity in group):
            return True
        others = [entity for other in groups if other is not group for entity in other]
        if not any(self._has_cables(entity) for entity in others):
            return True
        reporters = set().union(*(self.ends.reporters(entity) for entity in group))
        if any(self.entities[entity].node is not None for entity in others):
            neighbors = set().union(*(self.ends.heard_by(entity) for entity in others))
            if any(near < self.resolver.num_claimed for near in neighbors):
                return False
        return len(reporters) >= _MIN_REPORTERS

    def _has_cables(self, entity: int) -> bool:
        return bool(self.ends.heard_by(entity) or self.ends.reporters(entity))

    def _find_namesakes(self) -> Iterator[tuple[NameKey, list[int]]]:
        """Yield words with the descriptions that share them, if any of these may be joined."""
        members: dict[NameKey, set[int]] = defaultdict(set)
        num_claimed, names = self.resolver.num_claimed, self.resolver.identities.names
        for index, entity in enumerate(self.entities):
            is_mention = index >= num_claimed
            if not is_mention and (entity.node is not None or is_swept(entity)):
                continue
            words = set(map(names.key, entity.names))
            words.update(words_of_ids(entity.heard_ids if is_mention else (), names))
            for word in words:
                if word.name:
                    members[word].add(index)
        if any(len(alike) == 1 and min(alike) >= num_claimed for alike in members.values()):
            self._add_words_of_switches(members)
        self._add_hosts(members)
        for word in sorted(members):
            if len(members[word]) > 1:
                yield word, sorted(members[word])

    def _add_words_of_switches(self, members: Mapping[NameKey, set[int]]) -> None:
        """Add the claimed devices with an address or chassis id that neighbors use as a word."""
        names = self.resolver.identities.names
        for index in range(self.resolver.num_claimed):
            entity = self.entities[index]
            if entity.node is None and entity.kind is not DeviceKind.HOST:
                for word in members.keys() & set(words_of_ids(entity.ids, names)):
                    members[word].add(index)

    def _add_hosts(self, members: Mapping[NameKey, set[int]]) -> None:
        """Add the nodes and the swept hosts with a name that is a word of other descriptions."""
        if not members:
            return
        names = self.resolver.identities.names
        for index in range(self.resolver.num_claimed):
            entity = self.entities[index]
            words: Iterable[NameKey] = ()
            if entity.node:
                words = (NameKey(entity.node, is_node=True),)
            elif entity.kind is DeviceKind.HOST and is_swept(entity):
                words = map(names.key, entity.names)
            for word in words:
                if word in members:
                    members[word].add(index)

    def record_undecided(self) -> None:
        """Add a finding for each name that several hosts share.

        Add one too for each name under which several chassis ids are heard.
        """
        for name, num in sorted(self.unclear_switches.items()):
            self.resolver.identities.findings.append(unclear_switch_finding(name, num))
        for word, members in self.undecided:
            claimed = [entity for entity in members if entity < self.resolver.num_claimed]
            hosts = [
                entity for entity in claimed if self.entities[entity].kind is not DeviceKind.SWITCH
            ]
            if len(hosts) > 1:
                finding = duplicate_name_finding(word.name, len(hosts))
                self.resolver.identities.findings.append(finding)


def _merge(
    resolver: NeighborResolver, entries: NeighborEntries, judge: _DeviceJudge
) -> NeighborEntries:
    """Merge entities as judged, and return the entries with the new numbers."""
    entities = resolver.identities.entities
    roots = [judge.find(index) for index in range(len(entities))]
    kept = [index for index, root in enumerate(roots) if root == index]
    place = {index: number for number, index in enumerate(kept)}
    for index in sorted(judge.targets):
        entities[roots[index]].unite(entities[index])
    numbers = [place[root] for root in roots]
    num_claimed = sum(index < resolver.num_claimed for index in kept)
    resolver.identities.entities = [entities[index] for index in kept]
    resolver.num_claimed = num_claimed
    return entries.renumber(numbers)


def words_of_ids(ids: Iterable[Id], names: NodeNames) -> Iterator[NameKey]:
    """Yield the words in ids that do not join devices by themselves."""
    for identifier in ids:
        is_address = identifier.kind is IdKind.IP or identifier.subtype == "ip"
        is_name = identifier.kind is IdKind.HOSTNAME or identifier.subtype in NAME_SUBTYPES
        if is_address or is_name:
            yield names.key(identifier.value)


def is_swept(entity: Entity) -> bool:
    """Return whether only sweeps describe the device; its GUIDs identify it."""
    return bool(entity.numbers) and all(claim.origin is Origin.SWEEP for claim in entity.claims)


def are_different(first: Entity, second: Entity) -> bool:
    """Return whether two descriptions are of different devices, on whatever port they are heard."""
    nodes = {first.node, second.node} - {None}
    kinds = {first.kind, second.kind} - {DeviceKind.UNKNOWN}
    return len(nodes) > 1 or len(kinds) > 1 or _have_other_domains(first.names, second.names)


def _have_other_domains(names: Iterable[str], others: Iterable[str]) -> bool:
    """Return whether two devices have the same first label in different domains."""
    full_names = {full_name(name) for name in names if "." in name}
    other_names = {full_name(name) for name in others if "." in name}
    common_labels = set(map(first_label, full_names)) & set(map(first_label, other_names))
    for label in common_labels:
        of_label = {name for name in full_names if first_label(name) == label}
        if of_label.isdisjoint(other_names):
            return True
    return False


def has_contradiction(first: Entity, second: Entity) -> bool:
    """Return whether two descriptions differ in facts that rarely differ for one device.

    A device has one set of node GUIDs, and sends one chassis id of subtype MAC. It has more MACs
    than a source lists. Two sources of one origin are about two devices.
    """
    if first.origins & second.origins:
        return True
    first_ids, second_ids = _single_ids(first.ids), _single_ids(second.ids)
    kinds_of_both = {kind for kind, _ in first_ids} & {kind for kind, _ in second_ids}
    return bool(kinds_of_both - {kind for kind, _ in first_ids & second_ids})


def _single_ids(ids: Iterable[Id]) -> set[tuple[IdKind, str]]:
    return {
        (kind, value)
        for kind, value, subtype in ids
        if kind is IdKind.NODE_GUID or (kind is IdKind.CHASSIS_ID and subtype == "mac")
    }
