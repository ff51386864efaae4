"""A placement by node position, with its objective."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from generator.placement.answer import NO_DETAILS
from generator.placement.problem.objective import Objective


@dataclass(frozen=True, slots=True)
class PlacementCandidate:
    """A placement by node position."""

    positions: tuple[tuple[int, ...], ...]
    """Per group the positions of its placed pods, in index order."""
    objective: Objective
    is_proved: bool
    preset_details: Mapping[str, Any] = field(default_factory=lambda: NO_DETAILS)
    """Details that the preset's own rules computed, as the answer shows them."""
    is_checked: bool = False
    """Whether every rule has been checked on these positions; only the engine's gate sets it."""
