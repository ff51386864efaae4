"""The rows of reports that are like a sample, straight from the texts in which they differ.

The hosts of a cluster have few kinds of hardware. What the rows of their reports have in common is
taken once from a sample, and each report adds the hashes of its names and ids. No device is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import add
from typing import Final, NamedTuple

from topology.identity.claim_facts import MAX_STORED_IDS, ClaimFacts, read_facts
from topology.identity.disputed_ids import neighbor_keys
from topology.identity.heard_descriptions import Description, HeardDescriptions, describe
from topology.join.claim_rows import (
    LikeHashes,
    LikeRows,
    PortRowBuilder,
    encode_style,
)
from topology.join.port_numbers import port_keys, sort_ports
from topology.model.claims import Key, claim_keys, strong_key
from topology.model.facts import Device, Neighbor, Source
from topology.model.ids import Id, IdKind, parse_node_name
from topology.reports.device_texts import DeviceTexts, TextPick, mark_texts, pick_texts
from topology.reports.packed_claims import PackedClaim

_MAX_DESCRIBED: Final = 1 << 16
"""Hosts at one leaf hear the same; of what one claim alone hears, a description costs 4 µs."""
_MARK: Final = re.compile(r"\0(\d+)\0(.*)", re.DOTALL)


class LikeFacts(NamedTuple):
    """What the join reads of one claim."""

    facts: ClaimFacts
    heard_keys: list[int]
    """Hashes of the keys that the claim mentions as neighbors."""


class _Keys:
    """Keys of which some have texts that differ."""

    def __init__(self, keys: Iterable[Key]) -> None:
        """Take the keys of a marked device, see `mark_texts`."""
        rows = [(kind, _MARK.fullmatch(text), text) for kind, text in keys]
        self._kinds = tuple(kind for kind, _, _ in rows)
        self._fixed = [text for _, found, text in rows if found is None]
        # The fixed texts follow the one that differ, backwards from the end.
        fixed = iter(range(-len(self._fixed), 0))
        indices = [next(fixed) if found is None else int(found[1]) for _, found, _ in rows]
        self._pick = pick_texts(indices)
        self._suffixes = tuple("" if found is None else found[2] for _, found, _ in rows)
        self._has_suffix = any(self._suffixes)

    def hash(self, texts: Sequence[str]) -> list[int]:
        """Return the hash of each key of a device with these texts."""
        if not self._kinds:
            return []
        values: Iterable[str] = self._pick((*texts, *self._fixed) if self._fixed else texts)
        if self._has_suffix:
            values = map(add, values, self._suffixes)
        return list(map(hash, zip(self._kinds, values, strict=True)))


class _HeardDevice:
    """A neighbor entry of a marked device."""

    def __init__(self, marked: Neighbor) -> None:
        """Find its texts."""
        self.marked = marked
        ids = [_index(one.value) for one in marked.device_ids]
        self.pick = pick_texts([_index(marked.device_name), *ids])
        """Its name, then its ids."""


class _SampleRows:
    """What the rows of all devices that are like a sample have in common."""

    def __init__(self, sample: Device, rows: PortRowBuilder) -> None:
        """Take it from the sample."""
        self.texts = DeviceTexts(sample)
        self.facts = read_facts(sample)
        self.is_identified = any(map(strong_key, sample.ids))
        marked = mark_texts(sample, "\0{}\0".format)
        every = [one for port in marked.ports for one in port.neighbors]
        self.far_names = pick_texts([_index(one.port_name) for one in every])
        self.are_named = tuple(
            bool(one.port_name) for port in sample.ports for one in port.neighbors
        )
        self.heard_devices = [_HeardDevice(one) for one in every]
        self.few_ids = sample.ids if len(sample.ids) <= MAX_STORED_IDS else ()
        self.own_ids = pick_texts([_index(one.value) for one in marked.ids[: len(self.few_ids)]])
        self.node_names = _pick_ids(marked.ids, IdKind.NODE_NAME)
        self.images = _pick_ids(marked.ids, IdKind.SYSTEM_IMAGE_GUID)
        marked = _without_empty_names(marked, sample)
        self.keys = _Keys(claim_keys(marked))
        self.id_keys = _Keys(key for one in marked.ids if (key := strong_key(one)))
        self._place_rows(marked, sample, rows)

    def _place_rows(self, marked: Device, sample: Device, rows: PortRowBuilder) -> None:
        ports = sort_ports(marked.ports)
        own = [port_keys(port.ids, port.name) for port in ports]
        near = [one for port in ports for one in port.neighbors]
        far = [port_keys(one.port_ids, one.port_name) for one in near]
        first = [next(filter(None, map(strong_key, one.device_ids)), None) for one in near]
        self.port_keys = _Keys(key for keys in own for key in keys)
        self.far_keys = _Keys(key for keys in far for key in keys)
        self.first_keys = _Keys(key or ("", "") for key in first)
        self.mentioned = _Keys(key for one in near for key in neighbor_keys(one))
        by_name = {port.name: port for port in sample.ports}
        self.rows = LikeRows(
            codes=rows.table.encode([by_name[port.name] for port in ports]),
            has_name=bytes(bool(port.name) for port in ports),
            key_sizes=[len(keys) for keys in own],
            entry_sizes=[len(port.neighbors) for port in ports],
            has_key=bytes(key is not None for key in first),
            is_swept=bytes(one.source is Source.IB for one in near),
            styles=bytes(encode_style(one) for one in near),
            far_key_sizes=[len(keys) for keys in far],
        )


def _pick_ids(ids: Iterable[Id], kind: IdKind) -> TextPick:
    return pick_texts([_index(one.value) for one in ids if one.kind is kind])


@dataclass(slots=True)
class LikeClaims:
    """Reads claims that are like one sample."""

    rows: PortRowBuilder
    heard: HeardDescriptions
    sample: _SampleRows
    _described: dict[tuple[int, tuple[str, ...]], Description] = field(default_factory=dict)

    def read(self, claim: PackedClaim, number: int) -> LikeFacts | None:
        """Add the rows of a claim; None if its device must be read. Cost: 0.3 µs an id."""
        sample, node = self.sample, claim.node
        texts = sample.texts.read(claim.packed)
        if texts is None or any(name != node for name in sample.node_names(texts)):
            return None
        if tuple(map(bool, sample.far_names(texts))) != sample.are_named:
            return None
        hashes = LikeHashes(
            sample.port_keys.hash(texts), sample.first_keys.hash(texts), sample.far_keys.hash(texts)
        )
        self.rows.add_like(number, sample.rows, hashes)
        name, kind = texts[0], sample.facts.kind
        self.heard.add_speaker(name, kind, node, is_identified=sample.is_identified)
        for description in self._describe(texts):
            self.heard.add_heard(description, node)
        ids = zip(sample.few_ids, sample.own_ids(texts), strict=True)
        facts = sample.facts._replace(
            name=name,
            node_name=node,
            node=None if node is None else parse_node_name(node),
            keys=tuple(dict.fromkeys(sample.keys.hash(texts))),
            name_keys=() if node is None else (hash((IdKind.NODE_NAME, node)),),
            id_keys=tuple(sample.id_keys.hash(texts)),
            ids=tuple([one._replace(value=value) for one, value in ids]),
            images=tuple(map(hash, sample.images(texts))),
        )
        return LikeFacts(facts, list(set(sample.mentioned.hash(texts))))

    def _describe(self, texts: Sequence[str]) -> Iterator[Description]:
        """Yield what the claim says about each device that it hears."""
        for number, device in enumerate(self.sample.heard_devices):
            name_and_ids = device.pick(texts)
            known = self._described.get((number, name_and_ids))
            if known is None:
                name, *values = name_and_ids
                pairs = zip(device.marked.device_ids, values, strict=True)
                ids = tuple([one._replace(value=value) for one, value in pairs])
                known = describe(device.marked._replace(device_ids=ids, device_name=name))
                if len(self._described) >= _MAX_DESCRIBED:
                    self._described.clear()
                self._described[number, name_and_ids] = known
            yield known


def learn_claims(
    claim: PackedClaim, rows: PortRowBuilder, heard: HeardDescriptions
) -> LikeClaims | None:
    """Return the reader of claims that are like the sample of a claim.

    None if their rows do not follow from the sample: a node needs exactly one node name, and ports
    need different names and at most one neighbor each.
    """
    sample = claim.sample
    if sample is None or not _is_simple(sample, has_node=claim.node is not None):
        return None
    return LikeClaims(rows, heard, _SampleRows(sample, rows))


def _is_simple(sample: Device, *, has_node: bool) -> bool:
    node_names = [one for one in sample.ids if one.kind is IdKind.NODE_NAME]
    names = {port.name for port in sample.ports}
    return (
        len(node_names) == has_node
        and not any(one.subtype for one in node_names)
        and len(names) == len(sample.ports)
        and all(len(port.neighbors) <= 1 for port in sample.ports)
    )


def _index(text: str) -> int:
    """Return the number of a marked text."""
    found = _MARK.fullmatch(text)
    return int(found[1]) if found else 0


def _without_empty_names(marked: Device, sample: Device) -> Device:
    """Return the marked device without marks of port names that are empty in the sample."""
    ports = []
    for port, original in zip(marked.ports, sample.ports, strict=True):
        rows = zip(port.neighbors, original.neighbors, strict=True)
        kept = tuple([one if old.port_name else one._replace(port_name="") for one, old in rows])
        ports.append(port._replace(neighbors=kept))
    return replace(marked, ports=tuple(ports))
