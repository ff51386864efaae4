"""A sweep from a report, parsed piece by piece, so that its text is never whole in memory.

A compromised node may report any text as a sweep. More than any fabric has is refused before it
takes memory. What costs memory after parsing is counted: devices, port lines, and above all port
lines whose far end does not list the cable, because each of them becomes a finding.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from topology.model.errors import ReportError
from topology.sources.ibnetdiscover.columns import Index, SweepColumns
from topology.sources.ibnetdiscover.devices import SweptDevices
from topology.sources.ibnetdiscover.parser import RowParser
from topology.sources.ibnetdiscover.rows import SWITCH

MAX_CABLES: Final = 512
"""Cables of one device: InfiniBand numbers the ports of a switch from 1 to 254."""
_PORT_NUMBERS: Final = 1024
_Numbers: TypeAlias = NDArray[Any]


class SweepLoad(NamedTuple):
    """What a sweep holds, or the most that sweeps may hold."""

    devices: int = 0
    switches: int = 0
    rows: int = 0
    """Port lines."""
    unconfirmed_rows: int = 0
    """Port lines whose far end does not list the cable."""
    texts: int = 0
    """Different descriptions."""
    text_bytes: int = 0
    unusual_lines: int = 0
    """Lines that are read one by one, such as the rows of -p: 0.2 KB and 8 µs each."""

    def minus(self, used: SweepLoad) -> SweepLoad:
        """Return the rest of a limit after another load."""
        return SweepLoad(*(limit - part for limit, part in zip(self, used, strict=True)))

    def check(self, limit: SweepLoad) -> None:
        """Refuse a load above a limit.

        Raises:
            ReportError: the load is above the limit; the message names the first such field.
        """
        for name, number, allowed in zip(self._fields, self, limit, strict=True):
            if number > allowed:
                what = name.replace("_", " ")
                raise ReportError(f"sweep refused: the sweeps hold more than {allowed} {what}")


MAX_LOAD: Final = SweepLoad(
    devices=262_144,
    switches=65_536,
    rows=2_000_000,
    unconfirmed_rows=200_000,
    texts=600_000,
    text_bytes=48 << 20,
    unusual_lines=200_000,
)
"""The most that the sweeps of all subnets hold together. 200,000 HCAs in a rail fabric have 24,000
switches and 1.5 million port lines, and with a tenth of the answers lost 150,000 unconfirmed ones.
Each device has one description of at most 64 bytes on the wire."""


def count_unconfirmed(sweep: SweepColumns) -> int:
    """Return the number of port lines whose far end does not list the cable.

    Cost: O(rows log rows), about 0.3 µs each.

    Raises:
        ReportError: more cables end at one device than a device has ports.
    """
    columns = sweep.columns
    if not len(columns.peers):
        return 0
    far_nodes = _find(columns.guids, columns.peers)
    is_known = far_nodes >= 0
    _check_cables(columns.peers[columns.peer_letters != 0])
    near = _number_ports(sweep.row_nodes(), columns.numbers)
    far = _number_ports(far_nodes, columns.far_numbers)
    rows = _find(near, np.where(is_known, far, -1))
    is_confirmed = is_known & (rows >= 0)
    is_confirmed[is_confirmed] = far[rows[is_confirmed]] == near[is_confirmed]
    return int((columns.peer_letters != 0).sum() - is_confirmed.sum())


def _check_cables(peers: _Numbers) -> None:
    if len(peers) <= MAX_CABLES:
        return
    ordered = np.sort(peers)
    if (ordered[MAX_CABLES:] == ordered[:-MAX_CABLES]).any():
        raise ReportError(f"sweep refused: more than {MAX_CABLES} cables end at one device")


def _number_ports(nodes: Index, ports: _Numbers) -> Index:
    """Return one number per port, unique in the sweep."""
    return nodes.astype(np.int64) * _PORT_NUMBERS + ports


def _find(ordered: _Numbers, wanted: _Numbers) -> Index:
    """Return the place of each wanted number in an ordered array, -1 if it is not there."""
    places = np.searchsorted(ordered, wanted)
    places[places == len(ordered)] = 0
    return np.where(ordered[places] == wanted, places, -1)


class StreamedSweep(NamedTuple):
    """A sweep that was parsed piece by piece."""

    devices: SweptDevices
    parser: RowParser
    load: SweepLoad


def parse_stream(
    pieces: Iterable[bytes], *, source: str, limit: SweepLoad = MAX_LOAD
) -> StreamedSweep:
    """Return a sweep, given the pieces of its text; after each piece, what it holds is checked.

    Args:
        pieces: each ends with a line.
        source: the name of the sweep in errors.
        limit: the most that the sweep may hold.

    Raises:
        ReportError: the sweep holds more than is allowed.
    """
    parser, load = RowParser(source), SweepLoad()
    rows = parser.rows
    for piece in pieces:
        parser.read(piece)
        new_texts = islice(reversed(rows.descriptions), len(rows.descriptions) - load.texts)
        load = SweepLoad(
            devices=len(rows.guids),
            switches=load.switches + rows.letters[load.devices :].count(SWITCH),
            rows=len(rows.nodes),
            texts=len(rows.descriptions),
            text_bytes=load.text_bytes + sum(map(len, new_texts)),
            unusual_lines=parser.num_unusual,
        )
        load.check(limit)
    parser.close()
    sweep = SweepColumns.sort(rows)
    load = load._replace(unconfirmed_rows=count_unconfirmed(sweep))
    load.check(limit)
    return StreamedSweep(SweptDevices(sweep), parser, load)
