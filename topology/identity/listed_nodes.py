"""The nodes of an inventory as columns, if no two of them share an id and all ids are plain.

Most lists of nodes are so: generated, with node names, GUIDs and MACs. A sweep can then be joined
with the list as columns; see `join.sweep_join`. Every other list is left to the general way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from topology.identity.node_names import NodeNames, build_node_names
from topology.model.claims import Claim, ListedClaim, Origin
from topology.model.fabric_columns import Flags, Index
from topology.model.facts import DeviceKind
from topology.model.ids import (
    Id,
    IdKind,
    is_canonical_guid,
    is_canonical_mac,
    parse_node_name,
)
from topology.model.packed_ids import GUID_SIZE, MAC_SIZE, PackedIds, split_texts

_JOINING: Final = frozenset({IdKind.NODE_GUID, IdKind.PORT_GUID, IdKind.MAC, IdKind.NODE_NAME})
_WEAK: Final = frozenset({IdKind.HOSTNAME, IdKind.IP})
_PLAIN_KINDS: Final = _JOINING | _WEAK
_MAC_BYTES: Final = 6


@dataclass(frozen=True, slots=True)
class GuidColumn:
    """GUIDs of one kind."""

    guids: NDArray[np.uint64]
    owners: Index
    """In the order of `guids`: the node."""

    def with_guids(self, other: GuidColumn) -> GuidColumn:
        """Return the GUIDs of both; one that is in both has one owner."""
        return GuidColumn(
            np.concatenate([self.guids, other.guids]), np.concatenate([self.owners, other.owners])
        )


@dataclass(frozen=True, slots=True)
class ListedNodes:
    """Nodes that are listed, or that report, whose names and ids are unique."""

    names: Sequence[str]
    """In the order of their claims."""
    node_guids: GuidColumn
    port_guids: GuidColumn
    claims: Sequence[Claim | None]
    """By node: its claim in the inventory."""
    reports: Sequence[Claim | None]
    """By node: its report, which lists GUIDs."""
    macs: Sequence[Sequence[str]] = ()
    """By node: its MACs in the inventory."""

    def numbers(self) -> dict[str, int]:
        """Return the number of each node by its name."""
        return {name: number for number, name in enumerate(self.names)}

    def name_nodes(self, other_names: Iterable[str]) -> NodeNames:
        """Return which node a name means, beside the names of other devices."""
        rows = zip(self.names, self.claims, strict=True)
        ids = [(name, (_read_ids(claim) or ()) if claim else ()) for name, claim in rows]
        return build_node_names(ids, other_names)

    def lists_guids(self) -> Flags:
        """Return one flag per node: whether it lists any GUID."""
        flags = np.array([report is not None for report in self.reports], np.bool_)
        flags[self.node_guids.owners] = flags[self.port_guids.owners] = True
        return flags


@dataclass(slots=True)
class _IdCollector:
    """GUIDs and MACs as texts, one entry per node, each with all of its ids of the kind."""

    node_guids: list[str] = field(default_factory=list)
    port_guids: list[str] = field(default_factory=list)
    macs: list[str] = field(default_factory=list)

    def add(self, name: str, ids: Sequence[Id]) -> bool:
        """Add the ids of a node; return whether all are plain."""
        packed = ids if isinstance(ids, PackedIds) else _pack(ids)
        if packed is None or packed.name != name:
            return False
        self.node_guids.append(packed.node_guids)
        self.port_guids.append(packed.port_guids)
        self.macs.append(packed.macs)
        return True

    def has_shared_mac(self) -> bool:
        """Return whether two nodes list one MAC."""
        digits = np.frombuffer(bytes.fromhex("".join(self.macs).replace(":", "")), np.uint8)
        macs = np.zeros((len(digits) // _MAC_BYTES, 8), np.uint8)
        macs[:, :_MAC_BYTES] = digits.reshape(-1, _MAC_BYTES)
        return _has_repeated(macs.view(np.uint64).ravel())


def _pack(ids: Sequence[Id]) -> PackedIds | None:
    """Return ids packed, without host names and addresses; None if others are not plain."""
    values: dict[IdKind, list[str]] = {kind: [] for kind in _PLAIN_KINDS}
    for kind, value, subtype in ids:
        if subtype or kind not in values:
            return None
        values[kind].append(value)
    guids = values[IdKind.NODE_GUID], values[IdKind.PORT_GUID]
    names, macs = values[IdKind.NODE_NAME], values[IdKind.MAC]
    if len(names) != 1 or not all(map(is_canonical_mac, macs)):
        return None
    if not all(map(is_canonical_guid, chain(*guids))):
        return None
    return PackedIds(names[0], node_guids=guids[0], port_guids=guids[1], macs=macs)


def _has_repeated(numbers: NDArray[np.uint64]) -> bool:
    ordered = np.sort(numbers)
    return bool((ordered[1:] == ordered[:-1]).any())


def _build_column(texts: Sequence[str]) -> GuidColumn | None:
    """Return the GUIDs of all nodes, None if two nodes list one."""
    guids = np.frombuffer(bytes.fromhex("".join(texts)), ">u8").astype(np.uint64)
    sizes = np.fromiter(map(len, texts), np.intp, len(texts)) // GUID_SIZE
    if _has_repeated(guids):
        return None
    return GuidColumn(guids, np.repeat(np.arange(len(texts)), sizes))


def read_listed_nodes(claims: Iterable[Claim]) -> ListedNodes | None:
    """Return the nodes of an inventory; None if two share an id, or an id is not plain.

    Cost: O(ids), 0.3 µs each.
    """
    ordered = sorted(claims, key=lambda claim: claim.name)
    collected = _IdCollector()
    for claim in ordered:
        ids = _read_ids(claim)
        if ids is None or parse_node_name(claim.name) is None:
            return None
        if not collected.add(claim.name, ids):
            return None
    node_guids, port_guids = map(_build_column, (collected.node_guids, collected.port_guids))
    if node_guids is None or port_guids is None or collected.has_shared_mac():
        return None
    if len({claim.name for claim in ordered}) < len(ordered):
        return None
    return ListedNodes(
        names=[claim.name for claim in ordered],
        node_guids=node_guids,
        port_guids=port_guids,
        claims=ordered,
        reports=(None,) * len(ordered),
        macs=[split_texts(macs, MAC_SIZE) for macs in collected.macs],
    )


def _read_ids(claim: Claim) -> Sequence[Id] | None:
    """Return the ids of a listed node; None if the claim says more."""
    if isinstance(claim, ListedClaim):
        return claim.packed_ids
    device = claim.device
    is_listed = claim.origin is Origin.INVENTORY and device.kind is DeviceKind.HOST
    return device.ids if is_listed and not device.ports else None
