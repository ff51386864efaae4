"""A sweep compared with what hosts report about their own ports. Pure.

A host knows its GUIDs, its name and which of its ports are up, but not the other ends of its
cables. So this finds a sweep that lacks hosts, that gives their HCAs to others, or that contains
ports of another subnet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from generator.ingest.sweep_views import SweepView
from topology.model.errors import list_some, show
from topology.model.facts import Device, DeviceKind, Medium, PortState
from topology.model.ids import IdKind, short_name

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
        allowed = max(num_hosts * ALLOWED_PERCENT // 100, min(ALLOWED_HOSTS, (num_hosts - 1) // 2))
        return len({*self.missing, *self.renamed, *self.foreign}) > allowed

    @property
    def text(self) -> str:
        """What the hosts report, as one line."""
        rows = [
            ("lacks every port of", self.missing),
            ("gives HCAs to others that belong to", self.renamed),
            ("contains ports in other subnets of", self.foreign),
        ]
        return "; ".join(
            f"{words} {len(names)} of {self.num_hosts} hosts that report such a port: "
            f"{list_some(map(show, names), _MAX_SHOWN)}"
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
    """Return the hosts that the sweep of a subnet contradicts.

    Cost: O(ports log nodes), 0.5 µs each.
    """
    names = sorted(name for name, ports in hosts.items() if ports)
    rows = [(place, port) for place, name in enumerate(names) for port in hosts[name]]
    if not rows:
        return HostCheck(0)
    owners = np.array([place for place, _ in rows], np.intp)
    guids = np.array([port.guid for _, port in rows], np.uint64)
    port_guids = np.array([port.port_guid for _, port in rows], np.uint64)
    is_here = np.array([port.subnet == subnet for _, port in rows], bool)
    is_port_swept = np.isin(port_guids, view.port_guids)
    is_swept = np.isin(guids, view.guids) | is_port_swept | np.isin(guids, view.port_guids)
    expected = np.zeros(len(names), bool)
    expected[owners[is_here]] = True
    seen = np.zeros(len(names), bool)
    seen[owners[is_here & is_swept]] = True
    foreign = np.unique(owners[~is_here & is_port_swept])
    renamed = _find_renamed(names, owners[is_here], view.find_names(guids[is_here]))
    return HostCheck(
        int(expected.sum()),
        missing=_pick(names, np.flatnonzero(expected & ~seen).tolist()),
        renamed=_pick(names, renamed),
        foreign=_pick(names, foreign.tolist()),
    )


def _find_renamed(
    names: Sequence[str], owners: np.typing.NDArray[np.intp], swept_names: Sequence[str]
) -> list[int]:
    """Return the hosts that have an HCA under the name of another host that reports."""
    by_name = {short_name(name): place for place, name in enumerate(names)}
    rows = zip(owners.tolist(), swept_names, strict=True)
    return sorted(
        {owner for owner, name in rows if name and by_name.get(short_name(name), owner) != owner}
    )


def _pick(names: Sequence[str], places: Sequence[int]) -> tuple[str, ...]:
    return tuple(names[place] for place in places)
