"""From the text of reported InfiniBand sweeps to claims.

A sweep is parsed piece by piece, so that its text is never whole in memory. A compromised node may
report any text as a sweep. `topology.reports.sweep_parts` limits the text of each sweep. What all
sweeps hold together is limited here: more than any fabric has is refused before it takes memory.
What costs memory after parsing is counted: devices, port lines, and above all port lines whose far
end does not list the cable, because each of them becomes a finding. The subnet with the fewest
lines is parsed first: the largest sweep is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from topology.model.errors import CutInput, ParseError, ReportError, show
from topology.reports.neighbor_report import SweepPart
from topology.reports.sweep_parts import SweepSize, iterate_sweep_text, measure_sweep
from topology.sources.ibnetdiscover.columns import Index, SweepColumns
from topology.sources.ibnetdiscover.cut_sweep import find_cut
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


@dataclass(frozen=True, slots=True)
class ReportedSweep:
    """The parts of one sweep by one node, perhaps not all of them."""

    node: str
    observed_at: str
    parts: tuple[SweepPart, ...]

    @property
    def subnet(self) -> str:
        """The subnet that the parts claim to be about."""
        return self.parts[0].subnet

    @property
    def sweep_id(self) -> str:
        """The hash of the sweep, as the parts state it."""
        return self.parts[0].sweep_id

    @property
    def is_complete(self) -> bool:
        """Whether every part is there; the parts may still be damaged."""
        return sorted(part.part for part in self.parts) == list(range(self.parts[0].of))

    @property
    def title(self) -> str:
        """The name for messages."""
        return show(f"{self.node}.sweep.* of subnet {self.subnet}")


class ParsedSweep(NamedTuple):
    """One complete sweep."""

    parts: tuple[SweepPart, ...]
    devices: SweptDevices
    errors: tuple[ParseError, ...]
    load: SweepLoad


def parse_reported_sweep(
    parts: tuple[SweepPart, ...], *, source: str, limit: SweepLoad = MAX_LOAD
) -> ParsedSweep:
    """Return a sweep that a node reported, without its text.

    The text is parsed while it is unpacked, so that it is never whole in memory.

    Args:
        parts: all parts, checked before by `measure_sweep`.
        source: the name of the sweep in errors.
        limit: the most that the sweep may hold.

    Raises:
        ReportError: the sweep is cut, or the sweeps hold more than any fabric has.
    """
    stream = parse_stream(iterate_sweep_text(parts), source=source, limit=limit)
    cut = find_cut(stream.parser)
    if isinstance(cut, CutInput):
        raise ReportError(cut.problem)
    errors = (*([cut] if cut else ()), *stream.parser.errors)
    return ParsedSweep(parts, stream.devices, errors, stream.load)


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


class SweepParser:
    """Parses reported sweeps; an unchanged sweep is not unpacked again, also if it is refused."""

    def __init__(self) -> None:
        """Parse nothing yet."""
        self._sizes: dict[tuple[SweepPart, ...], SweepSize | ReportError] = {}
        self._loads: dict[str, SweepLoad] = {}
        """By subnet, in this round."""

    def start_round(self, sweeps: Iterable[ReportedSweep]) -> None:
        """Start with no load, and forget all sweeps but the given ones."""
        current = {sweep.parts for sweep in sweeps}
        self._sizes = {parts: size for parts, size in self._sizes.items() if parts in current}
        self._loads = {}

    def weigh(self, sweep: ReportedSweep) -> int:
        """Return the number of lines of a sweep; 0 if it cannot be used."""
        try:
            return self._measure(sweep).num_lines
        except ReportError:
            return 0

    def parse(self, sweep: ReportedSweep, last: ParsedSweep | None) -> ParsedSweep:
        """Return the claims of a sweep; the previous object if its parts are unchanged.

        The sweeps of one subnet may follow each other: they are compared, and one is kept.

        Raises:
            ReportError: the sweep is incomplete, damaged or cut, or this sweep and those of the
                other subnets hold more than any fabric has.
        """
        self._measure(sweep)
        others = (load for subnet, load in self._loads.items() if subnet != sweep.subnet)
        limit = reduce(SweepLoad.minus, others, MAX_LOAD)
        if last is not None and last.parts == sweep.parts:
            last.load.check(limit)
            self._loads[sweep.subnet] = last.load
            return last
        parsed = parse_reported_sweep(sweep.parts, source=sweep.title, limit=limit)
        self._loads[sweep.subnet] = parsed.load
        return parsed

    def _measure(self, sweep: ReportedSweep) -> SweepSize:
        size = self._sizes.get(sweep.parts)
        if size is None:
            try:
                size = measure_sweep(sweep.parts)
            except ReportError as error:
                size = error
            self._sizes[sweep.parts] = size
        if isinstance(size, ReportError):
            raise size.with_traceback(None)
        return size
