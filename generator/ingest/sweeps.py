"""From the text of InfiniBand sweeps to claims; loads numpy only for large texts.

A compromised node may report any text as a sweep. `topology.reports.sweep_parts` limits the text of
each sweep, and `sweep_load` limits what all sweeps hold together. The subnet with the fewest lines
is parsed first: the largest sweep is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple

from topology.model.claims import Claim, Origin, SweptClaims
from topology.model.errors import CutInput, ParseError, ReportError, show
from topology.model.facts import ParseResult
from topology.reports.neighbor_report import SweepPart
from topology.reports.sweep_parts import SweepSize, iterate_sweep_text, measure_sweep, unpack_sweep
from topology.sources.ibnetdiscover.cut_sweep import CountOneEnded, find_cut
from topology.sources.ibnetdiscover.parser import FastParser, parse_ibnetdiscover

MAX_SMALL_BYTES: Final = 8 << 20
"""Text of small sweeps that is parsed to objects, which is faster for them: 100 bytes per byte."""
_TAIL_BYTES: Final = 1 << 18
"""The end of a text, in which the last record begins."""
MIN_ARRAY_PARSER_BYTES: Final = 1 << 20
"""From this size on, the faster parser makes up for loading numpy (a tenth of a second)."""


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
    """The claims of one complete sweep."""

    parts: tuple[SweepPart, ...]
    claims: tuple[Claim | SweptClaims, ...]
    errors: tuple[ParseError, ...]
    load: tuple[int, ...] = ()
    """What it holds, a `SweepLoad`; empty if that was not counted."""


def parse_sweep(raw: bytes, *, source: str) -> ParseResult:
    """Return the devices of an ibnetdiscover dump; both readers give the same result.

    The first error of a dump whose end is missing is a `CutInput`.
    """
    parsed = parse_ibnetdiscover(raw, source=source, fast=_choose_reader(len(raw)))
    return _with_cut(parsed, raw, source)


def _with_cut(parsed: ParseResult, text: bytes, source: str) -> ParseResult:
    """Return the result with an error before all others if the end of its text is missing."""
    if not len(parsed.devices):
        return parsed
    count = _choose_counter(parsed)
    cut = find_cut(text, parsed.devices, errors=parsed.errors, count=count, source=source)
    return parsed if cut is None else replace(parsed, errors=(cut, *parsed.errors))


def _choose_counter(parsed: ParseResult) -> CountOneEnded | None:
    if isinstance(parsed.devices, tuple):
        return None
    from topology.sources.ibnetdiscover.columns import SweptDevices  # noqa: PLC0415 - with numpy
    from topology.sources.ibnetdiscover.sweep_load import count_one_ended_rows  # noqa: PLC0415

    devices = parsed.devices
    if not isinstance(devices, SweptDevices):
        return None
    return partial(count_one_ended_rows, devices.sweep)


def _choose_reader(num_bytes: int) -> FastParser | None:
    if num_bytes < MIN_ARRAY_PARSER_BYTES:
        return None
    from topology.sources.ibnetdiscover.chunks import NumpyReader  # noqa: PLC0415 - only if needed

    return NumpyReader()


def build_sweep_claims(parsed: ParseResult) -> list[Claim | SweptClaims]:
    """Return a sweep's devices as claims; those of a large sweep stay packed in one value."""
    if isinstance(parsed.devices, tuple):
        return [Claim(device, Origin.SWEEP) for device in parsed.devices]
    return [SweptClaims(parsed.devices)] if len(parsed.devices) else []


def parse_reported_sweep(
    parts: Sequence[SweepPart], *, source: str, used: Iterable[tuple[int, ...]] | None
) -> tuple[ParseResult, tuple[int, ...]]:
    """Return the devices of a sweep that a node reported, without its text, and their `SweepLoad`.

    The load of a small sweep is empty. A large text is parsed while it is unpacked, so that it is
    never whole in memory.

    Args:
        parts: all parts, checked before by `measure_sweep`.
        source: the name of the sweep in errors.
        used: the loads of the other sweeps; None if all sweeps together are small.

    Raises:
        ReportError: the sweeps hold more than any fabric has.
    """
    if used is None:
        return parse_sweep(unpack_sweep(parts), source=source), ()
    from topology.sources.ibnetdiscover.sweep_load import compute_free_load  # noqa: PLC0415 - with numpy
    from topology.sources.ibnetdiscover.sweep_stream import SweepStream  # noqa: PLC0415 - with numpy

    stream = SweepStream(source, compute_free_load(used))
    tail = b""
    for piece in iterate_sweep_text(parts):
        stream.add(piece)
        tail = (tail + piece)[-_TAIL_BYTES:]
    return _with_cut(stream.finish(), tail, source), stream.load


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
                from topology.sources.ibnetdiscover.sweep_load import (  # noqa: PLC0415 - with numpy
                    check_loads,
                )

                check_loads([*others, last.load])
                self._loads[sweep.subnet] = last.load
            return last
        self._small_bytes += size.num_bytes
        is_small = self._small_bytes < MAX_SMALL_BYTES and size.num_bytes < MIN_ARRAY_PARSER_BYTES
        used = None if is_small else others
        parsed, load = parse_reported_sweep(sweep.parts, source=sweep.title, used=used)
        cut = next((one for one in parsed.errors if isinstance(one, CutInput)), None)
        if cut is not None:
            raise ReportError(cut.problem)
        if load:
            self._loads[sweep.subnet] = load
        return ParsedSweep(sweep.parts, tuple(build_sweep_claims(parsed)), parsed.errors, load)

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
