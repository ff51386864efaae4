"""Ports of hosts that are not as their fellows: down, deaf to LLDP, or up and down. Pure.

Fellows are the ports of one plane that have the same name on other hosts: what most of them do
is what was meant. A second port that no host has a cable in is no fault of any.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from topology.errors import show
from topology.fabric import Fabric
from topology.facts import Finding, FindingKind, Medium, PortName, PortState, Severity
from topology.planes import Plane
from topology.report import NeighborReport, ReportPort

_LISTENERS: Final = frozenset({"lldpd", "frames"})
_SHOWN: Final = 4


def port_findings(
    fabric: Fabric, plane: Plane, reports: Sequence[NeighborReport]
) -> Iterator[Finding]:
    """Yield down-port, no-lldp and flapping-link findings. Cost: O(ports + links)."""
    yield from _down_ports(fabric, plane)
    yield from _deaf_ports(fabric, plane, reports)
    yield from _flapping_links(fabric, reports)


def _down_ports(fabric: Fabric, plane: Plane) -> Iterator[Finding]:
    linked = {port for link in fabric.links for port in (link.a, link.b)}
    num: dict[PortState, Counter[str]] = defaultdict(Counter)
    for at in plane.ports:
        num[fabric.ports[at].state][fabric.ports[at].name] += 1
    for at in sorted(plane.ports - linked):
        port = fabric.ports[at]
        others_up, others_down = num[PortState.UP][port.name], num[PortState.DOWN][port.name] - 1
        if port.state is PortState.DOWN and others_up > others_down:
            yield _down(fabric, at, f"{others_up} of {others_up + others_down}")


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


class _Ears(NamedTuple):
    """What one node hears on its Ethernet ports."""

    name: str
    """The device's, as findings show it."""
    up: tuple[ReportPort, ...]
    """Ports of the plane that have a link."""
    is_listening: bool
    """Somebody on that node listens for LLDP, and could."""
    hears: bool
    """Any of its ports hears anybody."""


def _deaf_ports(
    fabric: Fabric, plane: Plane, reports: Sequence[NeighborReport]
) -> Iterator[Finding]:
    names: dict[str, set[str]] = defaultdict(set)
    for at in plane.ports:
        port = fabric.ports[at]
        if port.medium is Medium.ETHERNET:
            names[fabric.devices[port.device].node or ""].add(port.name)
    if not names:
        return
    title = {device.node: device.name for device in fabric.devices if device.node}
    nodes = [
        _ears(report, title[report.metadata.name], names.get(report.metadata.name, set()))
        for report in reports
        if report.spec.device is not None and report.metadata.name in title
    ]
    hearing = Counter(port.name for node in nodes for port in node.up if port.neighbors)
    total = Counter(port.name for node in nodes for port in node.up)
    usual = {name for name, count in hearing.items() if 2 * count > total[name]}
    for node in nodes:
        deaf = [port for port in node.up if node.is_listening and _is_deaf(port, node, usual)]
        if deaf:
            yield _deaf(node, deaf)


def _ears(report: NeighborReport, title: str, names: set[str]) -> _Ears:
    ports = [port for port in report.spec.ports if port.medium is Medium.ETHERNET]
    working = {one.name for one in report.status.collectors if one.outcome == "ok"}
    return _Ears(
        name=title,
        up=tuple(p for p in ports if p.state is PortState.UP and show(p.name) in names),
        is_listening=bool(working & _LISTENERS),
        hears=any(port.neighbors for port in ports),
    )


def _is_deaf(port: ReportPort, node: _Ears, usual: set[str]) -> bool:
    """Whether a port should hear somebody: a port beside it does, or most of its fellows do."""
    expects = node.hears or port.name in usual or port.firmware_lldp is True
    return expects and not port.neighbors


def _deaf(node: _Ears, ports: Sequence[ReportPort]) -> Finding:
    names = [show(port.name) for port in ports]
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
        device=node.name,
        port=names[0] if len(names) == 1 else None,
        severity=Severity.WARNING,
        message=f"{node.name} hears no LLDP frame on {listed}, where others hear some. {advice}",
        ports=tuple(PortName(node.name, name) for name in names),
    )


def _flapping_links(fabric: Fabric, reports: Iterable[NeighborReport]) -> Iterator[Finding]:
    told = {
        (report.metadata.name, show(port)) for report in reports for port in report.status.flapping
    }
    if not told:
        return
    wanted = {node for node, _ in told}
    flapping = {
        at
        for at, port in enumerate(fabric.ports)
        if (node := fabric.devices[port.device].node) in wanted and (node, port.name) in told
    }
    peers = _peers(fabric, flapping)
    done: set[int] = set()
    for at in sorted(flapping):
        if at not in done:
            peer = peers.get(at)
            done.update([at] if peer is None else [at, peer])
            yield _flap(fabric, at, peer)


def _peers(fabric: Fabric, ports: Collection[int]) -> dict[int, int]:
    """Return the far end of each port whose cable is known; of several, the first."""
    found: dict[int, int] = {}
    for link in fabric.links:
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
