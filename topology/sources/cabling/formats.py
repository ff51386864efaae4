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

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from topology.model.cabling_plan import (
    JSON_FORM,
    CablingPlan,
    PlannedCable,
    cable_error,
    show_cable,
)
from topology.model.errors import ParseError
from topology.sources.cabling.csv_table import (
    BREAKOUT_PROBLEM,
    PANEL_PROBLEM,
    detect_table_form,
    is_decommissioning,
    parse_table,
)
from topology.sources.unsupported_formats import explain_output

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


_INTERFACE: Final = "dcim.interface"
_PANEL_TYPES: Final = frozenset({"dcim.frontport", "dcim.rearport"})
_ONE_PAGE: Final = "only one page of the cables: query NetBox with limit=0, or join the pages"

_FULL_ANSWER: Final = "a brief answer has ids only; query /api/dcim/cables/?limit=0 without brief"


class _NetBoxEnd(NamedTuple):
    type: str
    device: str
    port: str


def parse_netbox(text: str) -> Iterator[PlannedCable | ParseError]:
    """Yield a cable or an error per entry.

    Skips cables that do not carry a network and cables with the status "decommissioning".

    Source: NetBox's REST API, `/api/dcim/cables/`, one page or a list of cables. Since 3.3, a side
    is a list `a_terminations` of {object_type, object}. Older versions have one object
    `termination_a` and its `termination_a_type`.
    """
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        yield ParseError(f"not JSON: {error.msg}", line=error.lineno)
        return
    except (ValueError, RecursionError) as error:
        yield ParseError(f"not JSON: {error}")
        return
    results = document.get("results", [document]) if isinstance(document, dict) else document
    if isinstance(document, dict) and document.get("next"):
        yield ParseError(_ONE_PAGE)
    if not isinstance(results, list):
        yield ParseError("expected a list of cables in results")
        return
    for number, cable in enumerate(results, 1):
        try:
            row = _parse_cable(cable, number)
        except ParseError as error:
            yield ParseError(f"cable {number}: {error.problem}", excerpt=error.excerpt)
            continue
        if row is not None:
            yield row


def _parse_cable(cable: object, number: int) -> PlannedCable | None:
    if not isinstance(cable, Mapping):
        raise ParseError(f"expected an object, got {type(cable).__name__}")
    status = cable.get("status")
    word = _field(status, "value") if isinstance(status, Mapping) else status
    if isinstance(word, str) and is_decommissioning(word):
        return None
    ends = [_parse_end(cable, side) for side in ("a", "b")]
    types = {end.type for end in ends}
    if types & _PANEL_TYPES:
        raise ParseError(PANEL_PROBLEM)
    if types != {_INTERFACE}:
        return None
    return PlannedCable(ends[0].device, ends[0].port, ends[1].device, ends[1].port, number)


def _parse_end(cable: Mapping[str, Any], side: str) -> _NetBoxEnd:
    """Return one end; its names are empty if it is not an interface.

    Raises:
        ParseError: the side has no end or several, or an interface without a name.
    """
    terminations = cable.get(f"{side}_terminations")
    if isinstance(terminations, list):
        if len(terminations) != 1:
            raise ParseError(BREAKOUT_PROBLEM if terminations else f"no termination on side {side}")
        first = terminations[0]
        kind, termination = (
            (first.get("object_type"), first.get("object"))
            if isinstance(first, Mapping)
            else (None, None)
        )
    else:
        kind, termination = cable.get(f"termination_{side}_type"), cable.get(f"termination_{side}")
    if not isinstance(kind, str):
        raise ParseError(f"no termination type on side {side}: {_FULL_ANSWER}")
    if kind != _INTERFACE:
        return _NetBoxEnd(kind, "", "")
    return _NetBoxEnd(kind, _name(_field(termination, "device")), _name(termination))


def _field(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, Mapping) else None


def _name(component: object) -> str:
    """Return the name of a component, or the text that NetBox displays if it has none.

    Raises:
        ParseError: it has neither.
    """
    for key in ("name", "display"):
        name = _field(component, key)
        if isinstance(name, str) and name.strip():
            return name.strip()
    raise ParseError(f"an interface or its device has no name: {_FULL_ANSWER}")


_ARROW: Final = re.compile(r"-(?:[\w.]+-)*>", re.ASCII)
_PORT_WORDS: Final = 5
_HEAD_LINES: Final = 1000


def is_topology_file(lines: Sequence[str]) -> bool:
    """Whether one of the first 1000 lines is a port of a system."""
    return any(_is_port(line.split()) for line in lines[:_HEAD_LINES])


def _is_port(words: Sequence[str]) -> bool:
    return len(words) == _PORT_WORDS and _ARROW.fullmatch(words[1]) is not None


def parse_topology_file(lines: Sequence[str]) -> Iterator[PlannedCable | ParseError]:
    """Yield a cable or an error per port line; most cables come twice, once from each end.

        SYSTEM-TYPE SYSTEM-NAME [CFG: ...]
            PORT -4X-10G-> REMOTE-TYPE REMOTE-NAME REMOTE-PORT

    Ignores types and configurations: they describe the inside of a system, and ports are those of
    its front panel. Source: ibutils 1.5.7, man ibdm-topo-file and IBFabric::parseTopology.
    """
    system = ""
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if _is_port(words):
            problem = "" if system else "port line before any system line"
        elif _is_system(words):
            system, problem = words[1], ""
            continue
        else:
            problem = "expected TYPE NAME, or PORT -> TYPE NAME PORT"
            if not line[0].isspace():  # a damaged system line: its ports belong to no known system
                system = ""
        if problem:
            yield ParseError(problem, line=number, excerpt=line.strip())
        else:
            yield PlannedCable(system, words[0], words[3], words[4], number)


def _is_system(words: Sequence[str]) -> bool:
    """Whether a line declares a system; the text after `CFG:` may contain blanks."""
    if len(words) < 2 or "/" in words[0] + words[1]:  # noqa: PLR2004 - type and name
        return False
    return len(words) == 2 or words[2].startswith("CFG:")  # noqa: PLR2004


# The possessive quantifiers (`++`) never backtrack, and the length of a quoted name is bounded, so
# hostile text is not scanned repeatedly.
_TOKEN: Final = re.compile(
    r"""
      (?P<skip>\s++|//[^\n]*+|^\#[^\n]*+|/\*(?:.*?\*/|.*+))
    | (?P<edge>--|->)
    | "(?P<quoted>(?:[^"\\\n]|\\.){0,260}+)"
    | (?P<word>(?:[^\s"\[\]{};:,=<>\#/\-]|/(?![/*])|-(?![->]))++)
    | (?P<mark>.)
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_GRAPH: Final = re.compile(r"(?:strict\s+)?(?:di)?graph\b[^\n{]{0,200}\s*\{", re.IGNORECASE)
_HEAD_CHARS: Final = 65536
_NO_PORTS: Final = 'expected "device":"port" on both sides of an edge'
_END_TOKENS: Final = 3
"""Tokens in `"device":"port"`."""


class _Token(NamedTuple):
    kind: str
    """`edge`, `name` or `mark`."""
    text: str
    line: int


def is_graph(text: str) -> bool:
    """Whether a text is a graph; comments may come first."""
    offset = 0
    while offset < min(len(text), _HEAD_CHARS):
        match = _TOKEN.match(text, offset)
        if match is None or match.lastgroup != "skip":
            break
        offset = match.end()
    return _GRAPH.match(text, offset) is not None


def parse_graph(text: str) -> Iterator[PlannedCable | ParseError]:
    """Yield a cable per edge, or an error if the edge does not name a port at both ends.

    Reads the part of DOT that `topology.dot` uses: edges between `"device":"port"` pairs. Ignores
    attributes, nodes and defaults. Unquoted names may contain hyphens: DOT forbids them, but plans
    use them. Sources: Cumulus Linux user guide, Prescriptive Topology Manager; Graphviz, The DOT
    Language.
    """
    tokens = list(_tokens(text))
    for token_index, token in enumerate(tokens):
        if token.kind == "mark" and token.text == '"':
            yield ParseError("unclosed quote", line=token.line)
        if token.kind != "edge":
            continue
        before = _end(tokens[max(0, token_index - _END_TOKENS) : token_index])
        after = _end(tokens[token_index + 1 : token_index + 1 + _END_TOKENS])
        if before is None or after is None:
            edge_tokens = tokens[max(0, token_index - _END_TOKENS) : token_index + 1 + _END_TOKENS]
            excerpt = " ".join(
                edge_token.text for edge_token in edge_tokens if edge_token.line == token.line
            )
            yield ParseError(_NO_PORTS, line=token.line, excerpt=excerpt)
        else:
            yield PlannedCable(*before, *after, token.line)


def _tokens(text: str) -> Iterator[_Token]:
    """Yield tokens with their lines; skips attribute lists."""
    line = 1
    depth = 0
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "mark"
        if kind in ("quoted", "word"):
            name = re.sub(r"\\(.)", r"\1", match["quoted"]) if kind == "quoted" else match["word"]
            token = _Token("name", name, line)
        else:
            token = _Token(kind, match[0], line)
        if kind == "mark" and token.text == "[":
            depth += 1
        elif kind == "mark" and token.text == "]":
            depth = max(0, depth - 1)
        if depth == 0 and kind != "skip" and token.text != "]":
            yield token
        line += match[0].count("\n")


def _end(tokens: list[_Token]) -> tuple[str, str] | None:
    """Return (device, port) of three tokens, None if they are not `device:port`."""
    if [token.kind for token in tokens] != ["name", "mark", "name"] or tokens[1].text != ":":
        return None
    return tokens[0].text.strip(), tokens[2].text.strip()
