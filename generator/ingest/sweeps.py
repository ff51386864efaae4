"""From the text of an InfiniBand sweep to claims; loads numpy only for large texts."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from topology.model.claims import Claim, Origin, SweptClaims
from topology.model.facts import ParseResult
from topology.sources.ibnetdiscover.cut_sweep import CountOneEnded, find_cut
from topology.sources.ibnetdiscover.parser import FastParser, parse_ibnetdiscover

MIN_ARRAY_PARSER_BYTES: Final = 1 << 20
"""From this size on, the faster parser makes up for loading numpy (a tenth of a second)."""


def parse_sweep(raw: bytes, *, source: str) -> ParseResult:
    """Return the devices of an ibnetdiscover dump; both readers give the same result.

    The first error of a dump whose end is missing is a `CutInput`.
    """
    parsed = parse_ibnetdiscover(raw, source=source, fast=_choose_reader(len(raw)))
    if not len(parsed.devices):
        return parsed
    count = _choose_counter(parsed)
    cut = find_cut(raw, parsed.devices, errors=parsed.errors, count=count, source=source)
    return parsed if cut is None else replace(parsed, errors=(cut, *parsed.errors))


def _choose_counter(parsed: ParseResult) -> CountOneEnded | None:
    if isinstance(parsed.devices, tuple):
        return None
    from topology.sources.ibnetdiscover.lazy_devices import SweptDevices  # noqa: PLC0415 - with numpy
    from topology.sources.ibnetdiscover.one_ended_rows import count_one_ended_rows  # noqa: PLC0415

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


def build_detached_claims(parsed: ParseResult) -> list[Claim | SweptClaims]:
    """Return a sweep's devices as claims that do not keep the text of the dump in memory."""
    if isinstance(parsed.devices, tuple):
        return build_sweep_claims(parsed)
    from topology.sources.ibnetdiscover.lazy_devices import SweptDevices  # noqa: PLC0415 - with numpy

    devices = parsed.devices
    detached = devices.without_dump() if isinstance(devices, SweptDevices) else devices
    return build_sweep_claims(ParseResult(detached))
