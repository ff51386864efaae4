"""A sweep that a node reports: its parts, and the claims that they are parsed to. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from topology.model.claims import Claim, SweptClaims
from topology.model.errors import ParseError, show
from topology.reports.neighbor_report import SweepPart


@dataclass(frozen=True, slots=True)
class ReportedSweep:
    """The parts of one sweep by one node, perhaps not all of them."""

    node: str
    observed_at: str
    parts: tuple[SweepPart, ...]

    @property
    def subnet(self) -> str:
        """The subnet that the parts claim to be about."""
        return self.parts[0].subnet

    @property
    def sweep_id(self) -> str:
        """The hash of the sweep, as the parts state it."""
        return self.parts[0].sweep_id

    @property
    def is_complete(self) -> bool:
        """Whether every part is there; the parts may still be damaged."""
        return sorted(part.part for part in self.parts) == list(range(self.parts[0].of))

    @property
    def title(self) -> str:
        """The name for messages."""
        return show(f"{self.node}.sweep.* of subnet {self.subnet}")


class ParsedSweep(NamedTuple):
    """The claims of one complete sweep."""

    parts: tuple[SweepPart, ...]
    claims: tuple[Claim | SweptClaims, ...]
    errors: tuple[ParseError, ...]
    load: tuple[int, ...] = ()
    """What it holds, a `SweepLoad`; empty if that was not counted."""


ParseSweep = Callable[[ReportedSweep, ParsedSweep | None], ParsedSweep]
"""Parses a sweep, or returns the last result if the parts are unchanged. Raises ReportError."""
