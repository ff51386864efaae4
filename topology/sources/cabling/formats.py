"""Cabling plans: detects the form of a plan by its content and returns its cables.

| form | content |
|---|---|
| `csv` | a table with the columns device_a, port_a, device_b, port_b |
| `netbox-csv` | NetBox's cable list, as exported or as the bulk import expects it |
| `netbox-json` | the answer of NetBox's `/api/dcim/cables/` |
| `dot` | `topology.dot` of Cumulus' Prescriptive Topology Manager, a Graphviz graph |
| `ibdm` | the topology file of `ibdiagnet -t` and `ibtopodiff` |

Skips an unusable line with an error. Counts a cable once if it is written twice, as in ibdm, which
lists it at both ends. If a port has two cables in the plan, the first one counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from topology.model.cabling_plan import (
    JSON_FORM,
    CablingPlan,
    PlannedCable,
    cable_error,
    show_cable,
)
from topology.model.errors import ParseError
from topology.sources.cabling.csv_table import detect_table_form, parse_table
from topology.sources.cabling.dot import is_graph, parse_graph
from topology.sources.cabling.ibdm import is_topology_file, parse_topology_file
from topology.sources.cabling.netbox import parse_netbox
from topology.sources.foreign_outputs import explain_output

CableOrError = PlannedCable | ParseError
_End = tuple[str, str]
_MAX_NAME: Final = 255
"""Characters. No system has longer names of devices or ports."""
_EXPECTED: Final = (
    "not a cabling plan: expected a CSV with the columns device_a,port_a,device_b,port_b, a cable "
    "export of NetBox (CSV or JSON), an ibdm topology file or a topology.dot"
)


def parse_cabling(raw: bytes, *, source: str = "") -> CablingPlan:
    """Return the cables of a plan; never raises.

    Cost: O(bytes).
    """
    text = raw.decode("utf-8-sig", "surrogateescape").replace("\r\n", "\n").replace("\r", "\n")
    form, rows = _rows(text)
    accepted = _AcceptedCables()
    errors: list[ParseError] = []
    for row in rows:
        if isinstance(row, ParseError):
            errors.append(_with_source(row, source))
            continue
        problem = accepted.add(row)
        if problem:
            errors.append(cable_error(row, problem, form=form, source=source))
    return CablingPlan(tuple(accepted.cables), tuple(errors), form, source)


def _rows(text: str) -> tuple[str, Iterator[CableOrError]]:
    """Return (form, rows); the form is empty if it is unknown."""
    if text.lstrip().startswith(("{", "[")):
        return JSON_FORM, parse_netbox(text)
    if is_graph(text):
        return "dot", parse_graph(text)
    lines = text.split("\n")
    form = detect_table_form(lines)
    if form:
        return form, parse_table(lines)
    if is_topology_file(lines):
        return "ibdm", parse_topology_file(lines)
    known = explain_output(text)
    problem = ParseError(known) if known else ParseError(_EXPECTED, line=1, excerpt=lines[0])
    return "", iter([problem])


class _AcceptedCables:
    """The usable cables of a plan so far; each distinct name is stored once."""

    def __init__(self) -> None:
        self.cables: list[PlannedCable] = []
        self._cable_by_end: dict[_End, PlannedCable] = {}
        self._names: dict[str, str] = {}

    def add(self, cable: PlannedCable) -> str:
        """Add a cable, or return why it is refused.

        Returns an empty text for an added cable and for a cable that was added before.
        """
        names = cable[:4]
        if not all(names):
            return "a device or port is missing"
        if not all(name.isprintable() and len(name) <= _MAX_NAME for name in names):
            return "a name is not printable or too long"
        ends = [(self._share(end.device.casefold()), self._share(end.port)) for end in cable.ends]
        if ends[0] == ends[1]:
            return "both ends are the same port"
        rivals = [self._cable_by_end.get(end) for end in ends]
        if rivals[0] is not None and rivals[0] is rivals[1]:
            return ""
        for rival in rivals:
            if rival is not None:
                return f"a port already has another cable, between {show_cable(*rival.ends)}"
        device_a, port_a, device_b, port_b = map(self._share, names)
        cable = PlannedCable(device_a, port_a, device_b, port_b, cable.line)
        self.cables.append(cable)
        self._cable_by_end.update(dict.fromkeys(ends, cable))
        return ""

    def _share(self, name: str) -> str:
        return self._names.setdefault(name, name)


def _with_source(problem: ParseError, source: str) -> ParseError:
    return ParseError(problem.problem, source=source, line=problem.line, excerpt=problem.excerpt)
