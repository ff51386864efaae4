"""Sweeps of InfiniBand subnets to facts, with numpy where the text is large enough to pay."""

from __future__ import annotations

from typing import Final

from topology.model.claims import Claim, Origin, SweptClaims
from topology.model.facts import ParseResult
from topology.sources.ibnetdiscover.parser import parse_ibnetdiscover

MIN_ARRAY_PARSER_BYTES: Final = 1 << 20
"""From here on loading numpy (a tenth of a second) is won back."""


def parse_sweep(raw: bytes, *, source: str) -> ParseResult:
    """Return the devices of an ibnetdiscover dump; the same by either reader."""
    if len(raw) < MIN_ARRAY_PARSER_BYTES:
        return parse_ibnetdiscover(raw, source=source)
    from topology.sources.ibnetdiscover.chunks import NumpyReader  # noqa: PLC0415 - only if needed

    return parse_ibnetdiscover(raw, source=source, fast=NumpyReader())


def build_sweep_claims(parsed: ParseResult) -> list[Claim | SweptClaims]:
    """Return a sweep's devices as claims; those of a large one stay together, as they were read."""
    if isinstance(parsed.devices, tuple):
        return [Claim(device, Origin.SWEEP) for device in parsed.devices]
    return [SweptClaims(parsed.devices)] if len(parsed.devices) else []


def build_detached_claims(parsed: ParseResult) -> list[Claim | SweptClaims]:
    """Return a sweep's devices as claims that stay: without the text that they were read from."""
    if isinstance(parsed.devices, tuple):
        return build_sweep_claims(parsed)
    from topology.sources.ibnetdiscover.lazy_devices import SweptDevices  # noqa: PLC0415 - with numpy

    devices = parsed.devices
    kept = devices.without_dump() if isinstance(devices, SweptDevices) else devices
    return build_sweep_claims(ParseResult(kept))
