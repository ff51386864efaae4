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
    """The ports of its own node that a sweep contains, of those that the node reports there."""

    subnet: str
    node: str
    seen: frozenset[HostPort]
    num_ports: int
    """How many ports the node itself reports in the subnet."""
    is_alone: bool
    """Whether the sweep contains no other host, although others report ports in the subnet."""

    @property
    def is_own_board(self) -> bool:
        """Whether it shows neither other hosts nor all ports of its own: it is no subnet.

        So it is with the bridges of a board to its own NVSwitches, whose manager uses the default
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
    """Return how far a sweep reaches.

    Args:
        view: the sweep.
        subnet: that it is of.
        node: that made it.
        hosts: the ports that hosts report.
        check: the hosts that contradict the sweep.
    """
    ports = [port for port in hosts.get(node, ()) if port.subnet == subnet]
    has_port_guids = bool(len(view.port_guids))
    seen = frozenset(
        port
        for port in ports
        if (
            np.isin(np.uint64(port.port_guid), view.port_guids)
            if has_port_guids and port.port_guid
            else np.isin(np.uint64(port.guid), view.guids)
        )
    )
    num_others = check.num_hosts - bool(ports)
    is_alone = num_others > 0 and len({*check.missing} - {node}) == num_others
    return SweepReach(subnet, node, seen, len(ports), is_alone)


class HostCheck(NamedTuple):
    """The hosts that a sweep contradicts."""

    num_hosts: int
    """Hosts that report a port in the subnet."""
    missing: tuple[str, ...] = ()
    """None of their ports in the subnet is in the sweep."""
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


class _SweptHost(NamedTuple):
    """What a sweep says about one host."""

    ports: tuple[HostPort, ...]
    """The source: equal ports have the same result."""
    is_expected: bool
    """Whether it reports a port in the subnet."""
    is_swept: bool
    """Whether one of its ports in the subnet is in the sweep."""
    is_foreign: bool
    """Whether one of its ports in another subnet is in the sweep."""
    other_names: frozenset[str]
    """Short names of other hosts that its HCAs have in the sweep."""


class HostComparison:
    """Compares one sweep with hosts, and compares only changed hosts again."""

    def __init__(self, view: SweepView, subnet: str) -> None:
        """Compare nothing yet.

        Args:
            view: the sweep.
            subnet: that it is of.
        """
        self._view = view
        self._subnet = subnet
        self._swept_hosts: dict[str, _SweptHost] = {}

    def check(self, hosts: HostPorts) -> HostCheck:
        """Return the hosts that the sweep contradicts.

        Cost: O(hosts), and O(ports log nodes) of new and changed hosts, 3 µs each.
        """
        known = self._swept_hosts
        changed = {
            name: ports
            for name, ports in hosts.items()
            if name not in known or known[name].ports != ports
        }
        if changed or len(known) != len(hosts):
            fresh = _compare_hosts(self._view, self._subnet, changed)
            self._swept_hosts = {name: fresh.get(name) or known[name] for name in hosts}
        swept_hosts = self._swept_hosts
        has_others = any(host.other_names for host in swept_hosts.values())
        reporters = set(map(short_name, swept_hosts)) if has_others else set()
        return HostCheck(
            sum(host.is_expected for host in swept_hosts.values()),
            tuple(
                name for name, host in swept_hosts.items() if host.is_expected and not host.is_swept
            ),
            tuple(name for name, host in swept_hosts.items() if host.other_names & reporters),
            tuple(name for name, host in swept_hosts.items() if host.is_foreign),
        )


def _compare_hosts(view: SweepView, subnet: str, hosts: HostPorts) -> dict[str, _SweptHost]:
    """Return what a sweep says about each host. Cost: O(ports log nodes)."""
    rows = [(name, port) for name, ports in hosts.items() for port in ports]
    guids = np.array([port.guid for _, port in rows], np.uint64)
    port_guids = np.array([port.port_guid for _, port in rows], np.uint64)
    is_port_swept = np.isin(port_guids, view.port_guids)
    is_swept = np.isin(guids, view.guids) | is_port_swept | np.isin(guids, view.port_guids)
    swept, foreign = set[str](), set[str]()
    others: dict[str, set[str]] = defaultdict(set)
    columns = (is_swept.tolist(), is_port_swept.tolist(), view.find_names(guids))
    for (host, port), is_seen, is_port_seen, name in zip(rows, *columns, strict=True):
        if port.subnet != subnet:
            foreign.update([host] if is_port_seen else ())
            continue
        swept.update([host] if is_seen else ())
        if name and name != host and short_name(name) != short_name(host):
            others[host].add(short_name(name))
    expected = {name for name, port in rows if port.subnet == subnet}
    return {
        name: _SweptHost(
            ports, name in expected, name in swept, name in foreign, frozenset(others[name])
        )
        for name, ports in hosts.items()
    }
