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

_LLDP_COLLECTORS: Final = frozenset({"lldpd", "frames"})
_MAX_SHOWN: Final = 4
_MAX_POOLED: Final = 1 << 12
_PortKey: TypeAlias = tuple[str, str]
"""Node and port."""


class _LinkedPort(NamedTuple):
    """A port that has a link."""

    name: str
    has_neighbor: bool
    """Anybody."""
    firmware_lldp: bool | None


class _HostPorts(NamedTuple):
    """What one report of a host says of its ports."""

    report: Report
    """Of which it is; the same says the same."""
    name: str
    """The node's."""
    down_ports: tuple[str, ...]
    """Names of the ports without a link."""
    linked_ports: tuple[str, ...]
    """Names of those with one."""
    ethernet_ports: tuple[_LinkedPort, ...]
    """Ethernet ports that have a link."""
    is_listening: bool
    """Somebody on that node listens for LLDP, and could."""
    has_neighbor: bool
    """Any of its Ethernet ports hears anybody."""


class HostPortCache:
    """What was read of the last reports, so that the next are only read where they differ."""

    def __init__(self) -> None:
        """Nothing was read yet."""
        self._hosts: dict[str, _HostPorts] = {}
        self._pool: dict[tuple[object, ...], tuple[Any, ...]] = {}
        """Rows of ports that many nodes have alike."""

    def read_hosts(self, reports: Iterable[Report]) -> list[_HostPorts]:
        """Return what each host says of its ports, and remember it for reports of these names."""
        found = []
        for report in reports:
            if report.device_kind is DeviceKind.HOST:
                last = self._hosts.get(report.metadata.name)
                is_known = last is not None and last.report is report
                found.append(last if last is not None and is_known else self._read_report(report))
        self._hosts = {node.name: node for node in found}
        return found

    def _read_report(self, report: Report) -> _HostPorts:
        if len(self._pool) > _MAX_POOLED:
            self._pool = {}
        node, pool = _parse_host(report), self._pool
        return node._replace(
            down_ports=pool.setdefault(node.down_ports, node.down_ports),
            linked_ports=pool.setdefault(node.linked_ports, node.linked_ports),
            ethernet_ports=pool.setdefault(node.ethernet_ports, node.ethernet_ports),
        )


def derive_port_findings(
    fabric: Fabric,
    plane: Plane,
    reports: Sequence[Report],
    *,
    memory: HostPortCache | None = None,
) -> Iterator[Finding]:
    """Yield down-port, no-lldp and flapping-link findings. Cost: O(ports in reports + links).

    Only reports tell what they are made of; of the fabric no more is looked at than the ports
    in question.
    """
    nodes = (memory or HostPortCache()).read_hosts(reports)
    yield from _find_down_ports(fabric, plane, nodes)
    yield from _find_ports_without_lldp(fabric, plane, nodes)
    yield from _find_flapping_links(fabric, reports)


def _parse_host(report: Report) -> _HostPorts:
    device = report.device
    ports = device.ports if device is not None else ()
    wired = [port for port in ports if port.medium is Medium.ETHERNET]
    working = {one.name for one in report.status.collectors if one.outcome == "ok"}
    return _HostPorts(
        report=report,
        name=report.metadata.name,
        down_ports=tuple(port.name for port in ports if port.state is PortState.DOWN),
        linked_ports=tuple(port.name for port in ports if port.state is PortState.UP),
        ethernet_ports=tuple(
            _LinkedPort(port.name, bool(port.neighbors), port.firmware_lldp)
            for port in wired
            if port.state is PortState.UP
        ),
        is_listening=bool(working & _LLDP_COLLECTORS),
        has_neighbor=any(port.neighbors for port in wired),
    )


def _find_ports(fabric: Fabric, wanted: Collection[_PortKey]) -> dict[_PortKey, int]:
    """Return the numbers of ports by the node and their name; unknown ones are left out."""
    if not wanted:
        return {}
    nodes = {node for node, _ in wanted}
    names = {at: one.node for at, one in enumerate(fabric.devices) if one.node in nodes}
    places = np.flatnonzero(np.isin(columns_of(fabric).port_devices, list(names))).tolist()
    rows = zip(places, rows_at(fabric.ports, places), strict=True)
    ends = ((at, (names[port.device] or "", port.name)) for at, port in rows)
    return {end: at for at, end in ends if end in wanted}


def _find_down_ports(
    fabric: Fabric, plane: Plane, nodes: Sequence[_HostPorts]
) -> Iterator[Finding]:
    down = Counter(name for node in nodes for name in node.down_ports)
    if not down:
        return
    up = Counter(name for node in nodes for name in node.linked_ports)
    odd = {name for name in down if up[name] > down[name] - 1}
    places = _find_ports(
        fabric,
        {(node.name, show(name)) for node in nodes for name in node.down_ports if name in odd},
    )
    links = columns_of(fabric).links
    is_linked = np.zeros(len(fabric.ports), bool)
    is_linked[links.a] = is_linked[links.b] = True
    by_shown = {show(name): (up[name], up[name] + down[name] - 1) for name in odd}
    for (_, name), at in sorted(places.items(), key=lambda row: row[1]):
        if at in plane.ports and not is_linked[at]:
            yield _build_down_finding(fabric, at, "{} of {}".format(*by_shown[name]))


def _build_down_finding(fabric: Fabric, at: int, fellows: str) -> Finding:
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


def _find_ports_without_lldp(
    fabric: Fabric, plane: Plane, nodes: Sequence[_HostPorts]
) -> Iterator[Finding]:
    hearing = Counter(
        port.name for node in nodes for port in node.ethernet_ports if port.has_neighbor
    )
    total = Counter(port.name for node in nodes for port in node.ethernet_ports)
    usual = {name for name, count in hearing.items() if 2 * count > total[name]}
    deaf = [
        (node, [port for port in node.ethernet_ports if _is_missing_lldp(port, node, usual)])
        for node in nodes
        if node.is_listening
    ]
    places = _find_ports(
        fabric, {(node.name, show(one.name)) for node, ports in deaf for one in ports}
    )
    for node, ports in deaf:
        ends = [(places.get((node.name, show(port.name)), -1), port) for port in ports]
        own = [(at, port) for at, port in ends if at in plane.ports]
        if own:
            yield _build_no_lldp_finding(
                [fabric.port_name(at) for at, _ in own], [port for _, port in own]
            )


def _is_missing_lldp(port: _LinkedPort, node: _HostPorts, usual: set[str]) -> bool:
    """Whether a port should hear somebody: a port beside it does, or most of its fellows do."""
    expects = node.has_neighbor or port.name in usual or port.firmware_lldp is True
    return expects and not port.has_neighbor


def _build_no_lldp_finding(ends: Sequence[PortName], ports: Sequence[_LinkedPort]) -> Finding:
    names = [end.port for end in ends]
    listed = ", ".join(names[:_MAX_SHOWN]) + (
        f" and {len(names) - _MAX_SHOWN} more" if len(names) > _MAX_SHOWN else ""
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


def _find_flapping_links(fabric: Fabric, reports: Iterable[Report]) -> Iterator[Finding]:
    told = {
        (report.metadata.name, show(port)) for report in reports for port in report.status.flapping
    }
    flapping = sorted(_find_ports(fabric, told).values())
    peers = _map_peers(fabric, flapping)
    done: set[int] = set()
    for at in flapping:
        if at not in done:
            peer = peers.get(at)
            done.update([at] if peer is None else [at, peer])
            yield _build_flapping_finding(fabric, at, peer)


def _map_peers(fabric: Fabric, ports: Sequence[int]) -> dict[int, int]:
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


def _build_flapping_finding(fabric: Fabric, at: int, peer: int | None) -> Finding:
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
