"""From the text of an InfiniBand sweep to claims; loads numpy only for large texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from topology.model.claims import Claim, Origin, SweptClaims
from topology.model.facts import ParseResult
from topology.reports.neighbor_report import SweepPart
from topology.reports.sweep_parts import iterate_sweep_text, unpack_sweep
from topology.sources.ibnetdiscover.cut_sweep import CountOneEnded, find_cut
from topology.sources.ibnetdiscover.parser import FastParser, parse_ibnetdiscover

_TAIL_BYTES: Final = 1 << 18
"""The end of a text, in which the last record begins."""
MIN_ARRAY_PARSER_BYTES: Final = 1 << 20
"""From this size on, the faster parser makes up for loading numpy (a tenth of a second)."""


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


def check_load(loads: Iterable[tuple[int, ...]]) -> None:
    """Refuse sweeps that hold together more than any fabric has.

    Raises:
        ReportError: they do, and of what.
    """
    from topology.sources.ibnetdiscover.sweep_load import check_loads  # noqa: PLC0415 - with numpy

    check_loads(loads)


class StreamedSweep(NamedTuple):
    """The devices of a reported sweep."""

    result: ParseResult
    load: tuple[int, ...]
    """A `SweepLoad`; empty if the sweep was too small to count it."""


def parse_reported_sweep(
    parts: Sequence[SweepPart], *, source: str, used: Iterable[tuple[int, ...]] | None
) -> StreamedSweep:
    """Return the devices of a sweep that a node reported; they do not keep its text.

    A large text is parsed while it is unpacked, so that it is never whole in memory.

    Args:
        parts: all parts, checked before by `measure_sweep`.
        source: the name of the sweep in errors.
        used: the loads of the other sweeps; None if all sweeps together are small.

    Raises:
        ReportError: the sweeps hold more than any fabric has.
    """
    if used is None:
        return StreamedSweep(parse_sweep(unpack_sweep(parts), source=source), ())
    from topology.sources.ibnetdiscover.sweep_load import compute_free_load  # noqa: PLC0415 - with numpy
    from topology.sources.ibnetdiscover.sweep_stream import SweepStream  # noqa: PLC0415 - with numpy

    stream = SweepStream(source, compute_free_load(used))
    tail = b""
    for piece in iterate_sweep_text(parts):
        stream.add(piece)
        tail = (tail + piece)[-_TAIL_BYTES:]
    return StreamedSweep(_with_cut(stream.finish(), tail, source), stream.load)
