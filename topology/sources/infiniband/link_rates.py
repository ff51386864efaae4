"""Rates of InfiniBand links: the lanes of a width, and the bits per second of a lane. Pure.

`ibnetdiscover` names a speed; opensm and ibdiagnet print its number or, for two of them, a name.
"""

from __future__ import annotations

from typing import Final

LANES: Final = {"1x": 1, "2x": 2, "4x": 4, "8x": 8, "12x": 12}
_NAMED_BPS: Final = {
    "SDR": 2_500_000_000,
    "DDR": 5_000_000_000,
    "QDR": 10_000_000_000,
    "FDR10": 10_000_000_000,
    "FDR": 14_000_000_000,
    "EDR": 25_000_000_000,
    "HDR": 50_000_000_000,
    "NDR": 100_000_000_000,
    "XDR": 200_000_000_000,
}
LANE_BPS: Final = {
    "2.5": _NAMED_BPS["SDR"],
    "5": _NAMED_BPS["DDR"],
    "10": _NAMED_BPS["QDR"],
    "FDR10": _NAMED_BPS["FDR10"],
    "14": _NAMED_BPS["FDR"],
    "EDR20": 20_000_000_000,
    "25": _NAMED_BPS["EDR"],
    "50": _NAMED_BPS["HDR"],
    "100": _NAMED_BPS["NDR"],
    "200": _NAMED_BPS["XDR"],
}
"""Bits per second of a lane, by the word of opensm or ibdiagnet. Source: opensm's osm_dump.c,
`speed2char` of ibdm's Fabric.h."""
RATES_BPS: Final = {
    f"{width}{speed}": LANES[width] * lane
    for width in ("4x", "1x", "2x", "8x", "12x")
    for speed, lane in _NAMED_BPS.items()
}
"""Bits per second of every rate token; of tokens with equal rates, width 4 comes first."""


def derive_rate_bps(width: str, speed: str) -> int | None:
    """Return bits per second of a width and a speed (`4x`, `50`); None if either is unknown."""
    lanes, lane = LANES.get(width), LANE_BPS.get(speed)
    return lanes * lane if lanes and lane else None
