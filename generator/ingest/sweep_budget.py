"""Which reported sweeps are parsed: all of them together fit into the memory of the generator.

A compromised node may report any text as a sweep. `topology.reports.sweep_parts` limits the
text of each sweep, and `sweep_load` limits what all sweeps hold together. The subnet with the
fewest lines is parsed first: the largest sweep is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from generator.ingest.reported_sweep import ParsedSweep, ReportedSweep
from generator.ingest.sweeps import (
    MIN_ARRAY_PARSER_BYTES,
    build_sweep_claims,
    check_load,
    parse_reported_sweep,
)
from topology.model.errors import CutInput, ReportError
from topology.reports.neighbor_report import SweepPart
from topology.reports.sweep_parts import SweepSize, measure_sweep

MAX_SMALL_BYTES: Final = 8 << 20
"""Text of small sweeps that is parsed to objects, which is faster for them: 100 bytes per byte."""


class SweepParser:
    """Parses reported sweeps; an unchanged sweep is not unpacked again, also if it is refused."""

    def __init__(self) -> None:
        """Parse nothing yet."""
        self._sizes: dict[tuple[SweepPart, ...], SweepSize | ReportError] = {}
        self._loads: dict[str, tuple[int, ...]] = {}
        """By subnet, in this round."""
        self._small_bytes = 0

    def start_round(self, sweeps: Iterable[ReportedSweep]) -> None:
        """Start with no load, and forget all sweeps but the given ones."""
        current = {sweep.parts for sweep in sweeps}
        self._sizes = {parts: size for parts, size in self._sizes.items() if parts in current}
        self._loads, self._small_bytes = {}, 0

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
        size = self._measure(sweep)
        others = [load for subnet, load in self._loads.items() if subnet != sweep.subnet]
        if last is not None and last.parts == sweep.parts:
            if last.load:
                check_load([*others, last.load])
                self._loads[sweep.subnet] = last.load
            return last
        self._small_bytes += size.num_bytes
        is_small = self._small_bytes < MAX_SMALL_BYTES and size.num_bytes < MIN_ARRAY_PARSER_BYTES
        used = None if is_small else others
        parsed = parse_reported_sweep(sweep.parts, source=sweep.title, used=used)
        cut = next((one for one in parsed.result.errors if isinstance(one, CutInput)), None)
        if cut is not None:
            raise ReportError(cut.problem)
        if parsed.load:
            self._loads[sweep.subnet] = parsed.load
        claims = tuple(build_sweep_claims(parsed.result))
        return ParsedSweep(sweep.parts, claims, parsed.result.errors, parsed.load)

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
