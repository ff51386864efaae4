"""Join one sweep, and the list of nodes and reports of hosts beside it, as columns.

The fabric equals that of `claim_join`.

Both ends of nearly every cable are in the sweep and agree; those cables are paired all at once. A
port line that the other node does not confirm is resolved by the rules of `claim_join`, one by
one. `claim_join` handles everything else: two sweeps, an id of two nodes, a peer without a record,
a list of nodes or a report that contradicts itself, another one or the sweep, a report that hears
neighbors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

import numpy as np

from topology.identity.claim_facts import HashRows
from topology.identity.listed_nodes import read_listed_nodes
from topology.join.claim_join import assemble_fabric, port_columns
from topology.join.reported_hosts import ReportedHosts, number_reported_ports, read_reported_hosts
from topology.join.sweep_devices import JoinedSweep, join_sweep_nodes
from topology.join.swept_nodes import SweptNodes
from topology.join.unmatched_ports import AddedPort, PortLines, place_unmatched
from topology.model.claims import Claim, SweptClaims
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
    rate_column,
    rate_or_none,
)
from topology.model.facts import Medium, PortState, sort_findings
from topology.model.lazy_rows import LazyRows
from topology.sources.ibnetdiscover.columns import HCA, NO_GUID, RATES, SweepColumns
from topology.sources.ibnetdiscover.lazy_devices import SweptDevices as SweptClaimDevices

_HALF = 32
"""Bits for one of the two numbers in a key."""


def build_sweep_fabric(
    claims: Sequence[SweptClaims], listed: Sequence[Claim] = (), reports: Sequence[Claim] = ()
) -> Fabric | None:
    """Return the fabric of one sweep; None if only `claim_join` can join the claims.

    Cost: O(n log n) in nodes, port lines and listed ids, 0.5 µs each.

    Args:
        claims: the sweep.
        listed: the claims of the inventory.
        reports: the claims of reports.
    """
    devices = claims[0].devices
    if len(claims) > 1 or not isinstance(devices, SweptClaimDevices) or not len(devices):
        return None
    sweep, hosts, nodes = devices.sweep, None, None
    if not len(sweep.columns.peers):  # no node has a cable, so there are no rows to point to
        return None
    if listed:
        nodes = read_listed_nodes(listed)
    if reports and (nodes is not None or not listed):
        hosts = read_reported_hosts(reports)
        nodes = hosts.add_to(nodes, sweep) if hosts is not None else None
    has_nodes = bool(listed or reports)
    joined = join_sweep_nodes(sweep, nodes) if has_nodes is (nodes is not None) else None
    if joined is None:
        return None
    ports = _number_ports(sweep, joined)
    far_ports = _find_far_ends(sweep, ports)
    if far_ports is None:
        return None
    if hosts is not None:
        return _join_reports(devices, joined, hosts, ports=ports, far=far_ports)
    added = place_unmatched(sweep, joined, ports, far_ports)
    return _assemble_fabric(sweep, joined, ports, far=far_ports, added=added)


def _number_ports(sweep: SweepColumns, joined: JoinedSweep) -> PortLines:
    """Number all port lines, grouped by device; nodes are in the order of their claims."""
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
        lines,
        number,
        np.repeat(nodes, counts),
        np.repeat(device_of, counts),
        device_of_node,
        np.arange(len(lines)),
    )


def _find_far_ends(sweep: SweepColumns, ports: PortLines) -> Index | None:
    """Return the port that each port hears; None if a peer has no record.

    The entry is -1 if the port hears nothing, or if the peer's record has no line for that port.
    """
    columns = sweep.columns
    peers, numbers = columns.peers[ports.lines], columns.far_numbers[ports.lines].astype(np.intp)
    nodes = np.minimum(np.searchsorted(columns.guids, peers), len(columns.guids) - 1)
    is_heard = columns.peer_letters[ports.lines] != NO_GUID
    if (is_heard & (columns.guids[nodes] != peers)).any():
        return None
    starts, sizes = sweep.row_starts[nodes], columns.num_rows[nodes]
    first = columns.numbers[np.minimum(starts, len(columns.numbers) - 1)]
    line = starts + numbers - first  # right if the port numbers of the node have no gap
    has_line = (line >= starts) & (line < starts + sizes) & is_heard
    line[~has_line] = 0
    has_line &= columns.numbers[line] == numbers
    gaps = np.flatnonzero(~has_line & is_heard & (sizes > 0))
    if len(gaps):
        line[gaps], has_line[gaps] = _find_lines(sweep, nodes[gaps], numbers[gaps])
    return np.where(has_line, ports.number[line], -1)


def _find_lines(sweep: SweepColumns, nodes: Index, numbers: Index) -> tuple[Index, Flags]:
    """Return the line of each port, given by node and number, and whether the line exists."""
    columns = sweep.columns
    owners = sweep.row_nodes()
    order = np.lexsort((columns.numbers, owners))
    keys = (owners[order] << 16) | columns.numbers[order]
    node_port_keys = (nodes << 16) | numbers
    positions = np.minimum(np.searchsorted(keys, node_port_keys), len(keys) - 1)
    return order[positions], keys[positions] == node_port_keys


def _join_reports(
    devices: SweptClaimDevices,
    joined: JoinedSweep,
    hosts: ReportedHosts,
    *,
    ports: PortLines,
    far: Index,
) -> Fabric | None:
    """Return the fabric of a sweep and reports; None if only `claim_join` can number the ports."""
    sweep = devices.sweep
    swept = SweptNodes(devices, (), joined.labels, [], sweep.row_nodes().astype(np.int32))
    reported = number_reported_ports(hosts, joined, swept, ports)
    if reported is None:
        return None
    lines = reported.lines
    far_ports = np.full(len(lines.lines), -1, np.intp)
    far_ports[reported.renumbered] = np.where(far < 0, -1, reported.renumbered[far])
    added = place_unmatched(sweep, joined, lines, far_ports)
    table = reported.build_table(hosts, swept, added)
    line_rates = rate_column(RATES)[sweep.columns.rates[lines.lines]]
    columns = FabricColumns(
        names=joined.names,
        nodes=[device.node for device in joined.devices],
        kinds=np.array([KIND_CODES[device.kind] for device in joined.devices], np.uint8),
        **port_columns(table)._asdict(),
        links=_pair_links(far_ports, line_rates, table.size),
        has_shared_image=_find_images(sweep, joined, hosts, lines.device_of_node),
    )
    rows = LazyRows(len(joined.devices), _SweepRows(sweep, joined, ports, added).devices)
    return assemble_fabric(columns, rows, table, sort_findings(joined.findings))


def _find_images(
    sweep: SweepColumns, joined: JoinedSweep, hosts: ReportedHosts, device_of_node: Index
) -> Flags:
    """Return one flag per device: whether another device has the same system image GUID."""
    has_image = np.flatnonzero(sweep.columns.images != NO_GUID)
    swept = [hash(f"{image:016x}") for image in sweep.columns.images[has_image].tolist()]
    reported = hosts.columns.table.column(attrgetter("images"))
    number_of = {device.node: number for number, device in enumerate(joined.devices)}
    device_of_host = np.array([number_of[node] for node in hosts.nodes()], np.int64)
    images = HashRows(np.array(swept, np.int64), device_of_node[has_image]).with_rows(
        HashRows(reported.hashes, device_of_host[reported.speakers])
    )
    has_shared_image = np.zeros(len(joined.devices), np.bool_)
    shared = np.isin(images.hashes, images.find_repeated())
    has_shared_image[images.speakers[shared]] = True
    return has_shared_image


@dataclass(frozen=True, slots=True)
class _SweepRows:
    """Builds the rows of a fabric from its columns."""

    sweep: SweepColumns
    joined: JoinedSweep
    ports: PortLines
    added: Sequence[AddedPort]

    def devices(self, indices: Sequence[int]) -> Iterator[FabricDevice]:
        for index in indices:
            device = self.joined.devices[index]
            name = self.joined.names[index]
            has_report = device.report is not None
            is_reporting = has_report or bool(device.parts)
            ids = device.sorted_ids()
            yield FabricDevice(name, device.kind, device.node, ids, is_reporting, has_report)

    def port_rows(self, columns: FabricColumns, indices: Sequence[int]) -> Iterator[FabricPort]:
        chosen = np.fromiter(indices, np.intp, len(indices))
        rows = zip(
            self._names(chosen),
            columns.port_devices[chosen].tolist(),
            (STATES[code] for code in columns.states[chosen].tolist()),
            columns.rates[chosen].tolist(),
            strict=True,
        )
        for (name, rdma), device, state, bps in rows:
            yield FabricPort(device, name, Medium.INFINIBAND, state, rate_or_none(bps), rdma, None)

    def port_names(self, indices: Sequence[int]) -> Iterator[str]:
        return (name for name, _ in self._names(np.fromiter(indices, np.intp, len(indices))))

    def name_codes(self, ports: Index) -> NameCodes:
        """Return the names of ports as codes; each distinct name is built once."""
        columns, num_lines, labels = self.sweep.columns, len(self.ports.lines), self.joined.labels
        lines = np.where(ports < num_lines, ports, 0)
        nodes, numbers = self.ports.nodes[lines], columns.numbers[self.ports.lines[lines]]
        is_hca, label_codes = columns.letters[nodes] == HCA, labels.codes[nodes]
        # A name has two parts: an RDMA name, a GUID or nothing, and the port number.
        owners = np.where(
            is_hca, np.where(label_codes > 0, label_codes, len(labels.texts) + nodes), 0
        )
        owners = np.where(ports < num_lines, owners, len(labels.texts) + len(self.sweep) + ports)
        _, firsts, codes = np.unique(
            (owners << _HALF) | numbers, return_index=True, return_inverse=True
        )
        made = code_names(name for name, _ in self._names(ports[firsts]))
        return NameCodes(made.codes[codes], made.texts)

    def _names(self, ports: Index) -> Iterator[tuple[str, str | None]]:
        """Yield the name and RDMA device of each port; an added port has no RDMA device."""
        columns, num_lines = self.sweep.columns, len(self.ports.lines)
        lines = np.where(ports < num_lines, ports, 0)
        nodes, numbers = self.ports.nodes[lines], columns.numbers[self.ports.lines[lines]]
        rows = zip(
            ports.tolist(),
            nodes.tolist(),
            numbers.tolist(),
            (columns.letters[nodes] == HCA).tolist(),
            strict=True,
        )
        labels = self.joined.labels
        for port, node, number, is_hca in rows:
            if port >= num_lines:
                yield self.added[port - num_lines].name, None
            elif is_hca:
                label = labels.of(node)
                yield f"{label or f'{columns.guids[node]:016x}'}/{number}", label or None
            else:
                yield str(number), None

    def links(self, columns: LinkColumns, indices: Sequence[int]) -> Iterator[Link]:
        chosen = np.fromiter(indices, np.intp, len(indices))
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
    rows = _SweepRows(sweep, joined, ports, added)
    columns = FabricColumns(
        names=joined.names,
        nodes=[device.node for device in joined.devices],
        kinds=np.array([KIND_CODES[device.kind] for device in joined.devices], np.uint8),
        port_devices=np.append(ports.devices, [port.device for port in added]).astype(np.intp),
        port_names=PortNames(len(far) + num_added, rows.port_names, rows.name_codes),
        media=np.full(len(far) + num_added, MEDIUM_CODES[Medium.INFINIBAND], np.uint8),
        states=np.append(np.where(is_up, up, down), [unknown] * num_added).astype(np.uint8),
        rates=np.append(own_rates, [UNKNOWN_RATE] * num_added).astype(np.int64),
        distances=np.zeros(len(far) + num_added, np.uint8),
        roce_devices=np.zeros(len(far) + num_added, np.int32),
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
    """Return one flag per device: whether another device has the same system image GUID."""
    has_image = sweep.columns.images != NO_GUID
    images, owners = sweep.columns.images[has_image], device_of_node[has_image]
    order = np.lexsort((owners, images))
    images, owners = images[order], owners[order]
    shares = np.flatnonzero((images[1:] == images[:-1]) & (owners[1:] != owners[:-1]))
    has_shared_image = np.zeros(num_devices, np.bool_)
    has_shared_image[owners[shares]] = has_shared_image[owners[shares + 1]] = True
    return has_shared_image


def _pair_links(far_ports: Index, rates: Rates, num_ports: int) -> LinkColumns:
    """Return the links, given the port that each port hears; one-sided if the ends disagree."""
    near_ports = np.arange(len(far_ports))
    reports = (far_ports >= 0) & (far_ports != near_ports)
    reported_by_far = np.full(num_ports, -1, np.intp)
    reported_by_far[: len(far_ports)] = far_ports
    is_mutual = reports & (reported_by_far[far_ports] == near_ports)
    both = np.flatnonzero(is_mutual & (near_ports < far_ports))
    single = np.flatnonzero(reports & ~is_mutual)
    a = np.concatenate((both, np.minimum(single, far_ports[single])))
    b = np.concatenate((far_ports[both], np.maximum(single, far_ports[single])))
    one_sided = np.arange(len(a)) >= len(both)
    is_confirmed = np.zeros(num_ports, np.bool_)
    is_confirmed[: len(far_ports)] = is_mutual
    disputed = np.concatenate((np.zeros(len(both), np.bool_), is_confirmed[far_ports[single]]))
    lower = np.minimum(rates[both], rates[far_ports[both]])
    upper = np.maximum(rates[both], rates[far_ports[both]])
    link_rates = np.concatenate((np.where(lower == UNKNOWN_RATE, upper, lower), rates[single]))
    order = np.lexsort((b, a)) if len(single) else np.arange(len(a))
    return LinkColumns(a[order], b[order], one_sided[order], disputed[order], link_rates[order])
