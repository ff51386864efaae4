"""Decide which devices are hosts or switches if no source says so, and name all devices.

A node of the cluster is a host. Every other device of unknown kind is judged by the devices that
hear it. LLDP capabilities only break ties: a host with a bridge reports Bridge and Router.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topology.identity.device_resolution import Entity
from topology.identity.node_names import NodeNames
from topology.model.claims import Origin, strong_key
from topology.model.errors import list_some, show
from topology.model.fabric import Codes, Numbers
from topology.model.facts import DeviceKind, Finding, FindingKind, Severity, show_number
from topology.model.ids import natural_key, parse_node_name, short_name


def display_names(entities: Sequence[Entity]) -> list[str]:
    """Return a unique name per device: its node, else its own name, else its lowest id.

    A device that is known only as a neighbor never changes the name of one that a source describes.
    """
    titles = [entity.node or next(map(show, entity.names), "") for entity in entities]
    counts = Counter(titles)
    described = Counter(
        title
        for title, entity in zip(titles, entities, strict=True)
        if counts[title] > 1 and entity.origins
    )

    def keeps_title(entity: Entity, title: str) -> bool:
        # A shared title stays with a node, or with the only device that a source describes.
        is_only_described = described[title] == 1 and bool(entity.origins)
        return bool(title) and (counts[title] == 1 or bool(entity.node) or is_only_described)

    names = [
        title if keeps_title(entity, title) else _with_id(title, entity, index)
        for index, (title, entity) in enumerate(zip(titles, entities, strict=True))
    ]
    counts_of_names = Counter(names)
    return [  # a hostile name may equal a name that was built for another device
        name if counts_of_names[name] == 1 or entity.node else f"{name}#{index}"
        for index, (name, entity) in enumerate(zip(names, entities, strict=True))
    ]


def _with_id(title: str, entity: Entity, index: int) -> str:
    ids = entity.ids
    strong = sorted(identifier.value for identifier in ids if strong_key(identifier))
    weak = () if strong else sorted(identifier.value for identifier in ids)
    lowest = show(next(iter(strong or weak), f"device-{index}"), 64)
    return f"{title}.{lowest}" if title else lowest


def sort_names(names: Sequence[str]) -> list[int]:
    """Return the indices of names in their natural order."""
    return sorted(range(len(names)), key=lambda index: (natural_key(names[index]), names[index]))


_MAX_NAMES_SHOWN: Final = 4
_MODULE: Final = re.compile(r".+(?:/[A-Z]{1,3}[0-9]{0,3})+")
"""The name of a module of a chassis, such as NAME/GW1, as its node description gives it."""
MIN_SWITCH_VIEWERS = 3  # a device that at least this many other devices hear is a switch


UNKNOWN_STYLE, BY_MAC, BY_NAME = range(3)
"""How a device identifies its port in LLDP: unknown, by MAC as lldpd on a host does, or by name as
switches do."""
FORWARDS, STATION = 4, 8
"""Added to the style of an entry: what its capabilities say. STATION: station only."""
_STYLE: Final = 3


class PeerColumns(NamedTuple):
    """Which port hears which device, one entry per neighbor entry."""

    device: Numbers
    """The device that hears."""
    port: Numbers
    """Number of the hearing port, unique over all devices."""
    peer: Numbers
    """The device that is heard."""
    style: Codes
    """How the peer identifies its port: UNKNOWN_STYLE, BY_MAC or BY_NAME; plus FORWARDS or STATION
    if it sends capabilities."""
    port_key: NDArray[np.int64]
    """Hash of the id of the peer's port."""


def resolve_kinds(entities: Sequence[Entity], neighbor_columns: PeerColumns) -> None:
    """Give every device a kind.

    A device of unknown kind is a switch if a node hears it (and it is the only device on that port,
    or other devices hear it, too), or if three other devices hear it. How a device identifies its
    ports also counts, if the fabric has both styles. A device that sends MACs is a host with many
    leaves. A device that sends interface names, and that two devices hear, is a spine over two
    leaves. For this, the nodes must be known and not include it, or each device that sends MACs
    must be heard by one device. A device that hears three devices that send MACs is their leaf.

    Capabilities decide only what is left, see `_KindEvidence.is_switch`. Last, a device is a switch
    if a switch that is described as one has its name.

    Args:
        entities: devices, changed in place.
        neighbor_columns: all neighbor entries.
    """
    views = _gather_evidence(entities, neighbor_columns)
    shared = _find_shared_port_devices(neighbor_columns)
    has_nodes = any(entity.node for entity in entities)
    switch_names = {
        short_name(name)
        for entity in entities
        if entity.numbers and entity.kind is DeviceKind.SWITCH and entity.node is None
        for name in entity.names
    }
    for entity in entities:
        if entity.node is not None:
            entity.kind = DeviceKind.HOST
    for entity_index, entity in enumerate(entities):
        if entity.kind is DeviceKind.UNKNOWN:
            viewers = views.viewers[entity_index]
            by_node = has_nodes and any(entities[viewer].node for viewer in viewers)
            is_leaf = by_node and (len(viewers) > 1 or entity_index not in shared)
            is_namesake = any(short_name(name) in switch_names for name in entity.names)
            is_switch = is_leaf or views.is_switch(entity_index, has_nodes=has_nodes)
            entity.kind = DeviceKind.SWITCH if is_switch or is_namesake else DeviceKind.HOST


def _gather_evidence(entities: Sequence[Entity], neighbor_columns: PeerColumns) -> _KindEvidence:
    is_unknown = np.array([entity.kind is DeviceKind.UNKNOWN for entity in entities], np.bool_)
    unknown_peer_rows = np.flatnonzero(
        is_unknown[neighbor_columns.peer] & (neighbor_columns.device != neighbor_columns.peer)
    )
    viewers: defaultdict[int, set[int]] = defaultdict(set)
    stations: set[int] = set()
    forwarding: set[int] = set()
    for peer, device, style in zip(
        neighbor_columns.peer[unknown_peer_rows].tolist(),
        neighbor_columns.device[unknown_peer_rows].tolist(),
        neighbor_columns.style[unknown_peer_rows].tolist(),
        strict=True,
    ):
        viewers[peer].add(device)
        if style & STATION:
            stations.add(peer)
        elif style & FORWARDS:
            forwarding.add(peer)
    port_styles = neighbor_columns.style & _STYLE
    by_mac, by_name = (
        set(neighbor_columns.peer[port_styles == style].tolist()) for style in (BY_MAC, BY_NAME)
    )
    only_by_mac = by_mac - by_name
    has_stations = bool((neighbor_columns.style & STATION).any())
    is_host_row = np.isin(neighbor_columns.peer, list(only_by_mac))
    pairs = {
        *zip(
            neighbor_columns.device[is_host_row].tolist(),
            neighbor_columns.peer[is_host_row].tolist(),
            strict=True,
        )
    }
    return _KindEvidence(
        viewers,
        Counter(device for device, _ in pairs),
        by_mac,
        only_by_mac=only_by_mac,
        only_by_name=by_name - by_mac,
        stations=stations,
        forwarding=forwarding,
        with_one_port_id=_find_repeated_port_ids(neighbor_columns),
        has_stations=has_stations,
        has_shared_hosts=any(len(viewers.get(peer, ())) > 1 for peer in only_by_mac),
    )


def _find_repeated_port_ids(columns: PeerColumns) -> set[int]:
    """Return the devices that several ports hear with one MAC as the port id."""
    chosen = (columns.style & _STYLE) == BY_MAC
    peers, keys, ports = columns.peer[chosen], columns.port_key[chosen], columns.port[chosen]
    order = np.lexsort((ports, keys, peers))
    peers, keys, ports = peers[order], keys[order], ports[order]
    is_same = (peers[1:] == peers[:-1]) & (keys[1:] == keys[:-1]) & (ports[1:] != ports[:-1])
    return set(peers[1:][is_same].tolist())


def _find_shared_port_devices(neighbor_columns: PeerColumns) -> frozenset[int]:
    """Return the devices that are heard on the same port as another device."""
    order = np.lexsort((neighbor_columns.peer, neighbor_columns.port))
    ports, peers = neighbor_columns.port[order], neighbor_columns.peer[order]
    is_shared = np.flatnonzero((ports[1:] == ports[:-1]) & (peers[1:] != peers[:-1]))
    return frozenset(np.concatenate([peers[is_shared], peers[is_shared + 1]]).tolist())


@dataclass(slots=True)
class _KindEvidence:
    viewers: defaultdict[int, set[int]]
    """By device of unknown kind: the devices that hear it."""
    num_heard_hosts: Counter[int]
    """By device: how many devices that send only MACs it hears."""
    by_mac: set[int]
    """Devices that identify a port by MAC."""
    only_by_mac: set[int]
    """Devices that identify their ports by MAC, and never by name."""
    only_by_name: set[int]
    stations: set[int]
    """Devices of unknown kind of which some device hears that they are a station only."""
    forwarding: set[int]
    """Devices of unknown kind that say they are a bridge or a router."""
    with_one_port_id: set[int]
    """Devices that several ports hear with one port id."""
    has_stations: bool
    """Whether any device says that it is a station only: capabilities then tell devices apart."""
    has_shared_hosts: bool
    """Whether a device that sends only MACs has several viewers, as a host on two leaves has."""

    @property
    def has_both_styles(self) -> bool:
        """Whether some devices send only MACs, and others only names."""
        return bool(self.only_by_mac and self.only_by_name)

    def is_switch(self, entity_index: int, *, has_nodes: bool) -> bool:
        """Return whether a device counts as a switch although no node proves that it is one.

        If few devices hear it, capabilities decide: a device that forwards and sends no MACs is a
        switch if they tell devices apart here (another device is a station only, or the nodes are
        known); else all may be hosts with a bridge. A device that sends its one MAC for several
        ports, as SONiC may, is a switch beside stations. If many devices hear it, capabilities are
        ignored, because lldpd describes a switch without a kernel bridge as a station only.
        """
        viewers = self.viewers[entity_index]
        if len(viewers) >= self.min_viewers(entity_index, has_nodes=has_nodes):
            return True
        if self.has_both_styles and self.num_heard_hosts[entity_index] >= MIN_SWITCH_VIEWERS:
            return True
        is_telling = self.has_stations or has_nodes
        is_forwarding = entity_index in self.forwarding and entity_index not in self.stations
        if entity_index in self.by_mac:
            return is_forwarding and self.has_stations and entity_index in self.with_one_port_id
        return is_forwarding and is_telling

    def min_viewers(self, entity_index: int, *, has_nodes: bool) -> float:
        """Return how many devices must hear a device for it to be a switch."""
        if self.has_both_styles and entity_index in self.only_by_mac:
            return inf
        is_named = self.has_both_styles and entity_index in self.only_by_name
        is_no_host = has_nodes or not (self.has_shared_hosts or entity_index in self.stations)
        return MIN_SWITCH_VIEWERS - 1 if is_named and is_no_host else MIN_SWITCH_VIEWERS


def resolve_nodes(entities: Sequence[Entity], names: NodeNames) -> list[Finding]:
    """Name the hosts after their nodes; without an inventory, a host's own name is its node name.

    A device that is known only as a neighbor never takes the name of one that a source describes.

    Args:
        entities: devices, changed in place.
        names: the index that says which node a name means.

    Returns:
        One finding per host without a node name, one for all HCAs of nodes whose reports list none,
        and one if kinds had to be guessed.
    """
    origins = {origin for entity in entities for origin in entity.origins}
    is_listed = Origin.INVENTORY in origins
    if is_listed:
        _clear_unlisted_nodes(entities)
    findings: list[Finding] = []
    hosts = [entity for entity in entities if entity.kind is DeviceKind.HOST]
    carriers = Counter(_lower_name(host) for host in hosts if host.origins)
    claimed_names = {_lower_name(entity) for entity in entities if entity.origins}
    carriers |= Counter(_lower_name(host) for host in hosts if not host.origins)
    silent_nodes = Counter[str]()
    for entity in entities:
        is_resolved = entity.node is not None or _is_module(entity)
        if entity.kind is not DeviceKind.HOST or is_resolved:
            continue
        name = parse_node_name(entity.names[0].lower()) if entity.names else None
        is_shadowed = not entity.origins and name in claimed_names
        if entity.silent_node is not None:
            silent_nodes[entity.silent_node] += 1
        elif name is None or carriers[name] > 1 or is_shadowed:  # such as two hosts named localhost
            findings.append(_unresolved_finding(entity, names))
        elif not is_listed and not names.find_rivals(name):
            entity.node = name
    loose = [host for host in hosts if host.is_loose and host.origins == {Origin.CAPTURE}]
    if loose and origins - {Origin.CAPTURE}:
        findings.append(_nameless_finding(loose))
    if silent_nodes:
        findings.append(_silent_nodes_finding(silent_nodes))
    if origins == {Origin.CAPTURE}:
        findings.append(_guessed_finding(entities))
    return findings


def _is_module(entity: Entity) -> bool:
    """Return whether a channel adapter is in a gateway, which is no node."""
    return bool(entity.names) and _MODULE.fullmatch(entity.names[0]) is not None


def _lower_name(host: Entity) -> str:
    return host.node or next((name.lower() for name in host.names), "")


def _clear_unlisted_nodes(entities: Sequence[Entity]) -> None:
    """Clear the node of hosts that the inventory does not list: they are not cluster nodes."""
    for entity in entities:
        if entity.node and Origin.INVENTORY not in entity.origins:
            entity.node = None


def _unresolved_finding(entity: Entity, names: NodeNames) -> Finding:
    strong = sorted(identifier.value for identifier in entity.ids if strong_key(identifier))
    name = next((show(name) for name in entity.names), "")
    model = show(entity.model)
    title = show(strong[0]) if strong else name
    own_name = f" (its own name is '{name or model}')" if name or model else ""
    nodes = names.find_in_text(entity.names[0]) if entity.names else ()
    shown = list_some(map(show, nodes), _MAX_NAMES_SHOWN)
    rivals = f": its description has the names of the nodes {shown}" if len(nodes) > 1 else ""
    return Finding(
        kind=FindingKind.UNRESOLVED_HOST,
        device=title or "a host without ids",
        port=None,
        severity=Severity.WARNING,
        message=(
            f"{f'Host {title}' if title else 'A host without ids'} cannot be matched to a node"
            f"{own_name}{rivals}, so it is not placed. Run the agent there, or list its GUIDs or "
            "MACs in the inventory."
        ),
    )


def _nameless_finding(captures: Sequence[Entity]) -> Finding:
    names = sorted(next(iter(capture.names), "") for capture in captures)
    shown = list_some(map(show, names), _MAX_NAMES_SHOWN)
    return Finding(
        kind=FindingKind.UNRESOLVED_HOST,
        device=show(names[0]),
        port=None,
        severity=Severity.WARNING,
        message=(
            f"{show_number(len(names), 'capture')} without a chassis cannot be matched to a device "
            f"of another source: {shown}. Their devices may count "
            "twice. Save `lldpcli show chassis -f json0` as NAME.chassis.json0 beside each, or "
            "name the file after its device."
        ),
    )


def _silent_nodes_finding(silent_nodes: Counter[str]) -> Finding:
    names = sorted(silent_nodes)
    shown = list_some(map(show, names), _MAX_NAMES_SHOWN)
    return Finding(
        kind=FindingKind.UNRESOLVED_HOST,
        device=show(names[0]),
        port=None,
        severity=Severity.WARNING,
        message=(
            f"The sweep describes {show_number(silent_nodes.total(), 'HCA')} as those of nodes "
            f"whose reports list no HCA: {shown}. A description "
            "alone assigns no HCA to such a node. Let the agents there read /sys/class/infiniband, "
            "or list the GUIDs in the inventory."
        ),
    )


def _guessed_finding(entities: Sequence[Entity]) -> Finding:
    switches = sum(entity.kind is DeviceKind.SWITCH for entity in entities)
    return Finding(
        kind=FindingKind.GUESSED_KIND,
        device="fabric",
        port=None,
        severity=Severity.INFO,
        message=(
            "The kinds of devices are guessed: of "
            f"{show_number(len(entities), 'device')}, {switches} count as switches, because "
            f"{MIN_SWITCH_VIEWERS} or more devices report each of them as a neighbor (or two, if "
            "all hosts have one) and they do not identify their ports by MAC as hosts do, or "
            f"because they hear {MIN_SWITCH_VIEWERS} or more devices that do; the other "
            f"{len(entities) - switches} count as hosts. List the nodes to be sure."
        ),
    )
