"""ibdiagnet's `.db_csv`: sections of comma-separated rows between START_NAME and END_NAME.

Three of its many sections describe the cables: NODES, PORTS and LINKS. The first row of a section
names its columns, which differ between versions. A description is quoted but not escaped, so it may
contain commas and quotes.

Source: `extract_section` and `parse_ibdiagnet_dump` of Mellanox/ufm_sdk_3.0's NDT plugin for the
sections and columns; ibdm's Fabric.h `IBLinkSpeed` and `IBLinkWidth` for the numbers of rates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from topology.model.errors import ParseError
from topology.model.facts import DeviceKind, ParseResult, PortState
from topology.model.ids import parse_guid
from topology.sources.infiniband.dump_nodes import (
    MAX_PORT,
    FarEnd,
    IbNode,
    PortRow,
    build_node_devices,
)
from topology.sources.infiniband.link_rates import LANE_BPS

Row: TypeAlias = tuple[int, str, Mapping[str, str]]
"""Line number, line, and values by column."""

_BORDER: Final = re.compile(r"(START|END)_([A-Z0-9_]+)\Z")
_NUMBER: Final = re.compile(r"(?:0x[0-9a-fA-F]{1,16}|[0-9]{1,20})\Z")
_NODES, _PORTS, _LINKS = "NODES", "PORTS", "LINKS"
_KINDS: Final = {1: DeviceKind.HOST, 2: DeviceKind.SWITCH, 3: DeviceKind.ROUTER}
_LANES: Final = {1: 1, 2: 4, 4: 8, 8: 12, 16: 2}
_SPEEDS: Final = {
    1: "2.5",
    2: "5",
    4: "10",
    1 << 8: "14",
    1 << 9: "25",
    1 << 10: "50",
    1 << 11: "100",
    1 << 16: "FDR10",
    1 << 17: "EDR20",
    1 << 24: "200",
}
_STATE_DOWN: Final = 1
_UP: Final = PortRow(PortState.UP)


def parse_ibdiagnet_db(raw: bytes, *, source: str = "") -> ParseResult:
    """Return one device per node, sorted by GUID, and an error per bad line; never raises.

    Ports without a cable are included, as down. Cost: O(lines).
    """
    reader = _DbParser(source)
    sections = reader.sections(raw.decode("utf-8", "replace").removeprefix("\ufeff"))
    for name in (_NODES, _PORTS, _LINKS):
        if name not in sections:
            reader.error(f"no START_{name} section: run ibdiagnet with --enable_output db_csv")
    for row in sections.get(_NODES, ()):
        reader.read_node(row)
    for row in sections.get(_PORTS, ()):
        reader.read_port(row)
    for row in sections.get(_LINKS, ()):
        reader.read_link(row)
    return ParseResult(build_node_devices(reader.nodes), tuple(reader.errors))


class _DbParser:
    """Collects nodes from the rows, and errors."""

    def __init__(self, source: str) -> None:
        self.nodes: dict[str, IbNode] = {}
        self.errors: list[ParseError] = []
        self._source = source

    def error(self, problem: str, line: int | None = None, excerpt: str = "") -> None:
        self.errors.append(ParseError(problem, source=self._source, line=line, excerpt=excerpt))

    def sections(self, text: str) -> dict[str, list[Row]]:
        """Return the rows of NODES, PORTS and LINKS by section."""
        rows_by_section: dict[str, list[Row]] = {}
        section, columns = "", None
        for number, raw_line in enumerate(text.split("\n"), 1):
            line = raw_line.strip()
            border = _BORDER.match(line)
            if border:
                section, columns = (border[2] if border[1] == "START" else ""), None
            elif section not in (_NODES, _PORTS, _LINKS) or not line:
                continue
            elif columns is None:
                columns = [name.strip() for name in line.split(",")]
                rows_by_section.setdefault(section, [])
            else:
                values = _split(line, len(columns))
                if values is None:
                    self.error(f"row of {section} is truncated or damaged", number, line)
                    continue
                rows_by_section[section].append(
                    (number, line, dict(zip(columns, values, strict=True)))
                )
        return rows_by_section

    def read_node(self, row: Row) -> None:
        line, text, values = row
        guid, kind = parse_guid(values.get("NodeGUID", "")), _number(values, "NodeType")
        if guid is None or kind not in _KINDS:
            self.error("node without a GUID or a type", line, text)
            return
        if guid in self.nodes:
            self.error("node is listed twice, the first one counts", line, text)
            return
        self.nodes[guid] = IbNode(
            guid,
            _KINDS[kind],
            values.get("NodeDesc", ""),
            parse_guid(values.get("SystemImageGUID", "")),
            _number(values, "DeviceID") or 0,
        )

    def read_port(self, row: Row) -> None:
        line, text, values = row
        node = self.nodes.get(parse_guid(values.get("NodeGuid", "")) or "")
        number = _number(values, "PortNum")
        if node is None or number is None or number > MAX_PORT:
            self.error("port of a node that is not in NODES", line, text)
            return
        if number == 0:  # a switch's management port, which has no cable
            return
        is_down = _number(values, "PortState") in (None, _STATE_DOWN)
        node.ports[number] = PortRow(
            PortState.DOWN if is_down else PortState.UP,
            None if is_down else self._rate(row),
            parse_guid(values.get("PortGuid", "")),
        )

    def read_link(self, row: Row) -> None:
        line, text, values = row
        ends = list(_ends(values))
        if len(ends) < len(("1", "2")):
            self.error("link without two ends", line, text)
            return
        nodes = [self.nodes.get(guid) for guid, _ in ends]
        if None in nodes:
            self.error("link of a node that is not in NODES", line, text)
        known_ends = [
            (node, number)
            for node, (_, number) in zip(nodes, ends, strict=True)
            if node is not None
        ]
        if any(node.ports.get(number, _UP).far is not None for node, number in known_ends):
            self.error("port has two peers, the first one counts", line, text)
            return
        guids = [
            node.ports.get(number, _UP).guid if node else None
            for node, (_, number) in zip(nodes, ends, strict=True)
        ]
        for node, number in known_ends:
            end_index = 1 if (node.guid, number) == ends[0] else 0
            end = FarEnd(*ends[end_index], port_guid=guids[end_index])
            node.ports[number] = node.ports.get(number, _UP)._replace(state=PortState.UP, far=end)

    def _rate(self, row: Row) -> int | None:
        line, _, values = row
        width, speed = _number(values, "LinkWidthActv"), _number(values, "LinkSpeedActv")
        lanes, lane = _LANES.get(width or 0), LANE_BPS.get(_SPEEDS.get(speed or 0, ""))
        if lanes and lane:
            return lanes * lane
        if width and speed:
            problem = "unknown link rate, the link is kept without a rate"
            self.error(problem, line, f"width {width}, speed {speed}")
        return None


def _split(line: str, num_columns: int) -> list[str] | None:
    """Return one value per column, None if the number differs.

    The first value may be a description with commas of its own.
    """
    values = (
        line.split(",") if line.count(",") == num_columns - 1 else line.rsplit(",", num_columns - 1)
    )
    if len(values) != num_columns or (line.count(",") >= num_columns and not line.startswith('"')):
        return None
    return [_bare(value) for value in values]


def _bare(value: str) -> str:
    value = value.strip()
    is_quoted = len(value) > 1 and value[0] == value[-1] == '"'
    return value[1:-1].strip() if is_quoted else value


def _number(values: Mapping[str, str], column: str) -> int | None:
    text = values.get(column, "")
    return int(text, 0 if text.startswith("0x") else 10) if _NUMBER.match(text) else None


def _ends(values: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    for end in ("1", "2"):
        guid = parse_guid(values.get(f"NodeGuid{end}", ""))
        number = _number(values, f"PortNum{end}")
        if guid is not None and number is not None and 0 < number <= MAX_PORT:
            yield guid, number
