"""Findings about host ports that differ from their peers: `down-port`, `no-lldp`, `flapping-link`.

Pure. The peers of a port are the ports of the same name on other hosts, in the same plane: what
most of them do is taken as intended. So a second port that has no cable on any host gives no
finding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from topology.model.errors import list_some, show
from topology.model.fabric import Fabric
from topology.model.facts import (
    DeviceKind,
    Finding,
    FindingKind,
    Medium,
    Port,
    PortName,
    PortState,
    Severity,
)
from topology.planes.plane import Plane
from topology.reports.packed_reports import PackedReport

_LLDP_COLLECTORS: Final = frozenset({"lldpd", "frames"})
_MAX_SHOWN: Final = 4
_PortKey: TypeAlias = tuple[str, str]
"""Node and port."""


class _ReportedPort(NamedTuple):
    """A port of a host, as its report shows it."""

    name: str
    medium: Medium
    state: PortState
    has_neighbor: bool
    """Whether the port hears any neighbor."""
    firmware_lldp: bool | None
    """Whether the card's firmware runs an LLDP agent; None: unknown."""

    @property
    def is_wired_up(self) -> bool:
        """Whether the port is an Ethernet port that has a link."""
        return self.medium is Medium.ETHERNET and self.state is PortState.UP


class _ReportedHost(NamedTuple):
    """The ports of one host, without the rest of its report."""

    name: str
    """The node's name."""
    ports: tuple[_ReportedPort, ...]
    is_listening: bool
    """Whether an LLDP collector of the node worked."""


def derive_port_findings(
    fabric: Fabric,
    plane: Plane,
    reports: Sequence[PackedReport],
) -> Iterator[Finding]:
    """Yield down-port, no-lldp and flapping-link findings. Cost: O(ports in reports + links).

    The state of ports comes from the reports alone; in the fabric, only the affected ports are
    looked up.
    """
    nodes = [
        _read_host(report, device.ports)
        for report in reports
        if report.device_kind is DeviceKind.HOST and (device := report.device) is not None
    ]
    yield from _find_down_ports(fabric, plane, nodes)
    yield from _find_ports_without_lldp(fabric, plane, nodes)
    yield from _find_flapping_links(fabric, reports)


def _read_host(report: PackedReport, ports: Sequence[Port]) -> _ReportedHost:
    rows = (
        _ReportedPort(port.name, port.medium, port.state, bool(port.neighbors), port.firmware_lldp)
        for port in ports
    )
    collectors = report.status.collectors
    is_listening = any(row.outcome == "ok" and row.name in _LLDP_COLLECTORS for row in collectors)
    return _ReportedHost(report.name, tuple(rows), is_listening)


def _find_ports(fabric: Fabric, wanted: Collection[_PortKey]) -> dict[_PortKey, int]:
    """Return the port index of each (node, port name); ports that the fabric lacks are left out."""
    if not wanted:
        return {}
    nodes = {node for node, _ in wanted}
    names = {
        device_index: device.node
        for device_index, device in enumerate(fabric.devices)
        if device.node in nodes
    }
    indexes = np.flatnonzero(np.isin(fabric.columns.port_devices, list(names))).tolist()
    rows = zip(indexes, fabric.ports.at(indexes), strict=True)
    keys = ((index, (names[port.device] or "", port.name)) for index, port in rows)
    return {key: index for index, key in keys if key in wanted}


def _find_down_ports(
    fabric: Fabric, plane: Plane, nodes: Sequence[_ReportedHost]
) -> Iterator[Finding]:
    states = Counter((port.name, port.state) for node in nodes for port in node.ports)
    down = {name: num for (name, state), num in states.items() if state is PortState.DOWN}
    if not down:
        return
    up = {name: states[name, PortState.UP] for name in down}
    # A port is suspicious if most of the other ports of its name are up.
    suspicious = {name for name in down if up[name] > down[name] - 1}
    port_indexes = _find_ports(
        fabric,
        {
            (node.name, show(port.name))
            for node in nodes
            for port in node.ports
            if port.state is PortState.DOWN
            and (port.name in suspicious or port.medium is Medium.INFINIBAND)
        },
    )
    links = fabric.columns.links
    is_linked = np.zeros(len(fabric.ports), bool)
    is_linked[links.a] = is_linked[links.b] = True
    in_plane = [
        (name, port_index)
        for (_, name), port_index in sorted(port_indexes.items(), key=lambda row: row[1])
        if port_index in plane.ports
    ]
    linked = [port_index for _, port_index in in_plane if is_linked[port_index]]
    peers = _map_peers(fabric, linked)
    by_shown = {show(name): (up[name], up[name] + down[name] - 1) for name in suspicious}
    for name, port_index in in_plane:
        if port_index in peers:
            yield _build_listed_finding(fabric, port_index, peers[port_index])
        elif not is_linked[port_index] and name in by_shown:
            yield _build_down_finding(fabric, port_index, "{} of {}".format(*by_shown[name]))


def _build_listed_finding(fabric: Fabric, port_index: int, peer: int) -> Finding:
    """Return the finding about a port that is down for its node, and cabled for another device.

    The sweep may be older than the report, so the finding says which of them counts, and until
    when.
    """
    end, far_end = fabric.port_name(port_index), fabric.port_name(peer)
    is_swept = fabric.ports[port_index].medium is Medium.INFINIBAND
    witness, source = ("the sweep", "sweep") if is_swept else (far_end.device, "report there")
    return Finding(
        kind=FindingKind.DOWN_PORT,
        device=end.device,
        port=end.port,
        severity=Severity.WARNING,
        message=(
            f"The agent on {end.device} reports port {end.port} down, but {witness} lists its "
            f"cable to {far_end.device} port {far_end.port}. The cable counts until a {source} no "
            f"longer lists it. If the next {source} still does, check the port and the agent on "
            f"{end.device}; else check the cable and the transceivers."
        ),
        ports=(end, far_end),
    )


def _build_down_finding(fabric: Fabric, port_index: int, num_up: str) -> Finding:
    end = fabric.port_name(port_index)
    return Finding(
        kind=FindingKind.DOWN_PORT,
        device=end.device,
        port=end.port,
        severity=Severity.WARNING,
        message=(
            f"Port {end.port} of {end.device} is down, but {num_up} ports of that name on other "
            "hosts are up. Check the cable and the transceivers, and that both ends are enabled."
        ),
        ports=(end,),
    )


def _find_ports_without_lldp(
    fabric: Fabric, plane: Plane, nodes: Sequence[_ReportedHost]
) -> Iterator[Finding]:
    wired = [port for node in nodes for port in node.ports if port.is_wired_up]
    hearing = Counter(port.name for port in wired if port.has_neighbor)
    total = Counter(port.name for port in wired)
    usual = {name for name, count in hearing.items() if 2 * count > total[name]}
    candidates = [
        (node, _find_deaf_ports(node.ports, usual)) for node in nodes if node.is_listening
    ]
    port_indexes = _find_ports(
        fabric, {(node.name, show(port.name)) for node, ports in candidates for port in ports}
    )
    for node, ports in candidates:
        ends = [(port_indexes.get((node.name, show(port.name)), -1), port) for port in ports]
        in_plane = [(index, port) for index, port in ends if index in plane.ports]
        if in_plane:
            yield _build_no_lldp_finding(
                [fabric.port_name(index) for index, _ in in_plane], [port for _, port in in_plane]
            )


def _find_deaf_ports(ports: Sequence[_ReportedPort], usual: set[str]) -> list[_ReportedPort]:
    """Return the ports that hear nothing, but another port of the node or most peers do."""
    has_neighbor = any(port.has_neighbor for port in ports if port.medium is Medium.ETHERNET)
    return [
        port
        for port in ports
        if port.is_wired_up
        and not port.has_neighbor
        and (has_neighbor or port.name in usual or port.firmware_lldp is True)
    ]


def _build_no_lldp_finding(ends: Sequence[PortName], ports: Sequence[_ReportedPort]) -> Finding:
    port_names = list_some((end.port for end in ends), _MAX_SHOWN)
    is_consumed_by_firmware = all(port.firmware_lldp is True for port in ports)
    advice = (
        "The LLDP agent in the card's firmware consumes the frames: turn it off (ethtool "
        "--set-priv-flags: fw-lldp-agent off, or disable-fw-lldp on)."
        if is_consumed_by_firmware
        else "Either an LLDP agent in the card's firmware consumes the frames, or the switch "
        "sends none: turn that agent off, or turn LLDP on for the switch's ports."
    )
    return Finding(
        kind=FindingKind.NO_LLDP,
        device=ends[0].device,
        port=ends[0].port if len(ends) == 1 else None,
        severity=Severity.WARNING,
        message=(
            f"{ends[0].device} hears no LLDP frame on {port_names}, but comparable ports do. "
            f"{advice}"
        ),
        ports=tuple(ends),
    )


def _find_flapping_links(fabric: Fabric, reports: Iterable[PackedReport]) -> Iterator[Finding]:
    reported = {(report.name, show(port)) for report in reports for port in report.status.flapping}
    flapping = sorted(_find_ports(fabric, reported).values())
    peers = _map_peers(fabric, flapping)
    done: set[int] = set()
    for port_index in flapping:
        if port_index not in done:
            peer = peers.get(port_index)
            done.add(port_index)
            if peer is not None:
                done.add(peer)
            yield _build_flapping_finding(fabric, port_index, peer)


def _map_peers(fabric: Fabric, ports: Sequence[int]) -> dict[int, int]:
    """Return the peer of each port whose link is known; of several, the first."""
    if not ports:
        return {}
    links = fabric.columns.links
    link_indexes = np.flatnonzero(np.isin(links.a, ports) | np.isin(links.b, ports))
    peers: dict[int, int] = {}
    for link in fabric.links.at(link_indexes.tolist()):
        for near, far in ((link.a, link.b), (link.b, link.a)):
            if near in ports and not link.is_disputed:
                peers.setdefault(near, far)
    return peers


def _build_flapping_finding(fabric: Fabric, port_index: int, peer: int | None) -> Finding:
    near = fabric.port_name(port_index)
    ends = (near,) if peer is None else (near, fabric.port_name(peer))
    to = f" to {ends[1].device} port {ends[1].port}" if len(ends) > 1 else ""
    return Finding(
        kind=FindingKind.FLAPPING_LINK,
        device=near.device,
        port=near.port,
        severity=Severity.WARNING,
        message=(
            f"The link of {near.device} port {near.port}{to} went down several times within the "
            "last hour. Reseat or replace the cable and the transceivers at both ends."
        ),
        ports=ends,
    )
