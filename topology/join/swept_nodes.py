"""The nodes of one sweep as the rows of claims, straight from its columns.

A node is a claim, a port line is a port, and a peer is a neighbor entry. No device is built: ids
become the hashes of their keys, and both ends of a cable find each other by node and port number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topology.identity.claim_facts import ClaimFacts
from topology.join.port_rows import PortTable
from topology.model.claims import SweptClaim
from topology.model.errors import show
from topology.model.fabric import (
    MEDIUM_CODES,
    STATE_CODES,
    Flags,
    Index,
    Numbers,
    rate_column,
)
from topology.model.facts import DeviceKind, Medium, PortState
from topology.model.ids import IdKind
from topology.sources.ibnetdiscover.columns import SweepColumns
from topology.sources.ibnetdiscover.devices import SweptDevices
from topology.sources.ibnetdiscover.rows import HCA, NO_GUID, RATES, ROUTER, SWITCH
from topology.sources.infiniband.node_names import host_name

NO_NODE: Final = -1
_KINDS: Final = {SWITCH: DeviceKind.SWITCH, ROUTER: DeviceKind.ROUTER, HCA: DeviceKind.HOST}
_PEER_LETTERS: Final = (NO_GUID, SWITCH, HCA, ROUTER)
_ODD: Final = np.uint64((hash("a key of this process") | 1) & ((1 << 64) - 1))
"""Differs from process to process, so that nobody can choose rows that collide."""
_RATES: Final = rate_column(RATES)
"""By rate code: the rate as columns hold it."""
_NAME_BITS: Final = 16
"""Bits for a port number in the code of a port name."""


@dataclass(frozen=True, slots=True)
class HcaLabels:
    """The RDMA names of CAs, such as mlx5_0."""

    codes: Index
    """By node: the index of its RDMA name in `texts`; 0 if it has none."""
    texts: Sequence[str]
    """Distinct names; the first is empty."""

    def of(self, node: int) -> str:
        """Return the RDMA name of a node; empty if it has none."""
        return self.texts[self.codes.item(node)]


class FarLine(NamedTuple):
    """The far end of a port line."""

    node: Index
    """NO_NODE if the peer has no record."""
    line: Index
    """NO_NODE if the peer's record has no line for the port."""


@dataclass(slots=True)
class SweptNodes:
    """The claims of one sweep whose nodes and ports have unique GUIDs."""

    devices: SweptDevices
    names: Sequence[str]
    """Per node, the name of its device."""
    labels: HcaLabels
    facts: list[ClaimFacts]
    """Per node."""
    line_nodes: Numbers
    """Per port line, its node."""

    @property
    def sweep(self) -> SweepColumns:
        """The columns of the sweep."""
        return self.devices.sweep

    def claims(self) -> Iterator[SweptClaim]:
        """Yield one claim per node."""
        return map(SweptClaim, repeat(self.devices), range(len(self.names)), self.names)

    def has_peer(self) -> Flags:
        """Return one flag per port line: whether the port hears a peer."""
        hears: Flags = self.sweep.columns.peer_letters != NO_GUID
        return hears

    def find_far_lines(self) -> FarLine:
        """Return the node and the port line that each port line hears."""
        sweep, columns = self.sweep, self.sweep.columns
        nodes = np.minimum(np.searchsorted(columns.guids, columns.peers), len(columns.guids) - 1)
        is_known = self.has_peer() & (columns.guids[nodes] == columns.peers)
        starts, sizes = sweep.row_starts[nodes], columns.num_rows[nodes]
        numbers = columns.far_numbers.astype(np.intp)
        first = columns.numbers[np.minimum(starts, max(len(columns.numbers) - 1, 0))]
        lines = starts + numbers - first  # right if the port numbers of the node have no gap
        has_line = (lines >= starts) & (lines < starts + sizes) & is_known
        lines[~has_line] = 0
        if len(lines):
            has_line &= columns.numbers[lines] == numbers
        gaps = np.flatnonzero(~has_line & is_known & (sizes > 0))
        if len(gaps):
            lines[gaps], has_line[gaps] = self._search_lines(nodes[gaps], numbers[gaps])
        return FarLine(np.where(is_known, nodes, NO_NODE), np.where(has_line, lines, NO_NODE))

    def _search_lines(self, nodes: Index, numbers: Index) -> tuple[Index, Flags]:
        """Return the line of each port, given by node and number, and whether the line exists."""
        keys = (self.line_nodes.astype(np.intp) << 16) | self.sweep.columns.numbers
        wanted = (nodes << 16) | numbers
        positions = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return positions, keys[positions] == wanted

    def table(self) -> PortTable:
        """Return the ports of all port lines; their devices are nodes."""
        columns, num = self.sweep.columns, len(self.sweep.columns.numbers)
        nodes = self.line_nodes
        is_hca, label_codes = columns.letters[nodes] == HCA, self.labels.codes[nodes]
        codes = self._name_codes(nodes, slice(None))
        _, firsts, names = np.unique(codes, return_index=True, return_inverse=True)
        ends = zip(firsts.tolist(), nodes[firsts].tolist(), strict=True)
        texts = [show(self.port_name(line, node)) for line, node in ends]
        rdma_texts = list(self.labels.texts[1:])
        is_up = self.has_peer()
        return PortTable(
            devices=nodes.astype(np.intp),
            names=(names + 1).astype(np.int32),
            media=np.full(num, MEDIUM_CODES[Medium.INFINIBAND], np.uint8),
            states=np.where(is_up, STATE_CODES[PortState.UP], STATE_CODES[PortState.DOWN]).astype(
                np.uint8
            ),
            rates=_RATES[columns.rates],
            rdma=np.where(is_hca & (label_codes > 0), len(texts) + label_codes, 0).astype(np.int32),
            distances=np.zeros(num, np.uint8),
            firmware_lldp=np.zeros(num, np.uint8),
            subnets=np.zeros(num, np.int32),
            texts=(*texts, *rdma_texts),
        )

    def port_name(self, line: int, node: int) -> str:
        """Return the name of the port of a port line."""
        columns = self.sweep.columns
        number = columns.numbers.item(line)
        if columns.letters[node] != HCA:
            return str(number)
        return f"{self.labels.of(node) or self.guid(node)}/{number}"

    def name_hashes(self, lines: Numbers) -> NDArray[np.int64]:
        """Return the hash of each port's name as a key; each distinct name is hashed once."""
        nodes = self.line_nodes[lines]
        _, firsts, names = np.unique(
            self._name_codes(nodes, lines), return_index=True, return_inverse=True
        )
        ends = zip(lines[firsts].tolist(), nodes[firsts].tolist(), strict=True)
        hashes = [hash(("name", self.port_name(line, node))) for line, node in ends]
        return np.array(hashes, np.int64)[names]

    def _name_codes(self, nodes: Index | Numbers, lines: Numbers | slice) -> NDArray[np.int64]:
        """Return a number for each port name, which has a prefix and a port number.

        The prefix is an RDMA name, a GUID or nothing.
        """
        columns, labels = self.sweep.columns, self.labels
        label_codes = labels.codes[nodes]
        prefixes = np.where(label_codes > 0, label_codes, len(labels.texts) + nodes)
        prefixes = np.where(columns.letters[nodes] == HCA, prefixes, 0)
        codes: NDArray[np.int64] = (prefixes << _NAME_BITS) | columns.numbers[lines]
        return codes

    def line_keys(self, lines: Numbers) -> Iterator[tuple[NDArray[np.int64], Flags | None]]:
        """Yield, for each kind of key, the hash of every line, and flags of the lines with a key.

        The flags are None if all lines have a key of the kind.
        """
        columns, nodes = self.sweep.columns, self.line_nodes[lines]
        numbers, own_guids = columns.numbers[lines].tolist(), columns.own_guids[lines]
        pairs = zip(columns.guids[nodes].tolist(), numbers, strict=True)
        guids = [hash(("guid", f"{guid:016x}/{port}")) for guid, port in pairs]
        yield np.array(guids, np.int64), None
        port_guids = [hash((IdKind.PORT_GUID, f"{guid:016x}")) for guid in own_guids.tolist()]
        yield np.array(port_guids, np.int64), own_guids != NO_GUID
        yield self.name_hashes(lines), None

    def guid(self, node: int) -> str:
        """Return the GUID of a node as text."""
        return f"{self.sweep.columns.guids.item(node):016x}"

    def own_keys(self, node: int) -> list[list[int]]:
        """Return the hashes of the keys of each port of a node, strongest first."""
        columns, guid = self.sweep.columns, self.guid(node)
        prefix = f"{self.labels.of(node) or guid}/" if columns.letters[node] == HCA else ""
        stop = self.sweep.row_stops.item(node)
        lines = slice(stop - columns.num_rows.item(node), stop)
        ends = zip(columns.numbers[lines].tolist(), columns.own_guids[lines].tolist(), strict=True)
        return [_port_keys((guid, number), own, f"{prefix}{number}") for number, own in ends]

    def digests(self) -> NDArray[np.uint64]:
        """Return a number per node that depends on all that its claim contains."""
        columns = self.sweep.columns
        hashes = np.array(list(map(hash, self.sweep.texts)), np.int64).view(np.uint64)
        lines = _mix(
            columns.numbers,
            columns.own_guids,
            columns.peer_letters,
            columns.peers,
            columns.far_numbers,
            columns.far_guids,
            columns.rates,
            hashes[columns.peer_texts],
            self.find_far_lines().node != NO_NODE,
        )
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(lines, dtype=np.uint64)])
        return _mix(
            columns.letters,
            columns.guids,
            columns.images,
            self.sweep.aggregation,
            hashes[columns.texts],
            columns.num_rows,
            sums[self.sweep.row_stops] - sums[self.sweep.row_starts],
        )

    def far_keys(self, line: int) -> list[int]:
        """Return the hashes of the keys of the port that a port line hears, strongest first."""
        columns = self.sweep.columns
        guid, number = f"{columns.peers.item(line):016x}", columns.far_numbers.item(line)
        name = str(number)
        if columns.peer_letters[line] == HCA:
            text = self.sweep.texts[columns.peer_texts.item(line)]
            name = f"{host_name(text)[1] or guid}/{number}"
        return _port_keys((guid, number), columns.far_guids.item(line), name)


def read_swept_nodes(devices: SweptDevices) -> SweptNodes | None:
    """Return the nodes of a sweep; None if GUIDs are not unique or a node type is unknown.

    Cost: O(nodes log nodes), 4 µs each.
    """
    sweep = devices.sweep
    if not _is_plain(sweep) or not np.isin(sweep.columns.peer_letters, _PEER_LETTERS).all():
        return None
    names, rdma_names = devices.described
    distinct = {"": 0}
    codes = [distinct.setdefault(name, len(distinct)) for name in rdma_names]
    labels = HcaLabels(np.array(codes, np.intp), list(distinct))
    facts = list(_read_facts(sweep, names, labels))
    return SweptNodes(devices, names, labels, facts, sweep.row_nodes().astype(np.int32))


def _is_plain(sweep: SweepColumns) -> bool:
    """Return whether every node is of a known type, and no two nodes or ports share a GUID."""
    columns = sweep.columns
    sorted_guids = np.sort(columns.own_guids[columns.own_guids != NO_GUID])
    is_whole = np.isin(columns.letters, (SWITCH, HCA, ROUTER)).all()
    is_unique = (columns.guids[1:] > columns.guids[:-1]).all()
    return bool(is_whole and is_unique and (sorted_guids[1:] > sorted_guids[:-1]).all())


def _read_facts(
    sweep: SweepColumns, names: Sequence[str], labels: HcaLabels
) -> Iterator[ClaimFacts]:
    columns = sweep.columns
    guids = [f"{guid:016x}" for guid in columns.guids.tolist()]
    node_keys = [hash((IdKind.NODE_GUID, guid)) for guid in guids]
    letters = columns.letters.tolist()
    kinds = [_KINDS[letter] for letter in letters]
    for node in np.flatnonzero(sweep.aggregation).tolist():
        kinds[node] = DeviceKind.AGGREGATION
    images = {
        image: (hash(f"{image:016x}"),) if image != NO_GUID else ()
        for image in set(columns.images.tolist())
    }
    own_images = [images[image] for image in columns.images.tolist()]
    rows = zip(  # in the order of the fields of ClaimFacts
        kinds,
        names,
        repeat(None),
        repeat(None),
        _claim_keys(sweep, node_keys),
        repeat(()),
        zip(node_keys),  # a tuple of one key each
        _first_labels(sweep, guids, labels),
        repeat(()),
        [1 + len(own) for own in own_images],
        own_images,
        repeat(object=True),
        repeat(object=False),
        repeat(object=False),
    )
    return map(ClaimFacts._make, rows)


def _first_labels(
    sweep: SweepColumns, guids: Sequence[str], labels: HcaLabels
) -> Iterator[str | None]:
    """Yield the RDMA device of each node's first port, or the port's name; None without a port."""
    columns = sweep.columns
    has_port = columns.num_rows > 0
    numbers = np.zeros(len(guids), np.intp)
    numbers[has_port] = columns.numbers[sweep.row_starts[has_port]]
    rows = zip(
        (columns.letters == HCA).tolist(),
        labels.codes.tolist(),
        guids,
        numbers.tolist(),
        has_port.tolist(),
        strict=True,
    )
    for is_hca, code, guid, number, has_first in rows:
        if not has_first:
            yield None
        elif is_hca:
            yield labels.texts[code] if code else f"{guid}/{number}"
        else:
            yield str(number)


def _claim_keys(sweep: SweepColumns, node_keys: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the hashes of the strong keys of each node: of its GUID, then of its port GUIDs."""
    own_guids = sweep.columns.own_guids
    lines = np.flatnonzero(own_guids != NO_GUID)
    port_keys = [hash((IdKind.PORT_GUID, f"{guid:016x}")) for guid in own_guids[lines].tolist()]
    firsts = np.searchsorted(lines, sweep.row_starts).tolist()
    stops = np.searchsorted(lines, sweep.row_stops).tolist()
    for key, first, stop in zip(node_keys, firsts, stops, strict=True):
        yield (key, *port_keys[first:stop])


def _mix(*columns: NDArray[Any]) -> NDArray[np.uint64]:
    """Return a 64-bit hash of the entries of each row."""
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        mixed = (mixed ^ column.astype(np.uint64)) * _ODD
        mixed ^= mixed >> np.uint64(29)
    return mixed * _ODD


def _port_keys(end: tuple[str, int], guid: int, name: str) -> list[int]:
    keys = [hash(("guid", f"{end[0]}/{end[1]}"))]
    if guid != NO_GUID:
        keys.append(hash((IdKind.PORT_GUID, f"{guid:016x}")))
    keys.append(hash(("name", name)))
    return keys
