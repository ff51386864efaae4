"""opensm's `opensm-subnet.lst` and ibdiagnet's `.lst`: a line for each end of each cable.

The dump of opensm comes with every heavy sweep that it makes, so it needs no sweep of ours. Each
line tells both ends in full, in braces, and descriptions may hold braces themselves. Ports without
a cable are not told, nor are nodes without one.

Source: opensm 3.3, osm_dump.c `dump_topology_node` (port numbers and device ids are hexadecimal,
the far end's device id is shifted); ibutils' ibdm, Fabric.cpp `parseSubnetLine`.
"""

from __future__ import annotations

import re
from typing import Final

from topology.model.errors import ParseError
from topology.model.facts import DeviceKind, ParseResult, PortState
from topology.model.ids import parse_guid
from topology.sources.infiniband.dump_nodes import (
    FarEnd,
    IbNode,
    PortRow,
    build_node_devices,
    derive_rate_bps,
)

_HEX: Final = "[0-9A-Fa-f]"
# A description has at most 64 bytes, so none can hold what looks like the other end of a cable.
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
    """Nodes as the lines tell them."""

    def __init__(self, source: str) -> None:
        self.nodes: dict[str, IbNode] = {}
        self.errors: list[ParseError] = []
        self._source = source

    def read(self, line: str, number: int) -> None:
        found = _LINE.fullmatch(line)
        near = _end(found.groups()[:7]) if found else None
        far = _end(found.groups()[7:14]) if found else None
        if found is None or near is None or far is None:
            self._error("unknown line" if found is None else "end without a GUID", number, line)
            return
        width, state, speed = found.groups()[14:]
        rate = derive_rate_bps(width, speed)
        if rate is None and _UNKNOWN not in (width, speed):
            self._error(
                "unknown link rate, the link counts without one", number, f"{width} {speed}"
            )
        node, own, port = near
        known = self.nodes.setdefault(node.guid, node)
        known.device_id = known.device_id or node.device_id
        row = PortRow(
            PortState.DOWN if state == _DOWN else PortState.UP,
            rate,
            own,
            FarEnd(far[0].guid, far[2], "", far[1], far[0].kind, far[0].description),
        )
        before = known.ports.setdefault(port, row)
        if before.far is None or row.far is None or before.far[:2] != row.far[:2]:
            self._error("port has two peers, the first counts", number, line)

    def _error(self, problem: str, line: int, excerpt: str) -> None:
        self.errors.append(ParseError(problem, source=self._source, line=line, excerpt=excerpt))


def _end(words: tuple[str, ...]) -> tuple[IbNode, str | None, int] | None:
    """Return a node, the GUID of its port and that port's number; None without a GUID."""
    kind, image, guid, port_guid, device_id, description, port = words
    found = parse_guid(guid)
    if found is None:
        return None
    node = IbNode(
        found, _KINDS[kind], description.strip(), parse_guid(image), _device_id(device_id)
    )
    return node, parse_guid(port_guid), int(port, 16)


def _device_id(text: str) -> int:
    """Return a device id; those of far ends, and all of ibdiagnet's, are shifted by two bytes."""
    number = int(text or "0", 16)
    return number >> _SHIFT if number > _MAX_DEVICE_ID else number
