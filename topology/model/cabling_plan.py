"""A cabling plan: which port somebody meant to be wired to which. Formats are in `sources`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from topology.model.errors import ParseError, show
from topology.model.facts import PortName

JSON_FORM: Final = "netbox-json"
"""The one form whose cables have numbers and no lines."""


class PlannedCable(NamedTuple):
    """One cable as its plan spells it; which end is `a` means nothing."""

    device_a: str
    port_a: str
    device_b: str
    port_b: str
    line: int
    """1-based line of the plan; of a JSON document the number of the cable."""

    @property
    def ends(self) -> tuple[PortName, PortName]:
        """Both ends as the plan spells them, unescaped."""
        return PortName(self.device_a, self.port_a), PortName(self.device_b, self.port_b)


@dataclass(frozen=True, slots=True)
class CablingPlan:
    """Every usable cable of a plan, in its order, and an error for each that is not."""

    cables: tuple[PlannedCable, ...] = ()
    errors: tuple[ParseError, ...] = ()
    form: str = ""
    """`csv`, `netbox-csv`, `netbox-json`, `dot`, `ibdm`, or empty where it is none of them."""
    source: str = ""
    """File name or the like."""


def cable_error(cable: PlannedCable, problem: str, *, form: str, source: str) -> ParseError:
    """Return why a cable of a plan cannot count, with its place: a line, or its number in JSON."""
    is_numbered = form == JSON_FORM
    return ParseError(
        f"cable {cable.line}: {problem}" if is_numbered else problem,
        source=source,
        line=None if is_numbered else cable.line,
        excerpt=show_cable(*cable.ends),
    )


def show_end(end: PortName) -> str:
    """Return an end as `DEVICE port PORT`, safe to print."""
    return f"{show(end.device)} port {show(end.port)}"


def show_cable(a: PortName, b: PortName) -> str:
    """Return both ends of a cable, safe to print."""
    return f"{show_end(a)} and {show_end(b)}"
