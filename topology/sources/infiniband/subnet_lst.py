"""opensm's `opensm-subnet.lst` and ibdiagnet's `.lst`: one line for each end of each cable.

opensm writes its dump in every heavy sweep, so it costs no additional sweep. Each line has both
ends in full, in braces, and descriptions may contain braces too. Ports and nodes without a cable
are not in the dump.

Source: opensm 3.3, osm_dump.c `dump_topology_node` (port numbers and device ids are hexadecimal,
the far end's device id is shifted); ibutils' ibdm, Fabric.cpp `parseSubnetLine`.
"""

from __future__ import annotations

import re
from typing import Final

from topology.model.errors import ParseError
from topology.model.facts import DeviceKind, ParseResult, PortState
from topology.model.ids import parse_guid
from topology.sources.infiniband.dump_nodes import FarEnd, IbNode, PortRow, build_node_devices
from topology.sources.infiniband.link_rates import derive_rate_bps

_HEX: Final = "[0-9A-Fa-f]"
# A description has at most 64 bytes, too few for text that looks like the other end of a cable.
_END: Final = (
    rf"\{{\s*(CA|SW|Rt)(?:-SM)?\s+Ports:{_HEX}+\s+SystemGUID:({_HEX}{{1,16}})"
    rf"\s+NodeGUID:({_HEX}{{1,16}})\s+PortGUID:({_HEX}{{1,16}})\s+VenID:{_HEX}*"
    rf"\s+DevID:({_HEX}*)\s+Rev:{_HEX}*\s+\{{(.{{0,64}}?)\}}\s+LID:{_HEX}*\s+PN:({_HEX}{{1,2}})\s*\}}"
)
_LINE: Final = re.compile(
    rf"{_END}\s*{_END}\s*PHY=(\S+)\s+LOG=([A-Z]+)\s+SPD=(\S+)(?:\s+\S+=\S*)*", re.DOTALL
)
_KINDS: Final = {
    "CA": DeviceKind.HOST,
    "SW": DeviceKind.SWITCH,
    "Rt": DeviceKind.ROUTER,
}
_SHIFT: Final = 16
_MAX_DEVICE_ID: Final = 0xFFFF
_UNKNOWN: Final = "??"
_DOWN: Final = "DWN"


def parse_subnet_lst(raw: bytes, *, source: str = "") -> ParseResult:
    """Return one device per node, sorted by GUID, and an error per bad line; never raises.

    Cost: O(lines).
    """
    reader = _SubnetLstParser(source)
    for number, line in enumerate(raw.decode("utf-8", "replace").split("\n"), 1):
        text = line.strip().removeprefix("\ufeff")
        if text and not text.startswith("#"):
            reader.read(text, number)
    return ParseResult(build_node_devices(reader.nodes), tuple(reader.errors))


class _SubnetLstParser:
    """Collects nodes from the lines, and errors."""

    def __init__(self, source: str) -> None:
        self.nodes: dict[str, IbNode] = {}
        self.errors: list[ParseError] = []
        self._source = source

    def read(self, line: str, number: int) -> None:
        match = _LINE.fullmatch(line)
        near_end = _end(match.groups()[:7]) if match else None
        far_end = _end(match.groups()[7:14]) if match else None
        if match is None or near_end is None or far_end is None:
            self._error("unknown line" if match is None else "end without a GUID", number, line)
            return
        width, state, speed = match.groups()[14:]
        rate = derive_rate_bps(width, speed)
        if rate is None and _UNKNOWN not in (width, speed):
            self._error(
                "unknown link rate, the link is kept without a rate", number, f"{width} {speed}"
            )
        node, port_guid, port = near_end
        known_node = self.nodes.setdefault(node.guid, node)
        known_node.device_id = known_node.device_id or node.device_id
        row = PortRow(
            PortState.DOWN if state == _DOWN else PortState.UP,
            rate,
            port_guid,
            FarEnd(
                far_end[0].guid, far_end[2], "", far_end[1], far_end[0].kind, far_end[0].description
            ),
        )
        kept_row = known_node.ports.setdefault(port, row)
        if kept_row.far is None or row.far is None or kept_row.far[:2] != row.far[:2]:
            self._error("port has two peers, the first one counts", number, line)

    def _error(self, problem: str, line: int, excerpt: str) -> None:
        self.errors.append(ParseError(problem, source=self._source, line=line, excerpt=excerpt))


def _end(words: tuple[str, ...]) -> tuple[IbNode, str | None, int] | None:
    """Return a node, the GUID and the number of its port; None without a valid node GUID."""
    kind, image, guid, port_guid, device_id, description, port = words
    node_guid = parse_guid(guid)
    if node_guid is None:
        return None
    node = IbNode(
        node_guid, _KINDS[kind], description.strip(), parse_guid(image), _device_id(device_id)
    )
    return node, parse_guid(port_guid), int(port, 16)


def _device_id(text: str) -> int:
    """Return a device id; ids of far ends, and all ids of ibdiagnet, are shifted by two bytes."""
    number = int(text or "0", 16)
    return number >> _SHIFT if number > _MAX_DEVICE_ID else number
