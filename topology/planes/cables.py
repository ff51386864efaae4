"""The cables of a fabric that networks are made of: hosts to switches, switches to switches."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final, NamedTuple

import numpy as np

from topology.model.fabric import Fabric, FabricPort, columns_of
from topology.model.fabric_columns import (
    KIND_CODES,
    MEDIUM_CODES,
    UNKNOWN_RATE,
    FabricColumns,
    Flags,
    Index,
    Rates,
    rate_or_none,
)
from topology.model.facts import DeviceKind, Medium
from topology.model.lazy_rows import LazyRows, rows_at
from topology.model.pair_counts import PairCounts, count_pairs

# How makers of switches call the port that leads to the management network, and to no host.
_MANAGEMENT_PORT = re.compile(
    r"(?i)(eth0|mgmt\d*(/\d+)*|management\d*(/\d+)*|(fxp|em|me)\d|vme|ma\d|meth[\d/]+|oob\d*"
    r"|m-gigabitethernet[\d/]+)\Z"
)


class Edge(NamedTuple):
    """A link of a plane: two devices and the ports it joins."""

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


class EdgeRows(LazyRows[Edge]):
    """Links of a plane that are arrays, and rows for whoever looks at them."""

    def __init__(self, columns: EdgeColumns) -> None:
        """Keep the arrays; rows are made when somebody looks."""
        # Rows that referred to themselves would keep their arrays until a collection.
        super().__init__(len(columns.a), partial(_make_rows, columns))
        self.columns: Final = columns

    @classmethod
    def of(cls, edges: Iterable[Edge]) -> EdgeRows:
        """Return rows as links that are arrays. Cost: O(links)."""
        table = np.array([*edges], np.intp).reshape(-1, len(EdgeColumns._fields))
        return cls(EdgeColumns(*table.T))

    def where(self, is_kept: Flags) -> EdgeRows:
        """Return some of the links."""
        return EdgeRows(EdgeColumns(*(column[is_kept] for column in self.columns)))

    @cached_property
    def pairs(self) -> PairCounts:
        """`a` to `b` to number of links."""
        return count_pairs(self.columns.a, self.columns.b)

    @cached_property
    def pairs_both_ways(self) -> PairCounts:
        """Either end to the other to number of links."""
        a, b, _, _ = self.columns
        return count_pairs(np.concatenate([a, b]), np.concatenate([b, a]))


def _make_rows(columns: EdgeColumns, places: Sequence[int]) -> Iterator[Edge]:
    chosen = np.fromiter(places, np.intp, len(places))
    return map(Edge, *(column[chosen].tolist() for column in columns))


@dataclass(frozen=True, slots=True)
class Cables:
    """The links of a fabric that a plane may have, and the hosts' ports."""

    host_edges: EdgeRows
    """`a` is the host, `b` the switch."""
    switch_edges: EdgeRows
    management_ports: frozenset[int]
    """Ports of switches by which people manage them; cables there lead to no network for jobs."""
    hosts: tuple[int, ...]
    """Ascending; every host, also those without ports."""
    host_ports: Index
    """The ports of hosts that a network may have, ascending."""
    rates: Rates
    """By port of the fabric; what only the other end of a host's cable tells is filled in."""


def find_cables(fabric: Fabric, *, management_ports: frozenset[int] | None = None) -> Cables:
    """Return the cables but disputed ones, loop-backs, NVLink, and those of other devices.

    Cost: O(ports + links), 0.5 µs each, a tenth of it where names need not be looked at.

    Args:
        fabric: all devices and links.
        managed_by: ports of switches by which people manage them, where that is known already.
    """
    columns = columns_of(fabric)
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
        management_ports=(
            _management_ports(fabric, columns, between)
            if management_ports is None
            else management_ports
        ),
        hosts=tuple(np.flatnonzero(is_host).tolist()),
        host_ports=np.flatnonzero(is_host[columns.port_devices] & ~is_nvlink),
        rates=_reported_rates(columns, np.flatnonzero(is_used & ~between)),
    )


def _reported_rates(columns: FabricColumns, links: Index) -> Rates:
    """Return the rates of ports; what only these links tell is filled in, which is rare."""
    cables = columns.links
    links = links[cables.rates[links] != UNKNOWN_RATE]
    ports = np.stack((cables.a[links], cables.b[links]), axis=1).ravel()
    told = np.repeat(cables.rates[links], 2)
    is_new = columns.rates[ports] == UNKNOWN_RATE
    if not is_new.any():
        return columns.rates
    rates = columns.rates.copy()
    rates[ports[is_new]] = told[is_new]
    return rates


def is_management_port(port: FabricPort) -> bool:
    """Return whether a switch's port is the one by which people manage the switch."""
    return port.medium is Medium.ETHERNET and bool(_MANAGEMENT_PORT.match(port.name))


def _management_ports(fabric: Fabric, columns: FabricColumns, between: Flags) -> frozenset[int]:
    """Return those ports of cables between switches; names of others are not looked at."""
    ends = np.concatenate([columns.links.a[between], columns.links.b[between]])
    is_ethernet = columns.media[ends] == MEDIUM_CODES[Medium.ETHERNET]
    places = np.unique(ends[is_ethernet]).tolist()
    rows = rows_at(fabric.ports, places)
    return frozenset(at for at, port in zip(places, rows, strict=True) if is_management_port(port))


def ports_of_hosts(
    fabric: Fabric, cables: Cables, places: Index
) -> dict[int, dict[int, FabricPort]]:
    """Return some ports by their host and number, with the rates that the cables tell.

    Cost: O(ports), 2 µs each, because their rows are made.
    """
    found: dict[int, dict[int, FabricPort]] = defaultdict(dict)
    rows = rows_at(fabric.ports, places.tolist())
    told = map(rate_or_none, cables.rates[places].tolist())
    for at, port, rate in zip(places.tolist(), rows, told, strict=True):
        found[port.device][at] = port if port.rate_bps == rate else port._replace(rate_bps=rate)
    return found


def find_reachable(starts: Iterable[int], edges: EdgeRows) -> set[int]:
    """Return the devices that edges lead to from some, which are among them.

    Cost: O(links) per step away from them.
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
    """Return the InfiniBand subnet of switches, as the hosts that are cabled there report it.

    Routers end a subnet and are no switches, so what switches reach among each other is one.
    Several in one are told as they are said. Cost: O(links) per subnet.
    """
    edges = EdgeRows.of(
        edge
        for edge in cables.switch_edges
        if fabric.ports[edge.a_port].medium is Medium.INFINIBAND
    )
    starts: dict[str, set[int]] = defaultdict(set)
    for edge in cables.host_edges:
        subnet = fabric.ports[edge.a_port].subnet
        if subnet:
            starts[subnet].add(edge.b)
    found: dict[int, set[str]] = defaultdict(set)
    for subnet, switches in starts.items():
        for switch in find_reachable(switches, edges):
            found[switch].add(subnet)
    return {switch: frozenset(told) for switch, told in found.items()}
