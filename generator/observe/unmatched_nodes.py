"""Listed nodes without a host beside hosts without a node: the finding `unmatched-nodes`. Pure.

Nothing is joined here. If the names of both sides obviously correspond, the advice shows that.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Container, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from generator.objects.inventory import Inventory, ListedNode
from topology.model.errors import list_some, show
from topology.model.fabric import KIND_CODES, Fabric
from topology.model.facts import DeviceKind, Finding, FindingKind, Impact, PortName, Severity
from topology.model.ids import Id, IdKind, first_label, full_name, natural_key
from topology.model.name_ranges import fold_names
from topology.model.tree import TopologyTree
from topology.planes.plane import Plane

_SUBJECT: Final = "inventory"
_MAX_CHARS: Final = 120
"""Characters of the names of one side."""
_MAX_EVIDENCE: Final = 64
"""Devices of one side in the evidence."""
_MAX_IDS: Final = 4
_MAX_PAIRS: Final = 3
_PLAIN: Final = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.]*\Z", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
_LISTED_KINDS: Final = frozenset({IdKind.NODE_GUID, IdKind.PORT_GUID, IdKind.MAC})
_SHOWN_KINDS: Final = (
    *(IdKind.HOSTNAME, IdKind.IP, IdKind.NODE_GUID, IdKind.PORT_GUID, IdKind.SYSTEM_IMAGE_GUID),
    *(IdKind.MAC, IdKind.CHASSIS_ID),
)


class _Unmatched(NamedTuple):
    """A listed node that has no host in the fabric, or a host that is no listed node."""

    name: str
    ids: Sequence[Id]


def derive_unmatched_nodes(
    inventory: Inventory | None, tree: TopologyTree, fabric: Fabric, plane: Plane
) -> Iterator[Finding]:
    """Yield one finding if listed nodes have no host while hosts of the plane have no node.

    Yields it as well if the tree has no node and no listed node has a report or a host. If some
    have a report, the others are silent nodes, which are findings of their own.
    Cost: O(devices + ports) if a listed node is unplaced, else nothing.

    Args:
        inventory: the listed nodes; None: every host is its own node.
        tree: the tree of the plane.
        fabric: all devices.
        plane: the network of the tree.
    """
    if inventory is None or not tree.unplaced:
        return
    columns = fabric.columns
    has_port = np.zeros(len(columns.names), np.bool_)
    has_port[columns.port_devices[plane.ports.numbers]] = True
    is_host = columns.kinds == KIND_CODES[DeviceKind.HOST]
    listed = {node.name: node for node in inventory.nodes}
    unplaced = {row.node for row in tree.unplaced} & listed.keys()
    nodes = [row for row in np.flatnonzero(~has_port).tolist() if columns.nodes[row] in unplaced]
    hosts = [row for row in np.flatnonzero(has_port & is_host).tolist() if not columns.nodes[row]]
    if not nodes or (not hosts and (tree.nodes or _has_report(fabric, listed))):
        return
    lone_nodes = [_Unmatched(columns.nodes[row] or "", fabric.devices[row].ids) for row in nodes]
    lone_hosts = [_Unmatched(columns.names[row], fabric.devices[row].ids) for row in hosts]
    severity = _rate([listed[node.name] for node in lone_nodes], inventory, tree)
    yield _build_finding(lone_nodes, lone_hosts, severity, _advise(lone_nodes, lone_hosts))


def _has_report(fabric: Fabric, listed: Container[str]) -> bool:
    """Return whether a listed node has sent a report."""
    nodes = fabric.columns.nodes
    return any(fabric.devices[row].has_report for row, node in enumerate(nodes) if node in listed)


def derive_unlisted_members(
    inventory: Inventory, members: Sequence[str], tree: TopologyTree
) -> Iterator[Finding]:
    """Yield one finding if listed nodes are in no HyperNode, and HyperNodes name unlisted nodes.

    Args:
        inventory: the listed nodes.
        members: the nodes that HyperNodes name.
        tree: the tree whose domains list the members.
    """
    listed = {node.name: node for node in inventory.nodes}
    lone_nodes = [
        _Unmatched(name, listed[name].ids) for name in sorted(listed.keys() - set(members))
    ]
    lone_hosts = [_Unmatched(name, ()) for name in sorted(set(members) - listed.keys())]
    if lone_nodes and lone_hosts:
        severity = _rate([listed[node.name] for node in lone_nodes], inventory, tree)
        yield _build_finding(
            lone_nodes,
            lone_hosts,
            severity,
            "A HyperNode names a node as `kubectl get nodes` does. Correct the members of the "
            "HyperNodes, or give the list of the nodes of their cluster.",
            host="HyperNode member",
        )


def _rate(unmatched: Sequence[ListedNode], inventory: Inventory, tree: TopologyTree) -> Severity:
    """Return error if no node is placed, info if only nodes without devices are missing.

    If some nodes list devices such as GPUs, no pod that needs a topology runs on the others.
    """
    if not tree.nodes:
        return Severity.ERROR
    has_devices = any(map(_has_device, inventory.nodes))
    is_costly = not has_devices or any(map(_has_device, unmatched))
    return Severity.WARNING if is_costly else Severity.INFO


def _has_device(node: ListedNode) -> bool:
    """Return whether a node has an extended resource, such as GPUs; their names have a domain."""
    return any("/" in name and amount for name, amount in node.spec.capacity.items())


def _build_finding(
    nodes: Sequence[_Unmatched],
    hosts: Sequence[_Unmatched],
    severity: Severity,
    advice: str,
    *,
    host: str = "host",
) -> Finding:
    found = f"{_count(nodes, 'listed node')} no {host}: {_show_names(nodes)}."
    if hosts:
        found += f" {_count(hosts, host)} no listed node: {_show_names(hosts)}."
    else:
        found += " The sources show no host without a node either."
    evidence = (*nodes[:_MAX_EVIDENCE], *hosts[:_MAX_EVIDENCE])
    return Finding(
        kind=FindingKind.UNMATCHED_NODES,
        device=_SUBJECT,
        port=None,
        severity=severity,
        message=f"{found} {advice}",
        ports=tuple(PortName(show(device.name), "") for device in evidence),
        impact=Impact(places=tuple(node.name for node in nodes)),
    )


def _count(rows: Sequence[_Unmatched], noun: str) -> str:
    return f"1 {noun} has" if len(rows) == 1 else f"{len(rows)} {noun}s have"


def _advise(nodes: Sequence[_Unmatched], hosts: Sequence[_Unmatched]) -> str:
    """Return the sentence that names the ids of both sides, and says how to match them."""
    if not hosts:
        return "Check that the sources and the list of nodes are of one cluster."
    pairs = _find_pairs([node.name for node in nodes], [host.name for host in hosts])
    node_by_name, host_by_name = (
        {unmatched.name: unmatched for unmatched in side} for side in (nodes, hosts)
    )
    named = next((host for host in hosts if _is_named(host)), hosts[0])
    node, host = nodes[0], named
    if pairs:
        node, host = node_by_name[pairs[0][0]], host_by_name[pairs[0][1]]
    kind, value = IdKind.HOSTNAME.value, show(host.name)
    if not _is_named(host):
        kind, value = next(
            (identifier.kind.value, identifier.value)
            for identifier in host.ids
            if _is_listed(identifier)
        )
    advice = (
        f"Node {show(node.name)} is known by {_show_ids(node)}; host {show(host.name)} by "
        f"{_show_ids(host)}. Run the agent on the nodes, or list for each node an id of its host "
        f'(--nodes): {{name: {show(node.name)}, ids: [{{type: {kind}, value: "{value}"}}]}}'
    )
    if not pairs:
        return f"{advice}, if this is its host."
    shown_pairs = ", ".join(f"{show(a)} = {show(b)}" for a, b in pairs[:_MAX_PAIRS])
    return f"{advice}. By their names the pairs may be {shown_pairs}; check this."


def _is_named(host: _Unmatched) -> bool:
    """Return whether a host has a name; one without is shown by its lowest GUID or MAC."""
    return not any(
        _is_listed(identifier) and host.name.endswith(identifier.value) for identifier in host.ids
    )


def _is_listed(identifier: Id) -> bool:
    """Return whether an id is of a kind that a list of nodes can give."""
    return identifier.kind in _LISTED_KINDS


def _show_ids(unmatched: _Unmatched) -> str:
    """Return one id of each kind as text."""
    values = {identifier.kind: identifier.value for identifier in reversed(unmatched.ids)}
    shown = [f"{kind} {show(values[kind])}" for kind in _SHOWN_KINDS if kind in values]
    return ", ".join([*(["its name"] if _is_named(unmatched) else []), *shown[:_MAX_IDS]])


def _show_names(rows: Sequence[_Unmatched]) -> str:
    """Return names as ranges where they are plain, cut at a length."""
    names = sorted((row.name for row in rows), key=natural_key)
    if not all(map(_PLAIN.match, names)):
        return list_some(map(show, names), _MAX_IDS)
    num = bisect(range(1, len(names) + 1), _MAX_CHARS, key=lambda n: len(fold_names(names[:n])))
    num = max(num, 1)
    more = f" and {len(names) - num} more" if num < len(names) else ""
    return f"{fold_names(names[:num])}{more}"


def _find_pairs(nodes: Sequence[str], hosts: Sequence[str]) -> list[tuple[str, str]]:
    """Return the node of each host if one rule pairs all hosts; otherwise nothing.

    The rules: names that differ by their domain; names with the same numbers; names that end in the
    same number. The pairs are advice, and join nothing.
    """
    rules: tuple[Callable[[str], object], ...] = (
        lambda name: first_label(full_name(name)),
        _read_numbers,
        lambda name: _read_numbers(name)[-1:],
    )
    for rule in rules:
        by_key = {rule(name): name for name in hosts}
        pairs = [(node, by_key.get(rule(node))) for node in sorted(nodes, key=natural_key)]
        found = [(node, host) for node, host in pairs if host is not None]
        is_whole = len(nodes) == len(hosts) == len({host for _, host in found})
        if is_whole and () not in by_key:
            return found
    return []


def _read_numbers(name: str) -> tuple[int, ...]:
    return tuple(map(int, _NUMBER.findall(name)))
