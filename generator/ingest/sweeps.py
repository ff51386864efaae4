"""From the text of reported InfiniBand sweeps to claims.

A compromised node may report any text as a sweep. `topology.reports.sweep_parts` limits the text of
each sweep, and `sweep_stream` limits what all sweeps hold together. The subnet with the fewest
lines is parsed first: the largest sweep is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

from topology.model.errors import CutInput, ParseError, ReportError, show
from topology.reports.neighbor_report import SweepPart
from topology.reports.sweep_parts import SweepSize, iterate_sweep_text, measure_sweep
from topology.sources.ibnetdiscover.cut_sweep import find_cut
from topology.sources.ibnetdiscover.devices import SweptDevices
from topology.sources.ibnetdiscover.sweep_stream import (
    MAX_LOAD,
    SweepLoad,
    parse_stream,
)


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
