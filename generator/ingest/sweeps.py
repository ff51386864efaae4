"""From the text of an InfiniBand sweep to claims; loads numpy only for large texts."""

from __future__ import annotations

from typing import Final

from topology.model.claims import Claim, Origin, SweptClaims
from topology.model.facts import ParseResult
from topology.sources.ibnetdiscover.parser import parse_ibnetdiscover

MIN_ARRAY_PARSER_BYTES: Final = 1 << 20
"""From this size on, the faster parser makes up for loading numpy (a tenth of a second)."""


def parse_sweep(raw: bytes, *, source: str) -> ParseResult:
    """Return the devices of an ibnetdiscover dump; both readers give the same result."""
    if len(raw) < MIN_ARRAY_PARSER_BYTES:
        return parse_ibnetdiscover(raw, source=source)
    from topology.sources.ibnetdiscover.chunks import NumpyReader  # noqa: PLC0415 - only if needed

    return parse_ibnetdiscover(raw, source=source, fast=NumpyReader())


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
