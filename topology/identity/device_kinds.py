"""Hosts and switches told apart where a source cannot, and hosts given their node names.

LLDP capabilities do not tell them apart (a host with a bridge says Bridge and Router), so a host
is what one of the cluster's nodes is, and the rest is judged by who hears it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np

from topology.identity.device_names import DeviceDraft
from topology.identity.device_resolution import Entity
from topology.model.claims import Origin, strong_key
from topology.model.errors import show
from topology.model.fabric_columns import Codes, Index
from topology.model.facts import DeviceKind, Finding, FindingKind, Severity
from topology.model.ids import parse_node_name

MIN_SWITCH_VIEWERS = 3  # a device that so many others hear is a switch


UNKNOWN_STYLE, BY_MAC, BY_NAME = range(3)
"""How a device names its port to others: nothing that means anything, its MAC, as lldpd on a host
does, or its name, as switches do."""


class PeerColumns(NamedTuple):
    """Who hears whom, one entry per neighbor entry."""

    device: Index
    port: Index
    """Number of the hearing port, unique over all devices."""
    peer: Index
    """The device heard."""
    style: Codes
    """How the peer names its port."""


def resolve_kinds(entities: Sequence[Entity], heard: PeerColumns) -> frozenset[int]:
    """Give every device a kind.

    A device of unknown kind is a switch when a node hears it, alone on its port or beside other
    hearers, or when three others do. How it names its ports speaks too where the fabric has both
    styles: one that names MACs is a host with many leaves, one that names interfaces, is no node
    and is heard by two is a spine over two leaves.

    Args:
        entities: devices, changed in place.
        heard: all neighbor entries.

    Returns:
        The devices that are heard on one port with others.
    """
    views = _gather_evidence(entities, heard)
    shared = _find_shared_port_devices(heard)
    has_nodes = any(entity.node for entity in entities)
    for entity in entities:
        if entity.node is not None:
            entity.kind = DeviceKind.HOST
    for at, entity in enumerate(entities):
        if entity.kind is DeviceKind.UNKNOWN:
            seen = views.viewers[at]
            by_node = has_nodes and any(entities[one].node for one in seen)
            is_leaf = by_node and (len(seen) > 1 or at not in shared)
            is_switch = is_leaf or len(seen) >= views.min_viewers(at, has_nodes=has_nodes)
            entity.kind = DeviceKind.SWITCH if is_switch else DeviceKind.HOST
    return shared


def _gather_evidence(entities: Sequence[Entity], heard: PeerColumns) -> _KindEvidence:
    is_unknown = np.array([one.kind is DeviceKind.UNKNOWN for one in entities], np.bool_)
    asked = np.flatnonzero(is_unknown[heard.peer] & (heard.device != heard.peer))
    viewers: defaultdict[int, set[int]] = defaultdict(set)
    for peer, device in zip(heard.peer[asked].tolist(), heard.device[asked].tolist(), strict=True):
        viewers[peer].add(device)
    by_mac, by_name = (set(heard.peer[heard.style == way].tolist()) for way in (BY_MAC, BY_NAME))
    return _KindEvidence(viewers, by_mac, by_name)


def _find_shared_port_devices(heard: PeerColumns) -> frozenset[int]:
    """Return the devices that are heard on a port with another one."""
    order = np.lexsort((heard.peer, heard.port))
    ports, peers = heard.port[order], heard.peer[order]
    is_shared = np.flatnonzero((ports[1:] == ports[:-1]) & (peers[1:] != peers[:-1]))
    return frozenset(np.concatenate([peers[is_shared], peers[is_shared + 1]]).tolist())


@dataclass(slots=True)
class _KindEvidence:
    viewers: defaultdict[int, set[int]]
    """By device of unknown kind, who hears it."""
    by_mac: set[int]
    by_name: set[int]

    def min_viewers(self, at: int, *, has_nodes: bool) -> float:
        """Return how many must hear a device for it to be a switch."""
        has_both = bool(self.by_mac - self.by_name and self.by_name - self.by_mac)
        if has_both and at in self.by_mac - self.by_name:
            return inf
        is_named = has_both and at in self.by_name - self.by_mac
        return MIN_SWITCH_VIEWERS - 1 if is_named and has_nodes else MIN_SWITCH_VIEWERS


def resolve_nodes(entities: Sequence[DeviceDraft]) -> list[Finding]:
    """Name the hosts after their nodes; without an inventory a host's own name is its node's.

    Returns:
        A finding per host that nothing names, and one when kinds had to be guessed.
    """
    origins = {origin for entity in entities for origin in entity.origins}
    is_listed = Origin.INVENTORY in origins
    if is_listed:
        _clear_unlisted_nodes(entities)
    findings: list[Finding] = []
    carriers = Counter(
        entity.node or next((name.lower() for name in entity.names), "")
        for entity in entities
        if entity.kind is DeviceKind.HOST
    )
    for entity in entities:
        if entity.kind is not DeviceKind.HOST or entity.node is not None:
            continue
        name = parse_node_name(entity.names[0].lower()) if entity.names else None
        if name is None or carriers[name] > 1:  # two hosts called localhost are two unknowns
            findings.append(_unresolved_finding(entity))
        elif not is_listed:
            entity.node = name
    if origins == {Origin.CAPTURE}:
        findings.append(_guessed_finding(entities))
    return findings


def _clear_unlisted_nodes(entities: Sequence[DeviceDraft]) -> None:
    """Take the node away from hosts that the inventory lacks: they are no cluster nodes."""
    for entity in entities:
        if entity.node and Origin.INVENTORY not in entity.origins:
            entity.node = None


def _unresolved_finding(entity: DeviceDraft) -> Finding:
    strong = sorted(found.value for found in entity.ids if strong_key(found))
    name = next((show(name) for name in entity.names), "")
    model = show(entity.model)
    title = show(strong[0]) if strong else name or "a host without ids"
    says = f" (it calls itself '{name or model}')" if name or model else ""
    return Finding(
        kind=FindingKind.UNRESOLVED_HOST,
        device=title,
        port=None,
        severity=Severity.WARNING,
        message=(
            f"Host {title} cannot be matched to a node{says}, so it is not placed. Run the agent "
            "there, or list its GUIDs or MACs in the inventory."
        ),
    )


def _guessed_finding(entities: Sequence[DeviceDraft]) -> Finding:
    switches = sum(entity.kind is DeviceKind.SWITCH for entity in entities)
    return Finding(
        kind=FindingKind.GUESSED_KIND,
        device="fabric",
        port=None,
        severity=Severity.INFO,
        message=(
            f"Which devices are switches was guessed: the {switches} that {MIN_SWITCH_VIEWERS} or "
            "more others hear and that do not name their ports by MACs as hosts do; the other "
            f"{len(entities) - switches} count as hosts. List the nodes to be sure."
        ),
    )
