"""Sweeps of InfiniBand subnets to facts, with numpy where the text is large enough to pay."""

from __future__ import annotations

from typing import Final

from topology.facts import Parsed
from topology.sources.ibnetdiscover import parse_ibnetdiscover

FAST_BYTES: Final = 1 << 20
"""From here on loading numpy (a tenth of a second) is won back."""


def parse_sweep(raw: bytes, *, source: str) -> Parsed:
    """Return the devices of an ibnetdiscover dump; the same by either reader."""
    if len(raw) < FAST_BYTES:
        return parse_ibnetdiscover(raw, source=source)
    from topology.sources.ibnetdiscover_pieces import NumpyReader  # noqa: PLC0415 - only if needed

    return parse_ibnetdiscover(raw, source=source, fast=NumpyReader())
