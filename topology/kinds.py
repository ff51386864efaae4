"""Hosts and switches told apart where a source cannot, and hosts given their node names.

LLDP capabilities do not tell them apart (a host with a bridge says Bridge and Router), so a host
is what one of the cluster's nodes is, and the rest is judged by who hears it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from topology.errors import show
from topology.facts import DeviceKind, Finding, FindingKind, Severity
from topology.identity import Entity, Origin, strong_key
from topology.ids import parse_node_name

SWITCH_VIEWERS = 3  # a device that so many others hear is a switch: hosts rarely have more leaves


def settle_kinds(entities: Sequence[Entity], heard: Iterable[tuple[int, int, int]]) -> None:
    """Give every device a kind.

    Args:
        entities: devices, changed in place.
        heard: (hearing device, number of its port, device heard) per neighbor entry.
    """
    viewers: dict[int, set[int]] = defaultdict(set)
    on_port: dict[int, set[int]] = defaultdict(set)
    for device, port, peer in heard:
        if device != peer and entities[peer].kind is DeviceKind.UNKNOWN:
            viewers[peer].add(device)
        on_port[port].add(peer)
    shared = {peer for peers in on_port.values() if len(peers) > 1 for peer in peers}
    has_nodes = any(entity.node for entity in entities)
    for entity in entities:
        if entity.node is not None:
            entity.kind = DeviceKind.HOST
    for at, entity in enumerate(entities):
        if entity.kind is DeviceKind.UNKNOWN:
            seen = viewers[at]
            is_leaf = has_nodes and any(entities[one].node for one in seen)
            is_leaf = is_leaf and (len(seen) > 1 or at not in shared)
            is_switch = is_leaf or len(seen) >= SWITCH_VIEWERS
            entity.kind = DeviceKind.SWITCH if is_switch else DeviceKind.HOST


def settle_nodes(entities: Sequence[Entity]) -> list[Finding]:
    """Name the hosts after their nodes; without an inventory a host's own name is its node's.

    Returns:
        A finding per host that nothing names, and one when kinds had to be guessed.
    """
    is_listed = any(
        claim.origin is Origin.INVENTORY for entity in entities for claim in entity.claims
    )
    if is_listed:
        _forget_unlisted(entities)
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
            findings.append(_unresolved(entity))
        elif not is_listed:
            entity.node = name
    origins = {claim.origin for entity in entities for claim in entity.claims}
    if origins == {Origin.CAPTURE}:
        findings.append(_guessed(entities))
    return findings


def _forget_unlisted(entities: Sequence[Entity]) -> None:
    """Take the node away from hosts that the inventory lacks: they are no cluster nodes."""
    for entity in entities:
        if entity.node and all(claim.origin is not Origin.INVENTORY for claim in entity.claims):
            entity.node = None


def _unresolved(entity: Entity) -> Finding:
    strong = sorted(found.value for found in entity.ids if strong_key(found))
    name = next((show(name) for name in entity.names), "")
    model = next((show(claim.device.model) for claim in entity.claims if claim.device.model), "")
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


def _guessed(entities: Sequence[Entity]) -> Finding:
    switches = sum(entity.kind is DeviceKind.SWITCH for entity in entities)
    return Finding(
        kind=FindingKind.GUESSED_KIND,
        device="fabric",
        port=None,
        severity=Severity.INFO,
        message=(
            f"Which devices are switches was guessed: the {switches} that {SWITCH_VIEWERS} or "
            f"more others hear; the other {len(entities) - switches} count as hosts. List the "
            "nodes to be sure."
        ),
    )
