"""A placement by position, with what it is worth."""

from __future__ import annotations

from dataclasses import dataclass

from generator.placement.objective import Objective


@dataclass(frozen=True, slots=True)
class Solution:
    """A placement by position."""

    pods: tuple[tuple[int, ...], ...]
    """Per group the positions of its placed pods, in index order."""
    objective: Objective
    is_proved: bool
