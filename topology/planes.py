"""Which links belong to which network: the selection policy for the compute plane.

A plane is one network that jobs can use. Rails, and the two planes of a dual-plane host, are not
planes in this sense: they serve one job together and are joined by the hosts they share.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from topology.fabric import Fabric, FabricPort, Link
from topology.facts import DeviceKind, GpuDistance, Medium, PortState

COMPUTE = "compute"
SLOWEST_SHARE = 4  # a compute port has at least a quarter of the fastest rate on its node
_NEARNESS = (GpuDistance.SWITCH, GpuDistance.NUMA, GpuDistance.OTHER)


class Edge(NamedTuple):
    """A link of a plane: two devices and the ports it joins."""

    a: int
    b: int
    a_port: int
    b_port: int


@dataclass(frozen=True, slots=True)
class Plane:
    """The part of a fabric that one network is: hosts, switches and the cables between them."""

    name: str
    hosts: tuple[int, ...]
    """Device numbers, ascending; also hosts that are no cluster nodes."""
    switches: tuple[int, ...]
    """Device numbers, ascending."""
    host_edges: tuple[Edge, ...]
    """`a` is the host, `b` the switch."""
    switch_edges: tuple[Edge, ...]
    ports: frozenset[int]
    """Ports of hosts that the policy puts into this plane, linked or not."""


def select_compute(fabric: Fabric) -> Plane:
    """Return the compute plane by the default policy.

    On each host: the ports nearest to a GPU, where its report tells; of these (of all, where it
    does not) the InfiniBand and RDMA-capable ones, at or above a quarter of the fastest rate;
    where neither rate nor RDMA tells ports apart, all of them. Disputed links, loop-backs and
    aggregation nodes are no part of a plane. Cost: O(ports + links).
    """
    chosen = frozenset(_host_ports(fabric))
    kinds = [device.kind for device in fabric.devices]
    host_edges: list[Edge] = []
    switch_edges: list[Edge] = []
    for link in fabric.links:
        edge = _edge(fabric, link)
        pair = (kinds[edge.a], kinds[edge.b])
        if link.is_disputed or edge.a == edge.b:
            continue
        if pair == (DeviceKind.SWITCH, DeviceKind.SWITCH):
            switch_edges.append(edge)
        elif pair == (DeviceKind.HOST, DeviceKind.SWITCH) and edge.a_port in chosen:
            host_edges.append(edge)
        elif pair == (DeviceKind.SWITCH, DeviceKind.HOST) and edge.b_port in chosen:
            host_edges.append(Edge(edge.b, edge.a, edge.b_port, edge.a_port))
    reached = _reach(host_edges, switch_edges)
    return Plane(
        name=COMPUTE,
        hosts=tuple(at for at, kind in enumerate(kinds) if kind is DeviceKind.HOST),
        switches=tuple(sorted(reached)),
        host_edges=tuple(host_edges),
        switch_edges=tuple(edge for edge in switch_edges if edge.a in reached),
        ports=chosen,
    )


def _edge(fabric: Fabric, link: Link) -> Edge:
    return Edge(fabric.ports[link.a].device, fabric.ports[link.b].device, link.a, link.b)


def _host_ports(fabric: Fabric) -> list[int]:
    linked = {port for link in fabric.links for port in (link.a, link.b)}
    by_host: dict[int, list[int]] = defaultdict(list)
    for number, port in enumerate(fabric.ports):
        if fabric.devices[port.device].kind is DeviceKind.HOST:
            by_host[port.device].append(number)
    return [
        number
        for numbers in by_host.values()
        for number in _compute_ports(fabric.ports, numbers, linked)
    ]


def _compute_ports(ports: Sequence[FabricPort], numbers: list[int], linked: set[int]) -> list[int]:
    near = [ports[number].gpu_distance for number in numbers]
    nearest = next((distance for distance in _NEARNESS[:-1] if distance in near), None)
    if nearest is not None:
        numbers = [number for number in numbers if ports[number].gpu_distance is nearest]
    capable = [number for number in numbers if _is_rdma(ports[number])]
    chosen = capable if any(number in linked for number in capable) else numbers
    fastest = max((ports[number].rate_bps or 0 for number in chosen if number in linked), default=0)
    return [
        number
        for number in chosen
        if ports[number].state is PortState.DOWN  # some drivers tell its slowest rate then
        or (rate := ports[number].rate_bps) is None
        or rate * SLOWEST_SHARE >= fastest
    ]


def _is_rdma(port: FabricPort) -> bool:
    return port.medium is Medium.INFINIBAND or port.rdma_device is not None


def _reach(host_edges: list[Edge], switch_edges: list[Edge]) -> set[int]:
    """Return the switches that the plane's hosts reach."""
    around: dict[int, set[int]] = defaultdict(set)
    for edge in switch_edges:
        around[edge.a].add(edge.b)
        around[edge.b].add(edge.a)
    reached = {edge.b for edge in host_edges}
    frontier = list(reached)
    while frontier:
        for near in around.get(frontier.pop(), ()):
            if near not in reached:
                reached.add(near)
                frontier.append(near)
    return reached
