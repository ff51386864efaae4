"""Split a fabric into planes: which links belong to which network.

A plane is one network that jobs can use. Rails, and the two networks of a dual-plane host, are not
planes in this sense: one job uses them together, and the hosts that they share connect them. NVLink
is below every network, so its links are in no plane.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from topology.model.fabric import Fabric, Flags, Index
from topology.model.pair_counts import count_pairs
from topology.planes.cables import (
    Cables,
    EdgeRows,
    find_cables,
    find_reachable,
    ports_of_hosts,
    subnets_by_switch,
)
from topology.planes.compute_choice import ComputeChoice
from topology.planes.default_policy import (
    assign_by_choice,
    assign_by_switch_names,
    assign_by_switch_use,
    choose_planes,
    plane_in_name,
)
from topology.planes.plane import Plane, PortSet
from topology.planes.policy import (
    COMPUTE,
    MANAGEMENT,
    STORAGE,
    PlanePolicy,
    PortPlane,
    PortView,
    match_policies,
)
from topology.planes.port_plane_map import PortPlaneMap

_USUAL = (COMPUTE, STORAGE, MANAGEMENT)


@dataclass(frozen=True, slots=True)
class PlaneSplit:
    """A fabric split into planes."""

    fabric: Fabric
    cables: Cables
    port_planes: PortPlaneMap
    """The plane of each host port that has one, by port."""
    plane_by_switch_name: Mapping[int, str]
    """By switch: the plane in its name; empty if switch names are not used."""
    choices: tuple[ComputeChoice, ...]
    """How the default policy chose the compute ports, one entry per machine type; empty if a policy
    names the compute plane."""

    @property
    def names(self) -> tuple[str, ...]:
        """The planes that have ports: compute, storage, management, then others by name."""
        names = self.port_planes.planes()
        return (*(name for name in _USUAL if name in names), *sorted(names.difference(_USUAL)))

    def plane(self, name: str) -> Plane:
        """Return a plane; empty if it has no port. Cost: O(ports + links)."""
        is_in_plane = self.port_planes.is_in(name)
        host_edges = self.cables.host_edges
        host_edges = host_edges.where(is_in_plane[host_edges.columns.a_port])
        leaves = set(host_edges.columns.b.tolist())
        switch_edges = self._switch_edges(name, leaves)
        reached = find_reachable(leaves, switch_edges)
        return Plane(
            name=name,
            hosts=self.cables.hosts,
            switches=tuple(sorted(reached)),
            host_edges=host_edges,
            switch_edges=switch_edges.where(_is_member(switch_edges.columns.a, reached)),
            ports=PortSet(is_in_plane),
        )

    def list_cable_planes(self) -> dict[tuple[int, int], str]:
        """Return the plane of each link that is in one, by its ports, the lower number first.

        A link between switches of several planes counts for the first of them by name.
        """
        planes: dict[tuple[int, int], str] = {}
        for name in self.names:
            plane = self.plane(name)
            for edges in (plane.host_edges, plane.switch_edges):
                columns = edges.columns
                for a, b in zip(columns.a_port.tolist(), columns.b_port.tolist(), strict=True):
                    planes.setdefault((min(a, b), max(a, b)), name)
        return planes

    def _switch_edges(self, name: str, leaves: Collection[int]) -> EdgeRows:
        """Return the links between switches that a plane may contain.

        These exclude links of management ports, and all links of a switch that serves the hosts of
        another plane: without its hosts it would look like a spine.
        """
        foreign = self._find_other_switches(name, leaves)
        management_ports = self.cables.management_ports if name != MANAGEMENT else frozenset[int]()
        a, b, a_port, b_port = self.cables.switch_edges.columns
        is_foreign = _is_member(a, foreign) | _is_member(b, foreign)
        is_managing = _is_member(a_port, management_ports) | _is_member(b_port, management_ports)
        return self.cables.switch_edges.where(~(is_foreign | is_managing))

    def _find_other_switches(self, name: str, leaves: Collection[int]) -> set[int]:
        a, b, a_port, _ = self.cables.host_edges.columns
        is_other = ~_is_member(b, leaves) & self.port_planes.is_assigned()[a_port]
        # One host may report any number of cables to a spine; hosts are counted.
        num_hosts = Counter(count_pairs(b[is_other], a[is_other]).left.tolist())
        if not num_hosts and not self.plane_by_switch_name:
            return set()
        columns = self.cables.switch_edges.columns
        num_switch_links = Counter([*columns.a.tolist(), *columns.b.tolist()])
        crowded = {
            switch for switch, count in num_hosts.items() if count >= num_switch_links[switch]
        }
        named = {switch for switch, plane in self.plane_by_switch_name.items() if plane != name}
        return crowded | (named - set(leaves))


def _is_member(numbers: Index, chosen: Collection[int]) -> Flags:
    """Return one flag per number: whether it is chosen."""
    members = np.fromiter(chosen, np.intp, len(chosen))
    return np.isin(numbers, members) if len(members) else np.zeros(len(numbers), np.bool_)


def split_planes(fabric: Fabric, policies: Sequence[PlanePolicy] = ()) -> PlaneSplit:
    """Split a fabric into its networks. Cost: O(ports + links).

    Args:
        fabric: all devices and links.
        policies: checked in their order; a port that matches none is assigned by the default
            policy, but never to a plane that a policy names.
    """
    cables, columns = find_cables(fabric), fabric.columns
    defined = {policy.name for policy in policies}
    port_planes = PortPlaneMap(len(fabric.ports))
    for port, port_plane in _assign_by_policy(fabric, cables, policies) if policies else ():
        port_planes.put(port_plane, port)
    plane_of_switch = _find_named_planes(fabric, cables, defined)
    open_ports = port_planes.list_open(cables.host_ports)
    by_name = (
        assign_by_switch_names(columns, cables, open_ports, plane_of_switch)
        if plane_of_switch
        else []
    )
    for port_plane, ports in by_name:
        port_planes.put(port_plane, ports)
    choices = choose_planes(columns, cables, port_planes.list_open(cables.host_ports))
    for choice in choices:
        for port_plane, ports in assign_by_choice(choice):
            if port_plane.plane not in defined:
                port_planes.put(port_plane, ports)
    for port_plane, ports in assign_by_switch_use(cables, port_planes):
        if port_plane.plane not in defined:
            port_planes.put(port_plane, ports)
    return PlaneSplit(
        fabric,
        cables,
        port_planes,
        plane_of_switch if by_name else {},
        () if COMPUTE in defined else tuple(choices),
    )


def _find_named_planes(fabric: Fabric, cables: Cables, defined: Collection[str]) -> dict[int, str]:
    """Return the plane in the name of each switch, without planes that a policy names."""
    columns = cables.switch_edges.columns
    names = fabric.columns.names
    is_cabled = np.zeros(len(names), np.bool_)
    for ends in (cables.host_edges.columns.b, columns.a, columns.b):
        is_cabled[ends] = True
    switch_planes = (
        (switch, plane_in_name(names[switch])) for switch in np.flatnonzero(is_cabled).tolist()
    )
    return {switch: plane for switch, plane in switch_planes if plane and plane not in defined}


def _assign_by_policy(
    fabric: Fabric, cables: Cables, policies: Sequence[PlanePolicy]
) -> Iterator[tuple[int, PortPlane]]:
    switches_of_port: dict[int, set[int]] = defaultdict(set)
    for edge in cables.host_edges:
        switches_of_port[edge.a_port].add(edge.b)
    has_subnet_rules = any(rule.subnets for policy in policies for rule in policy.rules)
    subnets = subnets_by_switch(fabric, cables) if has_subnet_rules else {}
    for host, ports in ports_of_hosts(fabric, cables, cables.host_ports).items():
        for number, port in ports.items():
            switches = switches_of_port.get(number, set())
            neighbor_subnets = (subnet for switch in switches for subnet in subnets.get(switch, ()))
            view = PortView(
                port=port,
                host=fabric.devices[host].name,
                switches=tuple(fabric.devices[switch].name for switch in switches),
                subnets=frozenset([port.subnet] if port.subnet else neighbor_subnets),
            )
            port_plane = match_policies(view, policies)
            if port_plane:
                yield number, port_plane
