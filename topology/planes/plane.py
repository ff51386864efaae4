"""Which links belong to which network: planes out of a fabric.

A plane is one network that jobs can use. Rails, and the two planes of a dual-plane host, are not
planes in this sense: they serve one job together and are joined by the hosts they share. NVLink
is below every network, so its cables are in none.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from topology.model.fabric import Fabric, columns_of
from topology.model.fabric_columns import Flags, Index
from topology.planes.cables import (
    Cables,
    EdgeRows,
    find_cables,
    find_reachable,
    ports_of_hosts,
    subnets_by_switch,
)
from topology.planes.default_policy import (
    assign_by_switch_names,
    assign_by_switch_use,
    assign_hosts,
    has_plane_names,
    plane_in_name,
)
from topology.planes.policy import (
    COMPUTE,
    MANAGEMENT,
    STORAGE,
    PlanePolicy,
    PortPlane,
    PortView,
    match_policies,
)
from topology.planes.port_planes import PortPlanes
from topology.planes.port_set import PortSet

_USUAL = (COMPUTE, STORAGE, MANAGEMENT)


@dataclass(frozen=True, slots=True)
class Plane:
    """The part of a fabric that one network is: hosts, switches and the cables between them."""

    name: str
    hosts: tuple[int, ...]
    """Device numbers, ascending; all hosts, also those that are no cluster nodes."""
    switches: tuple[int, ...]
    """Device numbers, ascending."""
    host_edges: EdgeRows
    """`a` is the host, `b` the switch. Arrays: `host_edges.columns`."""
    switch_edges: EdgeRows
    ports: PortSet
    """Ports of hosts that the policy puts into this plane, linked or not."""


@dataclass(frozen=True, slots=True)
class PlaneSplit:
    """A fabric, told apart into planes."""

    fabric: Fabric
    cables: Cables
    port_planes: PortPlanes
    """By port of a host; ports that are in no plane are missing."""
    plane_by_switch_name: Mapping[int, str]
    """By switch the plane that its name tells, where names tell planes apart."""

    @property
    def names(self) -> tuple[str, ...]:
        """The planes that have ports: compute, storage, management, then others by name."""
        found = self.port_planes.planes()
        return (*(name for name in _USUAL if name in found), *sorted(found.difference(_USUAL)))

    def plane(self, name: str) -> Plane:
        """Return a plane, empty where no port is in it. Cost: O(ports + links)."""
        are_own = self.port_planes.is_in(name)
        host_edges = self.cables.host_edges
        host_edges = host_edges.where(are_own[host_edges.columns.a_port])
        leaves = set(host_edges.columns.b.tolist())
        switch_edges = self._switch_edges(name, leaves)
        reached = find_reachable(leaves, switch_edges)
        return Plane(
            name=name,
            hosts=self.cables.hosts,
            switches=tuple(sorted(reached)),
            host_edges=host_edges,
            switch_edges=switch_edges.where(_is_member(switch_edges.columns.a, reached)),
            ports=PortSet(are_own),
        )

    def _switch_edges(self, name: str, leaves: Collection[int]) -> EdgeRows:
        """Return the cables between switches that a plane may have.

        Not those by which switches are managed, and none of a switch that is there for the hosts
        of another plane: without its hosts it would look like a spine.
        """
        foreign = self._find_other_switches(name, leaves)
        managed_by = self.cables.management_ports if name != MANAGEMENT else frozenset[int]()
        a, b, a_port, b_port = self.cables.switch_edges.columns
        is_foreign = _is_member(a, foreign) | _is_member(b, foreign)
        is_managing = _is_member(a_port, managed_by) | _is_member(b_port, managed_by)
        return self.cables.switch_edges.where(~(is_foreign | is_managing))

    def _find_other_switches(self, name: str, leaves: Collection[int]) -> set[int]:
        _, b, a_port, _ = self.cables.host_edges.columns
        hosts = Counter(b[~_is_member(b, leaves) & self.port_planes.is_assigned()[a_port]].tolist())
        if not hosts and not self.plane_by_switch_name:
            return set()
        columns = self.cables.switch_edges.columns
        links = Counter([*columns.a.tolist(), *columns.b.tolist()])
        crowded = {switch for switch, count in hosts.items() if count >= links[switch]}
        named = {switch for switch, plane in self.plane_by_switch_name.items() if plane != name}
        return crowded | (named - set(leaves))


def _is_member(numbers: Index, chosen: Collection[int]) -> Flags:
    """Tell which numbers are among some."""
    found = np.fromiter(chosen, np.intp, len(chosen))
    return np.isin(numbers, found) if len(found) else np.zeros(len(numbers), np.bool_)


def select_compute_plane(fabric: Fabric) -> Plane:
    """Return the compute plane by the default policy, see `plane_default`."""
    return split_planes(fabric).plane(COMPUTE)


def split_planes(fabric: Fabric, policies: Sequence[PlanePolicy] = ()) -> PlaneSplit:
    """Tell the networks of a fabric apart. Cost: O(ports + links).

    Args:
        fabric: all devices and links.
        policies: looked at in their order; ports that fit none go where the default puts them,
            but into no plane that a policy names.
    """
    cables = find_cables(fabric)
    defined = {policy.name for policy in policies}
    shares = PortPlanes(len(fabric.ports))
    shares.put_each(_assign_by_policy(fabric, cables, policies) if policies else ())
    in_name = _find_named_planes(fabric, cables, defined)
    ends = cables.host_edges.columns
    linked = ends.a_port[~shares.is_assigned()[ends.a_port]]
    by_name = _assign_by_names(fabric, cables, shares, in_name) if in_name else {}
    shares.put_each(by_name.items())
    left = cables.host_ports[~shares.is_assigned()[cables.host_ports]]
    for share, ports in assign_hosts(fabric, cables, left, linked):
        if share.plane not in defined:
            shares.put(share, ports)
    like_others = assign_by_switch_use(cables.host_edges, shares)
    shares.put_each(row for row in like_others.items() if row[1].plane not in defined)
    return PlaneSplit(fabric, cables, shares, in_name if by_name else {})


def _assign_by_names(
    fabric: Fabric, cables: Cables, shares: PortPlanes, in_name: Mapping[int, str]
) -> Mapping[int, PortPlane]:
    """Return what the names of switches tell of the ports that no policy has."""
    ends = cables.host_edges.columns
    links = zip(ends.a_port.tolist(), ends.b.tolist(), strict=True)
    named = {port: in_name.get(switch) for port, switch in links if port not in shares}
    if not has_plane_names(named):
        return {}
    left = cables.host_ports[~shares.is_assigned()[cables.host_ports]]
    return assign_by_switch_names(ports_of_hosts(fabric, cables, left).values(), named)


def _find_named_planes(fabric: Fabric, cables: Cables, defined: Collection[str]) -> dict[int, str]:
    """Return by switch the plane that its name tells, but planes that a policy names."""
    columns = cables.switch_edges.columns
    names = columns_of(fabric).names
    is_cabled = np.zeros(len(names), np.bool_)
    for ends in (cables.host_edges.columns.b, columns.a, columns.b):
        is_cabled[ends] = True
    told = ((at, plane_in_name(names[at])) for at in np.flatnonzero(is_cabled).tolist())
    return {at: plane for at, plane in told if plane and plane not in defined}


def _assign_by_policy(
    fabric: Fabric, cables: Cables, policies: Sequence[PlanePolicy]
) -> Iterator[tuple[int, PortPlane]]:
    near: dict[int, set[int]] = defaultdict(set)
    for edge in cables.host_edges:
        near[edge.a_port].add(edge.b)
    is_asked = any(rule.subnets for policy in policies for rule in policy.rules)
    subnets = subnets_by_switch(fabric, cables) if is_asked else {}
    for host, ports in ports_of_hosts(fabric, cables, cables.host_ports).items():
        for at, port in ports.items():
            switches = near.get(at, set())
            heard = (one for switch in switches for one in subnets.get(switch, ()))
            view = PortView(
                port=port,
                host=fabric.devices[host].name,
                switches=tuple(fabric.devices[one].name for one in switches),
                subnets=frozenset([port.subnet] if port.subnet else heard),
            )
            share = match_policies(view, policies)
            if share:
                yield at, share
