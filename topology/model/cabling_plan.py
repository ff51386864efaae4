"""A cabling plan: which port should be wired to which. `sources.cabling` has the file formats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from topology.model.errors import ParseError, show
from topology.model.facts import PortName

JSON_FORM: Final = "netbox-json"
"""The only form whose cables have numbers instead of lines."""


class PlannedCable(NamedTuple):
    """One cable, spelled as in its plan. The order of its ends has no meaning."""

    device_a: str
    port_a: str
    device_b: str
    port_b: str
    line: int
    """1-based line in the plan; in a JSON document, the number of the cable."""

    @property
    def ends(self) -> tuple[PortName, PortName]:
        """Both ends, spelled as in the plan and unescaped."""
        return PortName(self.device_a, self.port_a), PortName(self.device_b, self.port_b)


@dataclass(frozen=True, slots=True)
class CablingPlan:
    """Every usable cable of a plan, in the plan's order, and one error per unusable cable."""

    cables: tuple[PlannedCable, ...] = ()
    errors: tuple[ParseError, ...] = ()
    form: str = ""
    """`csv`, `netbox-csv`, `netbox-json`, `dot`, `ibdm`, or empty if the form is unknown."""
    source: str = ""
    """Where the plan comes from, such as a file name."""


def cable_error(cable: PlannedCable, problem: str, *, form: str, source: str) -> ParseError:
    """Return the error of an unusable cable, with its line, or with its number in JSON."""
    is_numbered = form == JSON_FORM
    return ParseError(
        f"cable {cable.line}: {problem}" if is_numbered else problem,
        source=source,
        line=None if is_numbered else cable.line,
        excerpt=show_cable(*cable.ends),
    )


def show_end(end: PortName) -> str:
    """Return an end as `DEVICE port PORT`, safe to print; without a port, only the device."""
    return f"{show(end.device)} port {show(end.port)}" if end.port else show(end.device)


def show_cable(a: PortName, b: PortName) -> str:
    """Return both ends of a cable, safe to print."""
    return f"{show_end(a)} and {show_end(b)}"
