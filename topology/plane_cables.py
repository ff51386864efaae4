"""The cables of a fabric that networks are made of: hosts to switches, switches to switches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from topology.fabric import Fabric, FabricPort
from topology.facts import DeviceKind, Medium


class Edge(NamedTuple):
    """A link of a plane: two devices and the ports it joins."""

    a: int
    b: int
    a_port: int
    b_port: int


@dataclass(frozen=True, slots=True)
class Cables:
    """The links of a fabric that a plane may have, and the hosts' ports."""

    host_edges: tuple[Edge, ...]
    """`a` is the host, `b` the switch."""
    switch_edges: tuple[Edge, ...]
    ports_of_host: Mapping[int, Mapping[int, FabricPort]]
    """By host the ports by number, ascending; every host, also those without ports. A rate that
    only the other end of the cable tells is filled in."""


def find_cables(fabric: Fabric) -> Cables:
    """Return the cables but disputed ones, loop-backs, NVLink, and those of other devices.

    Cost: O(ports + links).
    """
    kinds = [device.kind for device in fabric.devices]
    host_edges: list[Edge] = []
    switch_edges: list[Edge] = []
    rates: dict[int, int] = {}
    for link in fabric.links:
        a, b = fabric.ports[link.a], fabric.ports[link.b]
        pair = (kinds[a.device], kinds[b.device])
        if link.is_disputed or a.device == b.device or Medium.NVLINK in {a.medium, b.medium}:
            continue
        if pair == (DeviceKind.SWITCH, DeviceKind.SWITCH):
            switch_edges.append(Edge(a.device, b.device, link.a, link.b))
            continue
        if link.rate_bps is not None:
            rates[link.a] = rates[link.b] = link.rate_bps
        if pair == (DeviceKind.HOST, DeviceKind.SWITCH):
            host_edges.append(Edge(a.device, b.device, link.a, link.b))
        elif pair == (DeviceKind.SWITCH, DeviceKind.HOST):
            host_edges.append(Edge(b.device, a.device, link.b, link.a))
    ports_of_host = _ports_of_hosts(fabric, kinds, rates)
    return Cables(tuple(host_edges), tuple(switch_edges), ports_of_host)


def _ports_of_hosts(
    fabric: Fabric, kinds: Sequence[DeviceKind], rates: Mapping[int, int]
) -> dict[int, dict[int, FabricPort]]:
    found: dict[int, dict[int, FabricPort]] = {
        at: {} for at, kind in enumerate(kinds) if kind is DeviceKind.HOST
    }
    for at, port in enumerate(fabric.ports):
        if kinds[port.device] is not DeviceKind.HOST or port.medium is Medium.NVLINK:
            continue
        is_told = port.rate_bps is None and at in rates
        found[port.device][at] = port._replace(rate_bps=rates[at]) if is_told else port
    return found


def reach(starts: Iterable[int], edges: Iterable[Edge]) -> set[int]:
    """Return the devices that edges lead to from some, which are among them."""
    around: dict[int, set[int]] = defaultdict(set)
    for edge in edges:
        around[edge.a].add(edge.b)
        around[edge.b].add(edge.a)
    reached = set(starts)
    frontier = list(reached)
    while frontier:
        for near in around.get(frontier.pop(), ()):
            if near not in reached:
                reached.add(near)
                frontier.append(near)
    return reached


def subnets_of_switches(fabric: Fabric, cables: Cables) -> dict[int, frozenset[str]]:
    """Return the InfiniBand subnet of switches, as the hosts that are cabled there report it.

    Routers end a subnet and are no switches, so what switches reach among each other is one.
    Several in one are told as they are said. Cost: O(links) per subnet.
    """
    edges = [
        edge
        for edge in cables.switch_edges
        if fabric.ports[edge.a_port].medium is Medium.INFINIBAND
    ]
    starts: dict[str, set[int]] = defaultdict(set)
    for edge in cables.host_edges:
        subnet = fabric.ports[edge.a_port].subnet
        if subnet:
            starts[subnet].add(edge.b)
    found: dict[int, set[str]] = defaultdict(set)
    for subnet, switches in starts.items():
        for switch in reach(switches, edges):
            found[switch].add(subnet)
    return {switch: frozenset(told) for switch, told in found.items()}
