"""The links that planes consist of, as edges: hosts to switches, and switches to switches."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from topology.model.fabric import (
    KIND_CODES,
    MEDIUM_CODES,
    UNKNOWN_RATE,
    Fabric,
    FabricColumns,
    FabricPort,
    Flags,
    Index,
    Rates,
    rate_or_none,
)
from topology.model.facts import DeviceKind, Medium
from topology.model.lazy_rows import LazyRows
from topology.model.pair_counts import PairCounts, count_pairs

# Names that switch vendors give to the port of the management network; it never leads to a host.
_MANAGEMENT_PORT = re.compile(
    r"(?i)(eth0|mgmt\d*(/\d+)*|management\d*(/\d+)*|(fxp|em|me)\d|vme|ma\d|meth[\d/]+|oob\d*"
    r"|m-gigabitethernet[\d/]+)\Z"
)


class Edge(NamedTuple):
    """A link of a plane: two devices and the ports that it connects."""

    a: int
    b: int
    a_port: int
    b_port: int


class EdgeColumns(NamedTuple):
    """Links of a plane as arrays, one entry per link; the fields are those of `Edge`."""

    a: Index
    b: Index
    a_port: Index
    b_port: Index

    def rows(self, indices: Sequence[int]) -> Iterator[Edge]:
        """Yield the links at the given indices as rows."""
        chosen = np.fromiter(indices, np.intp, len(indices))
        return map(Edge, *(column[chosen].tolist() for column in self))


class EdgeRows(LazyRows[Edge]):
    """Links of a plane as arrays, with rows that are built on demand."""

    def __init__(self, columns: EdgeColumns) -> None:
        """Store the arrays; rows are built on demand."""
        super().__init__(len(columns.a), columns.rows)
        self.columns: Final = columns

    @classmethod
    def of(cls, edges: Iterable[Edge]) -> EdgeRows:
        """Return links that are rows as arrays. Cost: O(links)."""
        table = np.array([*edges], np.intp).reshape(-1, len(EdgeColumns._fields))
        return cls(EdgeColumns(*table.T))

    def where(self, is_chosen: Flags) -> EdgeRows:
        """Return the chosen links, given one flag per link."""
        return EdgeRows(EdgeColumns(*(column[is_chosen] for column in self.columns)))

    def joined(self, other: EdgeRows) -> EdgeRows:
        """Return these links and those of another."""
        columns = zip(self.columns, other.columns, strict=True)
        return EdgeRows(EdgeColumns(*map(np.concatenate, columns)))

    @cached_property
    def pairs(self) -> PairCounts:
        """The number of links from each `a` to each `b`."""
        return count_pairs(self.columns.a, self.columns.b)

    @cached_property
    def pairs_both_ways(self) -> PairCounts:
        """The number of links between each pair of devices, in both directions."""
        a, b, _, _ = self.columns
        return count_pairs(np.concatenate([a, b]), np.concatenate([b, a]))


@dataclass(frozen=True, slots=True)
class Cables:
    """The links of a fabric that a plane may contain, and the hosts' ports."""

    host_edges: EdgeRows
    """`a` is the host, `b` the switch."""
    switch_edges: EdgeRows
    management_ports: frozenset[int]
    """The management ports of switches; their cables belong to no network for jobs."""
    hosts: tuple[int, ...]
    """Device numbers of all hosts, ascending; also hosts without ports."""
    host_ports: Index
    """The ports of hosts that a plane may contain, ascending."""
    rates: Rates
    """By port of the fabric; an unknown rate of a host's cable is taken from its other end."""


def find_cables(fabric: Fabric) -> Cables:
    """Return the links of hosts and switches that a plane may contain.

    NVLink, disputed links and links of a device to itself are left out.

    Cost: O(ports + links), 0.5 µs each; a tenth of that if no port names are read.
    """
    columns = fabric.columns
    links, ends = columns.links, (columns.links.a, columns.links.b)
    a, b = (columns.port_devices[port] for port in ends)
    is_nvlink = columns.media == MEDIUM_CODES[Medium.NVLINK]
    is_used = ~(links.is_disputed | (a == b))
    if is_nvlink.any():
        is_used &= ~(is_nvlink[links.a] | is_nvlink[links.b])
    is_switch = columns.kinds == KIND_CODES[DeviceKind.SWITCH]
    is_host = columns.kinds == KIND_CODES[DeviceKind.HOST]
    from_switch, to_switch = is_switch[a], is_switch[b]
    between = is_used & from_switch & to_switch
    is_turned = from_switch & is_host[b]
    of_hosts = np.flatnonzero(is_used & ((is_host[a] & to_switch) | is_turned))
    is_turned = is_turned[of_hosts]
    sides = [(left[of_hosts], right[of_hosts]) for left, right in ((a, b), ends)]
    low = [np.where(is_turned, right, left) for left, right in sides]
    high = [np.where(is_turned, left, right) for left, right in sides]
    return Cables(
        host_edges=EdgeRows(EdgeColumns(low[0], high[0], low[1], high[1])),
        switch_edges=EdgeRows(EdgeColumns(*(column[between] for column in (a, b, *ends)))),
        management_ports=_management_ports(columns, between),
        hosts=tuple(np.flatnonzero(is_host).tolist()),
        host_ports=np.flatnonzero(is_host[columns.port_devices] & ~is_nvlink),
        rates=_reported_rates(columns, np.flatnonzero(is_used & ~between)),
    )


def _reported_rates(columns: FabricColumns, links: Index) -> Rates:
    """Return the rates of ports; a rare unknown rate is filled in from the port's link."""
    cables = columns.links
    links = links[cables.rates[links] != UNKNOWN_RATE]
    ports = np.stack((cables.a[links], cables.b[links]), axis=1).ravel()
    link_rates = np.repeat(cables.rates[links], 2)
    is_new = columns.rates[ports] == UNKNOWN_RATE
    if not is_new.any():
        return columns.rates
    rates = columns.rates.copy()
    rates[ports[is_new]] = link_rates[is_new]
    return rates


def is_management_name(name: str) -> bool:
    """Return whether an Ethernet port of a switch is its management port, by its name."""
    return bool(_MANAGEMENT_PORT.match(name))


def _management_ports(columns: FabricColumns, between: Flags) -> frozenset[int]:
    """Return the management ports among the ends of links between switches.

    Each distinct name is read once.
    """
    ends = np.concatenate([columns.links.a[between], columns.links.b[between]])
    is_ethernet = columns.media[ends] == MEDIUM_CODES[Medium.ETHERNET]
    ports = np.unique(ends[is_ethernet])
    codes, names = columns.port_names.code(ports)
    is_managing = np.array(list(map(is_management_name, names)), np.bool_)
    return frozenset(ports[is_managing[codes]].tolist()) if len(ports) else frozenset()


def ports_of_hosts(
    fabric: Fabric, cables: Cables, ports: Index
) -> dict[int, dict[int, FabricPort]]:
    """Return the given ports by host and port number, with the rates of `Cables.rates`.

    Cost: O(ports), 2 µs each, because their rows are built.
    """
    ports_by_host: dict[int, dict[int, FabricPort]] = defaultdict(dict)
    rows = fabric.ports.at(ports.tolist())
    rates = map(rate_or_none, cables.rates[ports].tolist())
    for number, row, rate in zip(ports.tolist(), rows, rates, strict=True):
        port = row if row.rate_bps == rate else row._replace(rate_bps=rate)
        ports_by_host[row.device][number] = port
    return ports_by_host


def find_reachable(starts: Iterable[int], edges: EdgeRows) -> set[int]:
    """Return the devices that edges connect to the start devices, directly or not.

    The start devices are included. Cost: O(links) per hop.
    """
    reached = set(starts)
    a, b, _, _ = edges.columns
    ends = np.concatenate([a, b, np.array([*reached], np.intp)])
    is_reached = np.zeros(int(ends.max(initial=-1)) + 1, np.bool_)
    is_reached[list(reached)] = True
    num_reached = -1
    while int(is_reached.sum()) > num_reached:
        num_reached = int(is_reached.sum())
        is_reached[b[is_reached[a]]] = True
        is_reached[a[is_reached[b]]] = True
    return set(np.flatnonzero(is_reached).tolist())


def subnets_by_switch(fabric: Fabric, cables: Cables) -> dict[int, frozenset[str]]:
    """Return the InfiniBand subnets of each switch, as the hosts that are linked there report.

    Routers separate subnets and are not switches, so connected switches are in one subnet. If hosts
    report several subnets for connected switches, all of them are returned, but for this a subnet
    needs several hosts if another subnet has several.
    Cost: O(links) per subnet.
    """
    edges = EdgeRows.of(
        edge
        for edge in cables.switch_edges
        if fabric.ports[edge.a_port].medium is Medium.INFINIBAND
    )
    starts: dict[str, set[int]] = defaultdict(set)
    hosts: dict[str, set[int]] = defaultdict(set)
    for edge in cables.host_edges:
        subnet = fabric.ports[edge.a_port].subnet
        if subnet:
            starts[subnet].add(edge.b)
            hosts[subnet].add(edge.a)
    subnets_of_switch: dict[int, set[str]] = defaultdict(set)
    for subnet, switches in starts.items():
        for switch in find_reachable(switches, edges):
            subnets_of_switch[switch].add(subnet)
    return {
        switch: frozenset(
            subnet
            for subnet in subnets
            if len(hosts[subnet]) > 1 or all(len(hosts[other]) == 1 for other in subnets)
        )
        for switch, subnets in subnets_of_switch.items()
    }
