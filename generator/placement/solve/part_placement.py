"""What a finder hands back: the parts of a placement by position."""

from __future__ import annotations

from dataclasses import dataclass

from generator.placement.problem.parts import PlacedPart


@dataclass(frozen=True, slots=True)
class PartPlacement:
    """The best placement of a job in one of several units."""

    parts: list[PlacedPart]
    """Those of sets inside their set."""
    is_proved: bool
    """Whether nothing better exists there."""
