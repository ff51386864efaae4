"""Sweeps of InfiniBand subnets to facts, with numpy where the text is large enough to pay."""

from __future__ import annotations

from typing import Final

from topology.model.claims import Claim, Origin, SweptClaims
from topology.model.facts import Parsed
from topology.sources.ibnetdiscover.parser import parse_ibnetdiscover

FAST_BYTES: Final = 1 << 20
"""From here on loading numpy (a tenth of a second) is won back."""


def parse_sweep(raw: bytes, *, source: str) -> Parsed:
    """Return the devices of an ibnetdiscover dump; the same by either reader."""
    if len(raw) < FAST_BYTES:
        return parse_ibnetdiscover(raw, source=source)
    from topology.sources.ibnetdiscover.chunks import NumpyReader  # noqa: PLC0415 - only if needed

    return parse_ibnetdiscover(raw, source=source, fast=NumpyReader())


def claims_of_sweep(parsed: Parsed) -> list[Claim | SweptClaims]:
    """Return a sweep's devices as claims; those of a large one stay together, as they were read."""
    if isinstance(parsed.devices, tuple):
        return [Claim(device, Origin.SWEEP) for device in parsed.devices]
    return [SweptClaims(parsed.devices)] if len(parsed.devices) else []


def kept_claims(parsed: Parsed) -> list[Claim | SweptClaims]:
    """Return a sweep's devices as claims that stay: without the text that they were read from."""
    if isinstance(parsed.devices, tuple):
        return claims_of_sweep(parsed)
    from topology.sources.ibnetdiscover.lazy_devices import SweptDevices  # noqa: PLC0415 - with numpy

    devices = parsed.devices
    kept = devices.without_dump() if isinstance(devices, SweptDevices) else devices
    return claims_of_sweep(Parsed(kept))
