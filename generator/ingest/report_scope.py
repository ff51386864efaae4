"""What a report may say, by the name that it was written under. Pure.

RBAC and the admission policy bind the name of a report to its writer: an agent writes only the name
of its node, and the generator only names that start with `switch-`. The content is the writer's
own, so whatever such a writer cannot know is left out here, before it becomes a claim.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from topology.model.errors import show
from topology.model.facts import Device, DeviceKind, Medium, Neighbor, Port, Source
from topology.model.ids import Id, IdKind
from topology.sources.host.nvidia_smi import is_clique_id

SWITCH_PREFIX: Final = "switch-"
_SWEEP_PART: Final = re.compile(r"\.sweep\.[0-9]+\Z")
_NOT_HEARD: Final = frozenset(
    {IdKind.NODE_NAME, IdKind.NODE_GUID, IdKind.PORT_GUID, IdKind.SYSTEM_IMAGE_GUID}
)
"""Kinds of ids that no frame on a cable carries; only a sweep shows the GUIDs at the other end."""

_WITHOUT_FRAMES: Final = frozenset({Medium.INFINIBAND, Medium.NVLINK})
"""Media of ports that hear no LLDP frame: only a sweep shows what an InfiniBand port leads to."""


class ScopedReport(NamedTuple):
    """The part of a report that its writer may say."""

    device: Device | None
    """The identical object if all of the report counts; None if nothing counts."""
    problems: tuple[str, ...] = ()


def limit_to_scope(name: str, device: Device, *, is_node: bool) -> ScopedReport:
    """Return what counts of a report. Cost: O(neighbor entries).

    Args:
        name: the name of the report.
        device: its content.
        is_node: whether a node of this name is listed; then no switch has a report of this name.
    """
    if _SWEEP_PART.search(name):
        return ScopedReport(
            None, ("the name is that of a part of a sweep, but the report has none; it is ignored",)
        )
    if device.kind is DeviceKind.HOST:
        return _limit_host(name, device)
    if name.startswith(SWITCH_PREFIX) and not is_node:
        return ScopedReport(device)
    problem = (
        f"the report of a node describes a {device.kind} instead of the node itself; it is ignored"
    )
    return ScopedReport(None, (problem,))


def _limit_host(name: str, device: Device) -> ScopedReport:
    problems: list[str] = []
    others = {id_.value for id_ in device.ids if id_.kind is IdKind.NODE_NAME} - {name}
    if others:
        claimed = ", ".join(show(other) for other in sorted(others))
        problems.append(f"the report claims to be from node {claimed}; that claim is ignored")
    ports = tuple(_limit_port(port) for port in device.ports)
    if all(new is old for new, old in zip(ports, device.ports, strict=True)):
        return ScopedReport(device, tuple(problems))
    problems.append(
        "the report has neighbor entries that no agent can have seen (of a sweep, with GUIDs, on "
        "InfiniBand ports, or with NVLink domains on network ports); they are ignored"
    )
    return ScopedReport(replace(device, ports=ports), tuple(problems))


def _limit_port(port: Port) -> Port:
    """Return the port with the entries that its agent can have seen; the same object if all."""
    if all(_is_plain(port, neighbor) for neighbor in port.neighbors):
        return port
    return port._replace(neighbors=tuple(_limit_entries(port, port.neighbors)))


def _limit_entries(port: Port, neighbors: Sequence[Neighbor]) -> Iterator[Neighbor]:
    for neighbor in neighbors:
        if neighbor.source is Source.IB or port.medium in _WITHOUT_FRAMES:
            if _is_plain(port, neighbor):
                yield neighbor
            continue
        device_ids = tuple(filter(_is_heard, neighbor.device_ids))
        limited = neighbor._replace(
            device_ids=device_ids, port_ids=tuple(filter(_is_heard, neighbor.port_ids))
        )
        if device_ids or not neighbor.device_ids:
            yield limited


def _is_plain(port: Port, neighbor: Neighbor) -> bool:
    if neighbor.source is Source.IB or port.medium is Medium.INFINIBAND:
        return False
    if port.medium is Medium.NVLINK:
        is_domain = len(neighbor.device_ids) == 1 and is_clique_id(neighbor.device_ids[0])
        return is_domain and neighbor.kind is DeviceKind.SWITCH and not neighbor.port_ids
    return all(map(_is_heard, neighbor.device_ids)) and all(map(_is_heard, neighbor.port_ids))


def _is_heard(identifier: Id) -> bool:
    """Return whether an LLDP frame or the like can carry an id."""
    return identifier.kind not in _NOT_HEARD and not is_clique_id(identifier)
