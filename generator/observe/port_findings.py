"""Ports of hosts that are not as their fellows: down, deaf to LLDP, or up and down. Pure.

Fellows are the ports of one plane that have the same name on other hosts: what most of them do
is what was meant. A second port that no host has a cable in is no fault of any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from topology.model.errors import show
from topology.model.fabric import Fabric, columns_of
from topology.model.facts import (
    DeviceKind,
    Finding,
    FindingKind,
    Medium,
    PortName,
    PortState,
    Severity,
)
from topology.model.lazy_rows import rows_at
from topology.planes.plane import Plane
from topology.reports.compact_reports import Report

_LISTENERS: Final = frozenset({"lldpd", "frames"})
_SHOWN: Final = 4
_MAX_POOLED: Final = 1 << 12
_End: TypeAlias = tuple[str, str]
"""Node and port."""


class _Up(NamedTuple):
    """A port that has a link."""

    name: str
    hears: bool
    """Anybody."""
    firmware_lldp: bool | None


class _Node(NamedTuple):
    """What one report of a host says of its ports."""

    report: Report
    """Of which it is; the same says the same."""
    name: str
    """The node's."""
    down: tuple[str, ...]
    """Names of the ports without a link."""
    linked: tuple[str, ...]
    """Names of those with one."""
    up: tuple[_Up, ...]
    """Ethernet ports that have a link."""
    is_listening: bool
    """Somebody on that node listens for LLDP, and could."""
    hears: bool
    """Any of its Ethernet ports hears anybody."""


class PortMemory:
    """What was read of the last reports, so that the next are only read where they differ."""

    def __init__(self) -> None:
        """Nothing was read yet."""
        self._nodes: dict[str, _Node] = {}
        self._pool: dict[tuple[object, ...], tuple[Any, ...]] = {}
        """Rows of ports that many nodes have alike."""

    def nodes(self, reports: Iterable[Report]) -> list[_Node]:
        """Return what each host says of its ports, and remember it for reports of these names."""
        found = []
        for report in reports:
            if report.device_kind is DeviceKind.HOST:
                last = self._nodes.get(report.metadata.name)
                is_known = last is not None and last.report is report
                found.append(last if last is not None and is_known else self._read(report))
        self._nodes = {node.name: node for node in found}
        return found

    def _read(self, report: Report) -> _Node:
        if len(self._pool) > _MAX_POOLED:
            self._pool = {}
        node, pool = _node(report), self._pool
        return node._replace(
            down=pool.setdefault(node.down, node.down),
            linked=pool.setdefault(node.linked, node.linked),
            up=pool.setdefault(node.up, node.up),
        )


def port_findings(
    fabric: Fabric,
    plane: Plane,
    reports: Sequence[Report],
    *,
    memory: PortMemory | None = None,
) -> Iterator[Finding]:
    """Yield down-port, no-lldp and flapping-link findings. Cost: O(ports in reports + links).

    Only reports tell what they are made of; of the fabric no more is looked at than the ports
    in question.
    """
    nodes = (memory or PortMemory()).nodes(reports)
    yield from _down_ports(fabric, plane, nodes)
    yield from _deaf_ports(fabric, plane, nodes)
    yield from _flapping_links(fabric, reports)


def _node(report: Report) -> _Node:
    device = report.device
    ports = device.ports if device is not None else ()
    wired = [port for port in ports if port.medium is Medium.ETHERNET]
    working = {one.name for one in report.status.collectors if one.outcome == "ok"}
    return _Node(
        report=report,
        name=report.metadata.name,
        down=tuple(port.name for port in ports if port.state is PortState.DOWN),
        linked=tuple(port.name for port in ports if port.state is PortState.UP),
        up=tuple(
            _Up(port.name, bool(port.neighbors), port.firmware_lldp)
            for port in wired
            if port.state is PortState.UP
        ),
        is_listening=bool(working & _LISTENERS),
        hears=any(port.neighbors for port in wired),
    )


def _find(fabric: Fabric, wanted: Collection[_End]) -> dict[_End, int]:
    """Return the numbers of ports by the node and their name; unknown ones are left out."""
    if not wanted:
        return {}
    nodes = {node for node, _ in wanted}
    names = {at: one.node for at, one in enumerate(fabric.devices) if one.node in nodes}
    places = np.flatnonzero(np.isin(columns_of(fabric).port_devices, list(names))).tolist()
    rows = zip(places, rows_at(fabric.ports, places), strict=True)
    ends = ((at, (names[port.device] or "", port.name)) for at, port in rows)
    return {end: at for at, end in ends if end in wanted}


def _down_ports(fabric: Fabric, plane: Plane, nodes: Sequence[_Node]) -> Iterator[Finding]:
    down = Counter(name for node in nodes for name in node.down)
    if not down:
        return
    up = Counter(name for node in nodes for name in node.linked)
    odd = {name for name in down if up[name] > down[name] - 1}
    places = _find(
        fabric, {(node.name, show(name)) for node in nodes for name in node.down if name in odd}
    )
    links = columns_of(fabric).links
    is_linked = np.zeros(len(fabric.ports), bool)
    is_linked[links.a] = is_linked[links.b] = True
    by_shown = {show(name): (up[name], up[name] + down[name] - 1) for name in odd}
    for (_, name), at in sorted(places.items(), key=lambda row: row[1]):
        if at in plane.ports and not is_linked[at]:
            yield _down(fabric, at, "{} of {}".format(*by_shown[name]))


def _down(fabric: Fabric, at: int, fellows: str) -> Finding:
    end = fabric.port_name(at)
    return Finding(
        kind=FindingKind.DOWN_PORT,
        device=end.device,
        port=end.port,
        severity=Severity.WARNING,
        message=(
            f"Port {end.port} of {end.device} is down, where {fellows} others of that name are up. "
            "Check the cable and the transceivers, and that neither end is switched off."
        ),
        ports=(end,),
    )


def _deaf_ports(fabric: Fabric, plane: Plane, nodes: Sequence[_Node]) -> Iterator[Finding]:
    hearing = Counter(port.name for node in nodes for port in node.up if port.hears)
    total = Counter(port.name for node in nodes for port in node.up)
    usual = {name for name, count in hearing.items() if 2 * count > total[name]}
    deaf = [
        (node, [port for port in node.up if _is_deaf(port, node, usual)])
        for node in nodes
        if node.is_listening
    ]
    places = _find(fabric, {(node.name, show(one.name)) for node, ports in deaf for one in ports})
    for node, ports in deaf:
        ends = [(places.get((node.name, show(port.name)), -1), port) for port in ports]
        own = [(at, port) for at, port in ends if at in plane.ports]
        if own:
            yield _deaf([fabric.port_name(at) for at, _ in own], [port for _, port in own])


def _is_deaf(port: _Up, node: _Node, usual: set[str]) -> bool:
    """Whether a port should hear somebody: a port beside it does, or most of its fellows do."""
    expects = node.hears or port.name in usual or port.firmware_lldp is True
    return expects and not port.hears


def _deaf(ends: Sequence[PortName], ports: Sequence[_Up]) -> Finding:
    names = [end.port for end in ends]
    listed = ", ".join(names[:_SHOWN]) + (
        f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    )
    eaten = all(port.firmware_lldp is True for port in ports)
    advice = (
        "The LLDP agent in the card's firmware takes them: turn it off (ethtool "
        "--set-priv-flags: fw-lldp-agent off, or disable-fw-lldp on)."
        if eaten
        else "An LLDP agent in the card's firmware may take them, or the switch sends none: turn "
        "the one off, or LLDP on the switch's ports on."
    )
    return Finding(
        kind=FindingKind.NO_LLDP,
        device=ends[0].device,
        port=names[0] if len(names) == 1 else None,
        severity=Severity.WARNING,
        message=(
            f"{ends[0].device} hears no LLDP frame on {listed}, where others hear some. {advice}"
        ),
        ports=tuple(ends),
    )


def _flapping_links(fabric: Fabric, reports: Iterable[Report]) -> Iterator[Finding]:
    told = {
        (report.metadata.name, show(port)) for report in reports for port in report.status.flapping
    }
    flapping = sorted(_find(fabric, told).values())
    peers = _peers(fabric, flapping)
    done: set[int] = set()
    for at in flapping:
        if at not in done:
            peer = peers.get(at)
            done.update([at] if peer is None else [at, peer])
            yield _flap(fabric, at, peer)


def _peers(fabric: Fabric, ports: Sequence[int]) -> dict[int, int]:
    """Return the far end of each port whose cable is known; of several, the first."""
    if not ports:
        return {}
    links = columns_of(fabric).links
    places = np.flatnonzero(np.isin(links.a, ports) | np.isin(links.b, ports))
    found: dict[int, int] = {}
    for link in rows_at(fabric.links, places.tolist()):
        for near, far in ((link.a, link.b), (link.b, link.a)):
            if near in ports and not link.is_disputed:
                found.setdefault(near, far)
    return found


def _flap(fabric: Fabric, at: int, peer: int | None) -> Finding:
    near = fabric.port_name(at)
    ends = (near,) if peer is None else (near, fabric.port_name(peer))
    to = f" to {ends[1].device} port {ends[1].port}" if len(ends) > 1 else ""
    return Finding(
        kind=FindingKind.FLAPPING_LINK,
        device=near.device,
        port=near.port,
        severity=Severity.WARNING,
        message=(
            f"The link of {near.device} port {near.port}{to} went down several times within the "
            "last hour. Reseat or exchange the cable and the transceivers at both ends."
        ),
        ports=ends,
    )
