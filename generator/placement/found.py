"""What a finder hands back: the parts of a placement by position."""

from __future__ import annotations

from dataclasses import dataclass

from generator.placement.problem import PartType


@dataclass(frozen=True, slots=True)
class Found:
    """The best placement of a job in one of several units."""

    parts: list[tuple[PartType, list[int]]]
    """Type and positions of the pods of every part."""
    is_proved: bool
    """Whether nothing better exists there."""
