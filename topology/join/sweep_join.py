"""The claims of one sweep to a fabric, as columns: the same that `fabric` makes of them one by one.

Both ends of nearly every cable are told and agree; those are paired all at once. A line whose far
end the other node does not tell is placed by the same rules as in `fabric`, one by one. What only
the careful way can judge (two sweeps, an id of two nodes, a peer without a record) is handed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from topology.join.sweep_devices import JoinedSweep, join_sweep_nodes
from topology.join.unmatched_ports import AddedPort, PortLines, place_unmatched
from topology.model.claims import SweptClaims
from topology.model.fabric import Fabric, FabricDevice, FabricPort, Link
from topology.model.fabric_columns import (
    KIND_CODES,
    MEDIUM_CODES,
    STATE_CODES,
    STATES,
    UNKNOWN_RATE,
    FabricColumns,
    Flags,
    Index,
    LinkColumns,
    NameCodes,
    PortNames,
    Rates,
    code_names,
    rate_or_none,
    rate_column,
)
from topology.model.facts import Medium, PortState, sort_findings
from topology.model.lazy_rows import LazyRows
from topology.sources.ibnetdiscover.columns import HCA, NO_GUID, RATES, SweepColumns
from topology.sources.ibnetdiscover.lazy_devices import SweptDevices as SweptClaimDevices

_HALF = 32
"""Bits for one of two numbers."""


def build_sweep_fabric(claims: Sequence[SweptClaims]) -> Fabric | None:
    """Return the fabric of one sweep; None where it takes the careful way.

    Cost: O(n log n) in nodes and port lines, 0.5 µs each.
    """
    devices = claims[0].devices
    if len(claims) > 1 or not isinstance(devices, SweptClaimDevices):
        return None
    sweep = devices.sweep
    joined = join_sweep_nodes(sweep)
    if joined is None:
        return None
    ports = _number_ports(sweep, joined)
    far = _find_far_ends(sweep, ports)
    if far is None:
        return None
    added = place_unmatched(sweep, joined, ports, far)
    return _assemble_fabric(sweep, joined, ports, far=far, added=added)


def _number_ports(sweep: SweepColumns, joined: JoinedSweep) -> PortLines:
    """Number all port lines: one device after the other, nodes in the order of their claims."""
    nodes = joined.nodes()
    counts = sweep.columns.num_rows[nodes]
    stops = np.cumsum(counts)
    lines = np.repeat(sweep.row_starts[nodes] - (stops - counts), counts) + np.arange(counts.sum())
    number = np.empty(len(lines), np.intp)
    number[lines] = np.arange(len(lines))
    device_of = np.repeat(
        np.arange(len(joined.devices)), [len(device.parts) for device in joined.devices]
    )
    device_of_node = np.empty(len(sweep), np.intp)
    device_of_node[nodes] = device_of
    return PortLines(
        lines, number, np.repeat(nodes, counts), np.repeat(device_of, counts), device_of_node
    )


def _find_far_ends(sweep: SweepColumns, ports: PortLines) -> Index | None:
    """Return the port that each port hears, -1 where its node does not tell it or nobody is.

    None where a peer has no record.
    """
    found = sweep.columns
    peers, numbers = found.peers[ports.lines], found.far_numbers[ports.lines].astype(np.intp)
    nodes = np.minimum(np.searchsorted(found.guids, peers), len(found.guids) - 1)
    is_heard = found.peer_letters[ports.lines] != NO_GUID
    if (is_heard & (found.guids[nodes] != peers)).any():
        return None
    starts, sizes = sweep.row_starts[nodes], found.num_rows[nodes]
    first = found.numbers[np.minimum(starts, len(found.numbers) - 1)]
    line = starts + numbers - first  # where a node's ports follow each other without a gap
    is_there = (line >= starts) & (line < starts + sizes) & is_heard
    line[~is_there] = 0
    is_there &= found.numbers[line] == numbers
    gaps = np.flatnonzero(~is_there & is_heard & (sizes > 0))
    if len(gaps):
        line[gaps], is_there[gaps] = _find_lines(sweep, nodes[gaps], numbers[gaps])
    return np.where(is_there, ports.number[line], -1)


def _find_lines(sweep: SweepColumns, nodes: Index, numbers: Index) -> tuple[Index, Flags]:
    """Return the lines of some ports by node and number, and whether there is one."""
    found = sweep.columns
    owners = sweep.row_nodes()
    order = np.lexsort((found.numbers, owners))
    keys = (owners[order] << 16) | found.numbers[order]
    wanted = (nodes << 16) | numbers
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return order[at], keys[at] == wanted


@dataclass(frozen=True, slots=True)
class _FabricRows:
    """Makes the rows of a fabric out of its columns."""

    sweep: SweepColumns
    joined: JoinedSweep
    ports: PortLines
    added: Sequence[AddedPort]

    def devices(self, places: Sequence[int]) -> Iterator[FabricDevice]:
        for at in places:
            found = self.joined.devices[at]
            yield FabricDevice(self.joined.names[at], found.kind, found.node, found.sorted_ids())

    def port_rows(self, columns: FabricColumns, places: Sequence[int]) -> Iterator[FabricPort]:
        chosen = np.fromiter(places, np.intp, len(places))
        rows = zip(
            self._names(chosen),
            columns.port_devices[chosen].tolist(),
            (STATES[code] for code in columns.states[chosen].tolist()),
            columns.rates[chosen].tolist(),
            strict=True,
        )
        for (name, rdma), device, state, bps in rows:
            yield FabricPort(device, name, Medium.INFINIBAND, state, rate_or_none(bps), rdma, None)

    def port_names(self, places: Sequence[int]) -> Iterator[str]:
        return (name for name, _ in self._names(np.fromiter(places, np.intp, len(places))))

    def name_codes(self, places: Index) -> NameCodes:
        """Return the names of ports, each different one made once."""
        found, num_lines, labels = self.sweep.columns, len(self.ports.lines), self.joined.labels
        lines = np.where(places < num_lines, places, 0)
        nodes, numbers = self.ports.nodes[lines], found.numbers[self.ports.lines[lines]]
        is_hca, told = found.letters[nodes] == HCA, labels.codes[nodes]
        # What a name is made of: nothing, an RDMA name or a GUID, and the number.
        owners = np.where(is_hca, np.where(told > 0, told, len(labels.texts) + nodes), 0)
        owners = np.where(places < num_lines, owners, len(labels.texts) + len(self.sweep) + places)
        _, firsts, codes = np.unique(
            (owners << _HALF) | numbers, return_index=True, return_inverse=True
        )
        made = code_names(name for name, _ in self._names(places[firsts]))
        return NameCodes(made.codes[codes], made.texts)

    def _names(self, places: Index) -> Iterator[tuple[str, str | None]]:
        """Yield names and RDMA devices of ports; no RDMA name is told of those without a line."""
        found, num_lines = self.sweep.columns, len(self.ports.lines)
        lines = np.where(places < num_lines, places, 0)
        nodes, numbers = self.ports.nodes[lines], found.numbers[self.ports.lines[lines]]
        rows = zip(
            places.tolist(),
            nodes.tolist(),
            numbers.tolist(),
            (found.letters[nodes] == HCA).tolist(),
            strict=True,
        )
        labels = self.joined.labels
        for at, node, number, is_hca in rows:
            if at >= num_lines:
                yield self.added[at - num_lines].name, None
            elif is_hca:
                label = labels.of(node)
                yield f"{label or f'{found.guids[node]:016x}'}/{number}", label or None
            else:
                yield str(number), None

    def links(self, columns: LinkColumns, places: Sequence[int]) -> Iterator[Link]:
        chosen = np.fromiter(places, np.intp, len(places))
        rates = [rate_or_none(rate) for rate in columns.rates[chosen].tolist()]
        flags = columns.is_one_sided[chosen].tolist(), columns.is_disputed[chosen].tolist()
        ends = columns.a[chosen].tolist(), columns.b[chosen].tolist()
        return map(Link, *ends, *flags, rates)


def _assemble_fabric(
    sweep: SweepColumns,
    joined: JoinedSweep,
    ports: PortLines,
    *,
    far: Index,
    added: Sequence[AddedPort],
) -> Fabric:
    num_added = len(added)
    own_rates = rate_column(RATES)[sweep.columns.rates[ports.lines]]
    is_up = sweep.columns.peer_letters[ports.lines] != NO_GUID
    up, down = STATE_CODES[PortState.UP], STATE_CODES[PortState.DOWN]
    unknown = STATE_CODES[PortState.UNKNOWN]
    rows = _FabricRows(sweep, joined, ports, added)
    columns = FabricColumns(
        names=joined.names,
        nodes=[device.node for device in joined.devices],
        kinds=np.array([KIND_CODES[device.kind] for device in joined.devices], np.uint8),
        port_devices=np.append(ports.devices, [port.device for port in added]).astype(np.intp),
        port_names=PortNames(len(far) + num_added, rows.port_names, rows.name_codes),
        media=np.full(len(far) + num_added, MEDIUM_CODES[Medium.INFINIBAND], np.uint8),
        states=np.append(np.where(is_up, up, down), [unknown] * num_added).astype(np.uint8),
        rates=np.append(own_rates, [UNKNOWN_RATE] * num_added).astype(np.int64),
        has_gpu_distance=np.zeros(len(far) + num_added, np.bool_),
        links=_pair_links(far, own_rates, len(far) + num_added),
        has_shared_image=_find_shared_images(sweep, ports.device_of_node, len(joined.devices)),
    )
    return Fabric(
        devices=LazyRows(len(joined.devices), rows.devices),
        ports=LazyRows(len(columns.port_devices), partial(rows.port_rows, columns)),
        links=LazyRows(len(columns.links.a), partial(rows.links, columns.links)),
        findings=sort_findings(joined.findings),
        columns=columns,
    )


def _find_shared_images(sweep: SweepColumns, device_of_node: Index, num_devices: int) -> Flags:
    """Tell which devices share a system image with another one."""
    is_told = sweep.columns.images != NO_GUID
    images, owners = sweep.columns.images[is_told], device_of_node[is_told]
    order = np.lexsort((owners, images))
    images, owners = images[order], owners[order]
    shares = np.flatnonzero((images[1:] == images[:-1]) & (owners[1:] != owners[:-1]))
    are_boxed = np.zeros(num_devices, np.bool_)
    are_boxed[owners[shares]] = are_boxed[owners[shares + 1]] = True
    return are_boxed


def _pair_links(far: Index, rates: Rates, num_ports: int) -> LinkColumns:
    """Return the links: both ends agree, or one end tells it alone."""
    near = np.arange(len(far))
    tells = (far >= 0) & (far != near)
    answers = np.full(num_ports, -1, np.intp)
    answers[: len(far)] = far
    agrees = tells & (answers[far] == near)
    both = np.flatnonzero(agrees & (near < far))
    alone = np.flatnonzero(tells & ~agrees)
    a = np.concatenate((both, np.minimum(alone, far[alone])))
    b = np.concatenate((far[both], np.maximum(alone, far[alone])))
    one_sided = np.arange(len(a)) >= len(both)
    is_confirmed = np.zeros(num_ports, np.bool_)
    is_confirmed[: len(far)] = agrees
    disputed = np.concatenate((np.zeros(len(both), np.bool_), is_confirmed[far[alone]]))
    lower = np.minimum(rates[both], rates[far[both]])
    upper = np.maximum(rates[both], rates[far[both]])
    link_rates = np.concatenate((np.where(lower == UNKNOWN_RATE, upper, lower), rates[alone]))
    order = np.lexsort((b, a)) if len(alone) else np.arange(len(a))
    return LinkColumns(a[order], b[order], one_sided[order], disputed[order], link_rates[order])
