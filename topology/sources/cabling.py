"""Cabling plans of every form that people keep them in, told apart by their content.

| form | what it is |
|---|---|
| `csv` | a table with the columns device_a, port_a, device_b, port_b |
| `netbox-csv` | NetBox's cable list as exported, or as its bulk import takes it |
| `netbox-json` | the answer of NetBox's `/api/dcim/cables/` |
| `dot` | `topology.dot` of Cumulus' Prescriptive Topology Manager, a Graphviz graph |
| `ibdm` | the topology file of `ibdiagnet -t` and `ibtopodiff` |

A line that cannot be used costs itself. A cable written twice, as ibdm does from both of its
ends, counts once; a port that is given two cables keeps the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from topology.cabling import CablingPlan, PlannedCable
from topology.errors import ParseError
from topology.sources.cabling_csv import is_table, read_table
from topology.sources.cabling_dot import is_graph, read_graph
from topology.sources.cabling_ibdm import is_topology_file, read_topology_file
from topology.sources.cabling_netbox import read_netbox

Row = PlannedCable | ParseError
_MAX_NAME: Final = 255
"""Characters; no system has longer names of devices or ports."""
_EXPECTED: Final = (
    "no cabling plan: expected a CSV with the columns device_a,port_a,device_b,port_b, a cable "
    "export of NetBox (CSV or JSON), an ibdm topology file or a topology.dot"
)


def parse_cabling(raw: bytes, *, source: str = "") -> CablingPlan:
    """Return the cables of a plan; never raises.

    Cost: O(bytes).
    """
    text = raw.decode("utf-8-sig", "surrogateescape").replace("\r\n", "\n").replace("\r", "\n")
    form, rows = _rows(text)
    cables: dict[frozenset[tuple[str, str]], PlannedCable] = {}
    taken: dict[tuple[str, str], PlannedCable] = {}
    errors: list[ParseError] = []
    for row in rows:
        problem = row if isinstance(row, ParseError) else _problem(row, cables, taken)
        if problem is not None:
            errors.append(_located(problem, source))
    return CablingPlan(tuple(cables.values()), tuple(errors), form)


def _rows(text: str) -> tuple[str, Iterator[Row]]:
    """Return (form, its rows); the form is empty where it is none that we know."""
    if text.lstrip().startswith(("{", "[")):
        return "netbox-json", read_netbox(text)
    if is_graph(text):
        return "dot", read_graph(text)
    lines = text.split("\n")
    form = is_table(lines)
    if form:
        return form, read_table(lines)
    if is_topology_file(lines):
        return "ibdm", read_topology_file(lines)
    return "", iter([ParseError(_EXPECTED, line=1, excerpt=lines[0])])


def _problem(
    cable: PlannedCable,
    cables: dict[frozenset[tuple[str, str]], PlannedCable],
    taken: dict[tuple[str, str], PlannedCable],
) -> ParseError | None:
    """Take in a cable, or return why it cannot count."""
    names = cable[:4]
    if not all(names):
        return ParseError("a device or port is missing", line=cable.line, excerpt=", ".join(names))
    if any(len(name) > _MAX_NAME or not _is_text(name) for name in names):
        excerpt = ", ".join(names)
        return ParseError("a name is no text or too long", line=cable.line, excerpt=excerpt)
    ends = [(end.device.casefold(), end.port) for end in cable.ends]
    if ends[0] == ends[1]:
        return ParseError("both ends are one port", line=cable.line, excerpt=", ".join(names[:2]))
    if frozenset(ends) in cables:
        return None
    for end in ends:
        if end in taken:
            problem = f"this port has another cable already, on line {taken[end].line}"
            return ParseError(problem, line=cable.line, excerpt=", ".join(end))
    cables[frozenset(ends)] = cable
    taken.update(dict.fromkeys(ends, cable))
    return None


def _is_text(name: str) -> bool:
    """Whether a name was valid UTF-8 and holds no control characters."""
    return name.isprintable()


def _located(problem: ParseError, source: str) -> ParseError:
    return ParseError(problem.problem, source=source, line=problem.line, excerpt=problem.excerpt)
