"""The names of strategies and of the rules for waiting jobs.

Loads only the presets: the options of `toponaut simulate jobs` list the names.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from generator.placement.presets import Preset

FIRST_FIT: Final = "first-fit"
BEST_FIT: Final = "best-fit"
STRATEGY_NAMES: Final = (*(preset.value for preset in Preset), BEST_FIT, FIRST_FIT)


class Backfill(StrEnum):
    """Which waiting jobs may start before the first job of the queue."""

    NONE = "none"
    EASY = "easy"
    """Jobs that do not delay the first one."""
    ANY = "any"
