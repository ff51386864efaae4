"""The reports of hosts beside one sweep as columns: which nodes they are, and which ports.

This holds for hosts whose reports hear no neighbors, as hosts with InfiniBand alone report. No two
of them share an id, and each port line of the sweep is one of their ports, or none. Every other
report is left to `claim_join`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final

import numpy as np

from topology.identity.claim_facts import ClaimFacts, HashRows
from topology.identity.listed_nodes import GuidColumn, ListedNodes
from topology.join.claim_columns import ClaimColumns, ClaimReader
from topology.join.claim_rows import Hashes, PortRows, expand_spans
from topology.join.fabric_rows import mix_keys
from topology.join.neighbor_links import NO_PORT, Numbers
from topology.join.numbered_ports import find_codes
from topology.join.port_table import PortTable, PortTableBuilder, join_tables
from topology.join.sweep_devices import JoinedSweep
from topology.join.swept_nodes import SweptNodes, hash_guids
from topology.join.unmatched_ports import AddedPort, PortLines
from topology.model.claims import Claim
from topology.model.fabric import FabricPort
from topology.model.fabric_columns import STATE_CODES, UNKNOWN_RATE, Index
from topology.model.facts import DeviceKind, Medium, PortState
from topology.model.ids import IdKind
from topology.sources.ibnetdiscover.columns import NO_GUID, SweepColumns

_UNKNOWN: Final = STATE_CODES[PortState.UNKNOWN]


@dataclass(frozen=True, slots=True)
class ReportedHosts:
    """Hosts with one report each; no two of them share an id."""

    columns: ClaimColumns
    """Their claims, sorted by name."""
    keys: HashRows
    """Their strong keys; the speakers are hosts."""
    rows: PortRows

    @property
    def claims(self) -> Sequence[Claim]:
        """The reports."""
        return self.columns.table.claims

    @property
    def facts(self) -> Sequence[ClaimFacts]:
        """What identity needs of each report."""
        return self.columns.table.facts

    def nodes(self) -> list[str]:
        """Return the node of each host."""
        return [facts.node or "" for facts in self.facts]

    def add_to(self, listed: ListedNodes | None, sweep: SweepColumns) -> ListedNodes | None:
        """Return the listed nodes with their reports; without a list, the nodes that report.

        None if a host is not listed, if the list gives an id of a host to another node, or if a
        host has the name of another node. Cost: O(n log n) in GUIDs, 0.5 µs each.
        """
        known = self._as_nodes() if listed is None else _match_reports(listed, self)
        if known is None:
            return None
        numbers, names = known.numbers(), known.name_nodes(())
        for facts, node in zip(self.facts, self.nodes(), strict=True):
            if names.find(facts.name) not in (None, node):
                return None
        owners = np.array([numbers[name] for name in self.nodes()], np.intp)
        keys = HashRows(self.keys.hashes, owners[self.keys.speakers])
        if listed is not None and len(keys.with_rows(_listed_keys(listed)).find_repeated()):
            return None
        node_guids, port_guids = _find_guids(sweep, keys)
        return replace(
            known,
            node_guids=known.node_guids.with_guids(node_guids),
            port_guids=known.port_guids.with_guids(port_guids),
        )

    def _as_nodes(self) -> ListedNodes | None:
        nodes = self.nodes()
        if len(set(nodes)) < len(nodes):
            return None
        nothing = GuidColumn(np.zeros(0, np.uint64), np.zeros(0, np.intp))
        no_claims = (None,) * len(nodes)
        return ListedNodes(nodes, nothing, nothing, no_claims, self.claims)

    def row_hosts(self) -> tuple[Index, Index]:
        """Return all port rows in the order of their hosts, and the host of each."""
        sizes = self.columns.num_rows
        rows = expand_spans(self.columns.first_rows, sizes)
        return rows, np.repeat(np.arange(len(sizes)), sizes)


def read_reported_hosts(claims: Iterable[Claim]) -> ReportedHosts | None:
    """Return the reports of hosts; None if one hears a neighbor, or two share an id.

    Cost: as of `read_claims`; it stops at the first report that hears a neighbor.
    """
    reader = ClaimReader()
    for claim in claims:
        reader.read(claim)
        if reader.rows.num_entries:
            return None
    columns = reader.build()
    every = columns.table.facts
    if not all(map(_is_host, every)) or len({facts.name for facts in every}) < len(every):
        return None
    keys = columns.table.column(attrgetter("keys"))
    if len(keys.find_repeated()):
        return None
    return ReportedHosts(columns, keys, columns.rows.build())


def _is_host(facts: ClaimFacts) -> bool:
    """Return whether a report is of one node, and names its HCAs."""
    is_node = facts.kind is DeviceKind.HOST and len(facts.name_keys) == 1 and facts.has_guid
    return is_node and facts.node is not None and facts.node == facts.node_name


def _match_reports(listed: ListedNodes, hosts: ReportedHosts) -> ListedNodes | None:
    """Return the listed nodes with their reports; None if a host is not listed."""
    numbers = listed.numbers()
    reports: list[Claim | None] = [None] * len(listed.names)
    for name, claim in zip(hosts.nodes(), hosts.claims, strict=True):
        number = numbers.get(name)
        if number is None:
            return None
        reports[number] = claim
    return replace(listed, reports=reports)


def _listed_keys(listed: ListedNodes) -> HashRows:
    """Return the GUIDs and MACs of a list as hashes of their keys."""
    macs = [(mac, owner) for owner, own in enumerate(listed.macs) for mac in own]
    hashes = [
        *hash_guids(IdKind.NODE_GUID, listed.node_guids.guids),
        *hash_guids(IdKind.PORT_GUID, listed.port_guids.guids),
        *(hash((IdKind.MAC, mac)) for mac, _ in macs),
    ]
    owners = np.array([owner for _, owner in macs], np.int64)
    speakers = np.concatenate([listed.node_guids.owners, listed.port_guids.owners, owners])
    return HashRows(np.array(hashes, np.int64), speakers.astype(np.int64))


def _find_guids(sweep: SweepColumns, keys: HashRows) -> tuple[GuidColumn, GuidColumn]:
    """Return the node GUIDs and the port GUIDs of a sweep that hosts report, with the owners."""
    own_guids = sweep.columns.own_guids[sweep.columns.own_guids != NO_GUID]
    order = np.argsort(keys.hashes, kind="stable")
    hashes, owners = keys.hashes[order], keys.speakers[order].astype(np.intp)

    def find(kind: IdKind, guids: np.ndarray) -> GuidColumn:
        wanted = np.array(hash_guids(kind, guids), np.int64)
        places = np.minimum(np.searchsorted(hashes, wanted), max(len(hashes) - 1, 0))
        is_known = hashes[places] == wanted
        return GuidColumn(guids[is_known], owners[places[is_known]])

    return find(IdKind.NODE_GUID, sweep.columns.guids), find(IdKind.PORT_GUID, own_guids)


@dataclass(slots=True)
class ReportedPorts:
    """The ports of the hosts that report and of the sweep, under one numbering."""

    lines: PortLines
    rows: Index
    """By port: the row of the report that describes it, or NO_PORT."""
    renumbered: Index
    """The port of each port that `_number_ports` numbered."""

    def build_table(
        self, hosts: ReportedHosts, swept: SweptNodes, added: Sequence[AddedPort]
    ) -> PortTable:
        """Return all ports: the first claim about a port counts, the other one fills in."""
        num_read, lines = len(hosts.rows.has_name), self.lines.lines
        every = join_tables([hosts.rows.table, swept.table()])
        table = every.select(np.where(self.rows == NO_PORT, num_read + lines, self.rows))
        table = table._replace(devices=self.lines.devices)
        both = np.flatnonzero((self.rows != NO_PORT) & (lines != NO_PORT))
        swept_rows = num_read + lines[both]
        unknown = table.rates[both] == UNKNOWN_RATE
        table.rates[both[unknown]] = every.rates[swept_rows[unknown]]
        unknown = table.states[both] == _UNKNOWN
        table.states[both[unknown]] = every.states[swept_rows[unknown]]
        if not added:
            return table
        builder = PortTableBuilder()
        builder.extend(_added_row(port) for port in added)
        return join_tables([table, builder.build()])


def _added_row(port: AddedPort) -> FabricPort:
    return FabricPort(
        port.device, port.name, Medium.INFINIBAND, PortState.UNKNOWN, None, None, None
    )


def number_reported_ports(
    hosts: ReportedHosts, joined: JoinedSweep, swept: SweptNodes, ports: PortLines
) -> ReportedPorts | None:
    """Return the ports: of each host those of its report, then the other lines of the sweep.

    None if two ports of a host share a key, or a port line names two of them. Cost: O(n log n) in
    ports, 2 µs each.

    Args:
        hosts: those that report.
        joined: the devices.
        swept: the nodes of the sweep.
        ports: the ports of the sweep alone.
    """
    device_of = {device.node: number for number, device in enumerate(joined.devices)}
    host_devices = np.array([device_of[node] for node in hosts.nodes()], np.intp)
    rows, row_hosts = hosts.row_hosts()
    row_devices = host_devices[row_hosts]
    keys = _index_keys(hosts.rows, rows, row_devices)
    is_reported = np.zeros(len(joined.devices), np.bool_)
    is_reported[host_devices] = True
    chosen = np.flatnonzero(is_reported[ports.devices])
    matches = _match_lines(keys, swept, ports, chosen) if keys is not None else None
    if matches is None:
        return None
    row_of_line = np.full(len(ports.lines), NO_PORT, np.intp)
    row_of_line[chosen] = matches
    return _merge_ports(ports, rows, row_devices, row_of_line)


def _merge_ports(
    ports: PortLines, rows: Index, row_devices: Index, row_of_line: Index
) -> ReportedPorts:
    """Return the ports of all devices: the rows of reports, then the lines without a row."""
    alone = np.flatnonzero(row_of_line == NO_PORT)
    devices = np.concatenate([row_devices, ports.devices[alone]])
    order = np.argsort(devices, kind="stable")
    number = np.empty(len(order), np.intp)
    number[order] = np.arange(len(order))
    port_of_row = np.full(int(rows.max(initial=-1)) + 1, NO_PORT, np.intp)
    port_of_row[rows] = number[: len(rows)]
    renumbered = np.empty(len(ports.lines), np.intp)
    renumbered[alone] = number[len(rows) :]
    both = np.flatnonzero(row_of_line != NO_PORT)
    renumbered[both] = port_of_row[row_of_line[both]]
    lines = np.full(len(order), NO_PORT, np.intp)
    lines[renumbered] = ports.lines
    positions = np.full(len(order), NO_PORT, np.intp)
    positions[renumbered] = np.arange(len(renumbered))
    nodes = np.full(len(order), NO_PORT, np.intp)
    nodes[renumbered] = ports.nodes
    port_rows = np.concatenate([rows, np.full(len(alone), NO_PORT, np.intp)])[order]
    merged = PortLines(
        lines, renumbered[ports.number], nodes, devices[order], ports.device_of_node, positions
    )
    return ReportedPorts(merged, port_rows, renumbered)


def _index_keys(
    port_rows: PortRows, rows: Index, row_devices: Index
) -> tuple[Hashes, Numbers] | None:
    """Return the keys of rows, each with its device, ascending; and rows. None if two share one."""
    stops = port_rows.key_stops.astype(np.intp)
    sizes = np.diff(stops, prepend=0)
    keys = port_rows.keys[expand_spans((stops - sizes)[rows], sizes[rows])]
    codes = mix_keys(keys, np.repeat(row_devices, sizes[rows]))
    owners = np.repeat(rows, sizes[rows])
    order = np.lexsort((owners, codes))
    codes, owners = codes[order], owners[order]
    if ((codes[1:] == codes[:-1]) & (owners[1:] != owners[:-1])).any():
        return None
    return codes, owners.astype(np.int32)


def _match_lines(
    keys: tuple[Hashes, Numbers], swept: SweptNodes, ports: PortLines, chosen: Index
) -> Index | None:
    """Return the row of a report that each chosen port line describes, or NO_PORT.

    None if a line describes two rows, two lines describe one, or two lines of a host share a name.
    """
    lines, devices = ports.lines[chosen], ports.devices[chosen]
    found = np.full(len(chosen), NO_PORT, np.intp)
    for hashes, has_key in swept.line_keys(lines):
        if has_key is None and len(np.unique(mix_keys(hashes, devices))) < len(hashes):
            return None
        others = find_codes(keys, hashes, devices)
        is_known = (others != NO_PORT) & (True if has_key is None else has_key)
        if (is_known & (found != NO_PORT) & (found != others)).any():
            return None
        found = np.where(is_known, others, found)
    used = found[found != NO_PORT]
    return found if len(np.unique(used)) == len(used) else None
