"""The result of a finder: the parts of a placement by position."""

from __future__ import annotations

from dataclasses import dataclass

from generator.placement.problem.request_parts import PlacedPart


@dataclass(frozen=True, slots=True)
class PartPlacement:
    """The best placement of a job in one of several units."""

    parts: list[PlacedPart]
    """Parts of the job; inner parts are inside their set."""
    is_proved: bool
    """Whether no better placement exists in these units."""
