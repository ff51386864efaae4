"""What a report may say, by the name that it was written under. Pure.

RBAC and the admission policy bind the name of a report to its writer: an agent writes only the name
of its node, and the generator only names that start with `switch-`. The content is the writer's
own, so whatever such a writer cannot know is left out here, before it becomes a claim. In a folder,
an agent on a switch reports under the name of the switch, which is no node's. If all hosts together
name too many devices, those that name the most lose their neighbors.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from topology.model.errors import show
from topology.model.facts import Device, DeviceKind, Medium, Neighbor, Port, Source
from topology.model.ids import Id, IdKind
from topology.sources.host.nvidia_smi import is_clique_id

_SWEEP_PART: Final = re.compile(r"\.sweep\.[0-9]+\Z")
_NOT_HEARD: Final = frozenset(
    {IdKind.NODE_NAME, IdKind.NODE_GUID, IdKind.PORT_GUID, IdKind.SYSTEM_IMAGE_GUID}
)
"""Kinds of ids that no frame on a cable carries; only a sweep shows the GUIDs at the other end."""
MAX_PORT_NEIGHBORS: Final = 64
"""Neighbors of one port of a host, as `topology.sources.lldp.neighbor_table` keeps; lldpd keeps
32."""
MAX_HOST_NEIGHBORS: Final = 256
"""Neighbors of all ports of a host: a host has at most some 40 ports, with one neighbor each unless
the port is in a crowded segment."""
MAX_NEIGHBOR_IDS: Final = 32
"""Ids of a neighbor or its port: a frame carries a chassis id, a port id, a name and some
addresses."""
MAX_HOST_IDS: Final = 2048
"""Ids of a host and its ports: a port has a name, a MAC and GUIDs, and each HCA has two GUIDs."""

MAX_HEARD_DEVICES: Final = 65_536
"""Devices that all hosts hear: 25,000 hosts with 8 ports hear some 12,500 leaves of 16 hosts.
Together, reports of bounded size could name any number of devices that do not exist."""
_WHOLE: Final = 1 << 32
_WITHOUT_FRAMES: Final = frozenset({Medium.INFINIBAND, Medium.NVLINK})
"""Media of ports that hear no LLDP frame: only a sweep shows what an InfiniBand port leads to."""


class ScopedReport(NamedTuple):
    """The part of a report that its writer may say."""

    device: Device | None
    """The identical object if all of the report counts; None if nothing counts."""
    problems: tuple[str, ...] = ()
    excess: str = ""
    """Why the report is none that an agent writes: it holds more than a host has."""


def is_part_name(name: str) -> bool:
    """Return whether a report of this name must be a part of a sweep."""
    return _SWEEP_PART.search(name) is not None


def limit_to_scope(name: str, device: Device, *, is_node: bool) -> ScopedReport:
    """Return the part of a report that counts, and problems of the rest. O(neighbor entries).

    Args:
        name: the name of the report.
        device: its content.
        is_node: whether a node of this name is listed; then no switch has a report of this name.
    """
    if is_part_name(name):
        return ScopedReport(
            None, ("the name is that of a part of a sweep, but the report has none; it is ignored",)
        )
    if device.kind is DeviceKind.HOST:
        return _limit_host(name, device)
    if not is_node:
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
    num_ids = len(device.ids) + sum(len(port.ids) for port in device.ports)
    if num_ids > MAX_HOST_IDS:
        excess = f"the host has {num_ids} ids, more than {MAX_HOST_IDS}; it is ignored"
        return ScopedReport(None, (*problems, excess), excess)
    ports = tuple(_limit_port(port) for port in device.ports)
    if any(new is not old for new, old in zip(ports, device.ports, strict=True)):
        problems.append(
            "the report has neighbor entries that no agent can have seen (of a sweep, with GUIDs, "
            "on InfiniBand ports, or with NVLink domains on network ports); they are ignored"
        )
    bounded, excess = _limit_numbers(ports), ""
    if bounded is not ports:
        excess = (
            f"the report has more neighbors than a host has: {MAX_PORT_NEIGHBORS} of a port, "
            f"{MAX_HOST_NEIGHBORS} of all ports, or {MAX_NEIGHBOR_IDS} ids of one; "
            f"{_count(ports) - _count(bounded)} entries are ignored"
        )
        problems.append(excess)
    if all(new is old for new, old in zip(bounded, device.ports, strict=True)):
        return ScopedReport(device, tuple(problems), excess)
    return ScopedReport(replace(device, ports=bounded), tuple(problems), excess)


def _count(ports: Iterable[Port]) -> int:
    return sum(len(port.neighbors) for port in ports)


def _limit_numbers(ports: tuple[Port, ...]) -> tuple[Port, ...]:
    """Return the ports with as many neighbors as a host has; the same object if they have no more.

    Entries are left out where a port has most, so that a crowded port costs the others nothing.
    """
    usual = [_drop_entries(port, filter(_has_usual_ids, port.neighbors)) for port in ports]
    allowed = _share([len(port.neighbors) for port in usual])
    bounded = tuple(
        _drop_entries(port, port.neighbors[:most])
        for port, most in zip(usual, allowed, strict=True)
    )
    is_same = all(new is old for new, old in zip(bounded, ports, strict=True))
    return ports if is_same else bounded


def _drop_entries(port: Port, kept: Iterable[Neighbor]) -> Port:
    """Return the port with the kept entries only; the same object if these are all."""
    neighbors = tuple(kept)
    return port if len(neighbors) == len(port.neighbors) else port._replace(neighbors=neighbors)


def _share(sizes: Sequence[int]) -> list[int]:
    """Return the number of neighbors that each port keeps; ports with fewer are served first."""
    left, allowed = MAX_HOST_NEIGHBORS, [0] * len(sizes)
    order = sorted(range(len(sizes)), key=sizes.__getitem__)
    for rank, port in enumerate(order):
        fair = -(-left // (len(order) - rank))
        allowed[port] = min(sizes[port], MAX_PORT_NEIGHBORS, fair)
        left -= allowed[port]
    return allowed


def _has_usual_ids(neighbor: Neighbor) -> bool:
    return max(len(neighbor.device_ids), len(neighbor.port_ids)) <= MAX_NEIGHBOR_IDS


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


def find_heard(device: Device) -> Sequence[int]:
    """Return a number for each device that a host names; of equal devices the same number.

    The numbers hold within the process, and no writer of a report can choose them.
    """
    if device.kind is not DeviceKind.HOST:
        return array("q")
    entries = (neighbor for port in device.ports for neighbor in port.neighbors)
    return array("q", {hash((entry.device_name, entry.device_ids)) for entry in entries})


def find_flooders(
    heard: Mapping[str, Collection[int]], limit: int = MAX_HEARD_DEVICES
) -> frozenset[str]:
    """Return the hosts to ignore, so that the rest name no more devices than the limit.

    A device counts in equal shares for the hosts that name it, so a leaf that many hosts hear
    costs each of them little. Cost: O(entries), and O(hosts log hosts) above the limit.

    Args:
        heard: the distinct devices that each host names, as `find_heard` returns them.
        limit: how many devices may be left.
    """
    num_hosts = Counter(device for devices in heard.values() for device in devices)
    num_left, flooders = len(num_hosts), set[str]()
    if num_left <= limit:
        return frozenset()
    shares = {
        name: sum(_WHOLE // num_hosts[device] for device in devices)
        for name, devices in heard.items()
    }
    for name in sorted(shares, key=lambda name: (-shares[name], name)):
        if num_left <= limit:
            break
        flooders.add(name)
        for device in heard[name]:
            num_hosts[device] -= 1
            num_left -= not num_hosts[device]
    return frozenset(flooders)


def without_neighbors(device: Device) -> Device:
    """Return a host that has heard nothing."""
    return replace(device, ports=tuple(port._replace(neighbors=()) for port in device.ports))


def explain_flooder() -> str:
    """Return why the entries of a host are left out."""
    return (
        f"all hosts together name more than {MAX_HEARD_DEVICES} devices, and this one names more "
        "that few others hear than most; its neighbor entries are ignored"
    )
