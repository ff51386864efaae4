"""A sweep compared with what hosts report about their own ports. Pure.

A host knows its GUIDs, its name and which of its ports are up, but not the other ends of its
cables. So this finds a sweep that lacks hosts, that gives their HCAs to others, or that contains
ports of another subnet.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from generator.ingest.sweep_views import SweepView
from generator.objects.write_policy import compute_allowance
from topology.model.errors import list_some, show
from topology.model.facts import Device, DeviceKind, Medium, PortState
from topology.model.ids import IdKind, natural_key, short_name

ALLOWED_HOSTS: Final = 2
"""So many hosts of a subnet may disagree with a sweep: a host may lie, or may have just started."""
ALLOWED_PERCENT: Final = 5
"""Or this share of them."""
_MAX_SHOWN: Final = 5


class HostPort(NamedTuple):
    """A port that a host reports to be up in an InfiniBand subnet."""

    subnet: str
    guid: int
    """Node GUID of its HCA; the port GUID if that is unknown."""
    port_guid: int
    """0 if unknown."""


HostPorts: TypeAlias = Mapping[str, tuple[HostPort, ...]]
"""By node name."""


class SweepReach(NamedTuple):
    """How many of the ports that a node reports in a subnet are in the node's own sweep."""

    subnet: str
    node: str
    seen: frozenset[HostPort]
    num_ports: int
    """How many ports the node itself reports in the subnet."""
    is_alone: bool
    """Whether the sweep contains no other host, although others report ports in the subnet."""

    @property
    def is_own_board(self) -> bool:
        """Whether the sweep shows neither other hosts nor all ports of its node, so is no subnet.

        An example is a board with bridges to its own NVSwitches, whose manager uses the default
        prefix too. A sweep without any port of its node was made elsewhere; hosts contradict it.
        """
        return self.is_alone and 0 < len(self.seen) < self.num_ports

    @property
    def rank(self) -> int:
        """How little a sweep shows: 0 enough, 1 few ports of its node, 2 no other host.

        If two networks have one prefix, most ports of a node are in the larger one.
        """
        return 2 if self.is_alone else int(2 * len(self.seen) < self.num_ports)


def find_reach(
    view: SweepView, subnet: str, node: str, *, hosts: HostPorts, check: HostCheck
) -> SweepReach:
    """Return which ports of its own node a sweep shows, and whether it shows other hosts.

    Args:
        view: the sweep.
        subnet: the subnet that was swept.
        node: the node that swept.
        hosts: the ports that hosts report.
        check: the hosts that contradict the sweep.
    """
    ports = [port for port in hosts.get(node, ()) if port.subnet == subnet]
    has_port_guids = bool(len(view.port_guids))

    def is_seen(port: HostPort) -> bool:
        if has_port_guids and port.port_guid:
            return bool(np.isin(np.uint64(port.port_guid), view.port_guids))
        return bool(np.isin(np.uint64(port.guid), view.guids))

    seen = frozenset(filter(is_seen, ports))
    num_others = check.num_hosts - (1 if ports else 0)
    missing_others = {*check.missing} - {node}
    is_alone = num_others > 0 and len(missing_others) == num_others
    return SweepReach(subnet, node, seen, len(ports), is_alone)


class HostCheck(NamedTuple):
    """The hosts that a sweep contradicts."""

    num_hosts: int
    """Hosts that report a port in the subnet."""
    missing: tuple[str, ...] = ()
    """The hosts of which no port in the subnet is in the sweep."""
    renamed: tuple[str, ...] = ()
    """One of their HCAs has the name of another host that reports."""
    foreign: tuple[str, ...] = ()
    """One of their ports in another subnet is in the sweep."""

    @property
    def is_contradicted(self) -> bool:
        """Whether more hosts disagree than is usual."""
        num_hosts = self.num_hosts
        allowed = compute_allowance(num_hosts, ALLOWED_PERCENT, always_allowed=ALLOWED_HOSTS)
        return len({*self.missing, *self.renamed, *self.foreign}) > allowed

    @property
    def text(self) -> str:
        """What the hosts report, as one line."""
        rows = [
            ("lacks every port of", self.missing),
            ("gives the name of another host to an HCA of", self.renamed),
            ("contains ports of another subnet of", self.foreign),
        ]
        return "; ".join(
            f"{words} {len(names)} of {self.num_hosts} hosts that report such a port: "
            f"{list_some(map(show, sorted(names, key=natural_key)), _MAX_SHOWN)}"
            for words, names in rows
            if names
        )


def read_host_ports(device: Device) -> tuple[HostPort, ...]:
    """Return the ports of a host that are up in an InfiniBand subnet and have a GUID."""
    if device.kind is not DeviceKind.HOST:
        return ()
    found = []
    for port in device.ports:
        if port.medium is not Medium.INFINIBAND or port.state is not PortState.UP:
            continue
        guids = {id_.kind: int(id_.value, 16) for id_ in port.ids if id_.kind in _GUIDS}
        port_guid = guids.get(IdKind.PORT_GUID, 0)
        guid = guids.get(IdKind.NODE_GUID, port_guid)
        if port.subnet and guid:
            found.append(HostPort(port.subnet, guid, port_guid))
    return tuple(found)


_GUIDS: Final = (IdKind.NODE_GUID, IdKind.PORT_GUID)


def check_hosts(view: SweepView, subnet: str, hosts: HostPorts) -> HostCheck:
    """Return the hosts that a sweep of a subnet contradicts. Cost: 3 µs per port of a host."""
    rows = [(name, port) for name, ports in hosts.items() for port in ports]
    guids = np.array([port.guid for _, port in rows], np.uint64)
    port_guids = np.array([port.port_guid for _, port in rows], np.uint64)
    is_port_swept = np.isin(port_guids, view.port_guids)
    is_swept = np.isin(guids, view.guids) | is_port_swept | np.isin(guids, view.port_guids)
    expected, foreign = dict[str, None](), dict[str, None]()
    swept = set[str]()
    other_names: dict[str, set[str]] = defaultdict(set)
    columns = (is_swept.tolist(), is_port_swept.tolist(), view.find_names(guids))
    for (host, port), is_seen, is_port_seen, name in zip(rows, *columns, strict=True):
        if port.subnet != subnet:
            if is_port_seen:
                foreign[host] = None
            continue
        expected[host] = None
        if is_seen:
            swept.add(host)
        if name and name != host and short_name(name) != short_name(host):
            other_names[host].add(short_name(name))
    reporters = set(map(short_name, hosts)) if other_names else set()
    return HostCheck(
        len(expected),
        tuple(name for name in expected if name not in swept),
        tuple(name for name, others in other_names.items() if others & reporters),
        tuple(foreign),
    )
