"""ibdiagnet's `.net_dump`: a table for each switch, a row for each of its ports.

Hosts have no table: all facts about them come from the rows of switches. A switch port has a
number and a label on the front panel. A row gives only the label of the far end; the table of the
far switch translates it into a number.

Source: the sample in `parse_ibdiagnet_dump` of Mellanox/ufm_sdk_3.0's NDT plugin, ibdiagnet 2.10.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final, NamedTuple

from topology.model.errors import ParseError
from topology.model.facts import DeviceKind, ParseResult, PortState
from topology.model.ids import parse_guid
from topology.sources.infiniband.dump_nodes import FarEnd, IbNode, PortRow, build_node_devices
from topology.sources.infiniband.link_rates import LANE_BPS, LANES, derive_rate_bps
from topology.sources.infiniband.node_names import AGGREGATION_TEXT

_HEAD: Final = re.compile(r'"(.*)"\s*,\s*[^,"]*,\s*0x([0-9a-fA-F]{1,16})\s*,\s*LID\s+[0-9]*')
_LABEL, _PORT, _STATE, _WIDTH, _SPEED = "#", "IB#", "Sta", "LWA", "LSA"
_FAR_GUID, _FAR_LABEL, _FAR_TEXT = "Neighbor Guid", "N#", "Neighbor Description"
_COLUMNS: Final = (
    *(_LABEL, _PORT, _STATE, "PhysSta", "MTU", _WIDTH, _SPEED, "FEC mode", "Retran"),
    *(_FAR_GUID, _FAR_LABEL, "NLID", _FAR_TEXT),
)
"""Columns of ibdiagnet 2.10. The head of a table names its columns; the description is the last."""
_NUMBER: Final = re.compile(r"[0-9]{1,3}\Z")
_SWITCH_TEXT: Final = "MF0;"
_DOWN: Final = "DOWN"
_CAS: Final = frozenset({DeviceKind.HOST, DeviceKind.AGGREGATION})


class _SwitchPortRow(NamedTuple):
    """The row of a switch port."""

    line: int
    text: str
    number: int
    values: dict[str, str]


def parse_ibdiagnet_net_dump(raw: bytes, *, source: str = "") -> ParseResult:
    """Return one device per switch and CA, sorted by GUID, and an error per bad line; never raises.

    Cost: O(lines).
    """
    reader = _NetDumpParser(source)
    for number, raw_line in enumerate(raw.decode("utf-8", "replace").split("\n"), 1):
        line = raw_line.strip().removeprefix("\ufeff")
        if line:
            reader.read(line, number)
    return ParseResult(build_node_devices(reader.finish()), tuple(reader.errors))


class _NetDumpParser:
    """Collects the tables of switches, and errors."""

    def __init__(self, source: str) -> None:
        self.errors: list[ParseError] = []
        self._source = source
        self._nodes: dict[str, IbNode] = {}
        self._rows: dict[str, list[_SwitchPortRow]] = {}
        self._open: list[_SwitchPortRow] | None = None
        self._columns: tuple[str, ...] = _COLUMNS

    def read(self, line: str, number: int) -> None:
        """Read a head, a comment or a row; anything else is an error."""
        head = _HEAD.fullmatch(line)
        if head:
            self._start(head[1].strip(), head[2], number, line)
            return
        if line.startswith("#"):
            self._read_comment(line)
            return
        if self._open is None:
            self._error("row outside the table of a switch", number, line)
            return
        # Only the last value, a description, may contain colons.
        words = [word.strip() for word in line.split(":", len(self._columns) - 1)]
        values = dict(zip(self._columns, words, strict=False))
        if len(words) < len(self._columns) - 1 or not _NUMBER.match(values[_PORT]):
            self._error("row is truncated or damaged", number, line)
            return
        self._open.append(_SwitchPortRow(number, line, int(values[_PORT]), values))

    def _read_comment(self, line: str) -> None:
        """Set the column names of a table; ignore all other comments."""
        names = tuple(name.strip() for name in line.split(":"))
        if set(names) >= {_LABEL, _PORT, _STATE, _WIDTH, _SPEED, _FAR_GUID, _FAR_LABEL, _FAR_TEXT}:
            self._columns = names

    def finish(self) -> dict[str, IbNode]:
        """Return the nodes; the far end of a cable has a number if its label can be translated."""
        numbers = {guid: _numbers(rows) for guid, rows in self._rows.items()}
        switches = list(self._rows.items())
        for guid, rows in switches:
            node = self._nodes[guid]
            for row in rows:
                if row.number in node.ports:
                    self._error("port is listed twice, the first one counts", row.line, row.text)
                elif row.number:
                    node.ports[row.number] = self._port(row, numbers)
                    self._mirror(node, row.number)
        return self._nodes

    def _mirror(self, switch: IbNode, number: int) -> None:
        """Add a cable to its other end, if that is a CA, which has no table."""
        port = switch.ports[number]
        far_end = port.far
        if (
            far_end is None
            or far_end.port is None
            or far_end.guid in self._rows
            or far_end.kind not in _CAS
        ):
            return
        far_node = self._nodes.setdefault(
            far_end.guid, IbNode(far_end.guid, far_end.kind, far_end.description)
        )
        back = FarEnd(switch.guid, number)
        far_node.ports.setdefault(far_end.port, PortRow(port.state, port.rate_bps, None, back))

    def _start(self, description: str, text: str, number: int, line: str) -> None:
        guid = parse_guid(text)
        if guid is None:
            self._error("switch without a GUID", number, line)
            self._open = None
            return
        self._nodes.setdefault(guid, IbNode(guid, DeviceKind.SWITCH, description))
        self._open = self._rows.setdefault(guid, [])

    def _port(self, row: _SwitchPortRow, numbers: dict[str, dict[str, int]]) -> PortRow:
        values = row.values
        if values[_STATE].upper() == _DOWN:
            return PortRow(PortState.DOWN)
        width, speed = values[_WIDTH], values[_SPEED]
        rate = derive_rate_bps(width, speed)
        if rate is None and width and speed and (width in LANES or speed in LANE_BPS):
            problem = "unknown link rate, the link is kept without a rate"
            self._error(problem, row.line, f"{width} {speed}")
        far_end = self._far(row, numbers)
        return PortRow(PortState.UP, rate, None, far_end)

    def _far(self, row: _SwitchPortRow, numbers: dict[str, dict[str, int]]) -> FarEnd | None:
        text, label = row.values[_FAR_GUID], row.values[_FAR_LABEL]
        description = _bare(row.values.get(_FAR_TEXT, ""))
        guid = parse_guid(text)
        if guid is None:
            if text:
                self._error("far end without a GUID", row.line, row.text)
            return None
        far_numbers = numbers.get(guid)
        number = far_numbers.get(label) if far_numbers else None
        if number is None and far_numbers is None and _NUMBER.match(label):
            number = int(label)
        is_switch = far_numbers is not None or description.startswith(_SWITCH_TEXT)
        kind = DeviceKind.SWITCH if is_switch else _ca_kind(description)
        return FarEnd(guid, number, label, kind=kind, description=description)

    def _error(self, problem: str, line: int, excerpt: str) -> None:
        self.errors.append(ParseError(problem, source=self._source, line=line, excerpt=excerpt))


def _numbers(rows: list[_SwitchPortRow]) -> dict[str, int]:
    """Return port numbers by label; skips a label that two ports share."""
    counts = Counter(row.values[_LABEL] for row in rows)
    return {row.values[_LABEL]: row.number for row in rows if counts[row.values[_LABEL]] == 1}


def _ca_kind(description: str) -> DeviceKind:
    is_inside = description == AGGREGATION_TEXT
    return DeviceKind.AGGREGATION if is_inside else DeviceKind.HOST


def _bare(text: str) -> str:
    is_quoted = len(text) > 1 and text[0] == text[-1] == '"'
    return text[1:-1].strip() if is_quoted else ""
