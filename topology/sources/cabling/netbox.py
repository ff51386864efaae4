"""Cabling plans as NetBox's API gives them: `/api/dcim/cables/`, one page or a list of cables.

Source: NetBox's REST API. Since 3.3 a side is a list `a_terminations` of {object_type, object},
before that it was one object `termination_a` with its `termination_a_type`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from topology.model.cabling_plan import PlannedCable
from topology.model.errors import ParseError
from topology.sources.cabling.csv_table import PANEL_PROBLEM, BREAKOUT_PROBLEM, is_decommissioning

_INTERFACE: Final = "dcim.interface"
_PANEL_TYPES: Final = frozenset({"dcim.frontport", "dcim.rearport"})
_ONE_PAGE: Final = "only one page of the cables: ask NetBox with limit=0, or join the pages"


class _End(NamedTuple):
    type: str
    device: str
    port: str


def parse_netbox(text: str) -> Iterator[PlannedCable | ParseError]:
    """Yield what each cable says; those that carry no network, or are going, are left out."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        yield ParseError(f"not JSON: {error.msg}", line=error.lineno)
        return
    except (ValueError, RecursionError) as error:
        yield ParseError(f"not JSON: {error}")
        return
    listed = document.get("results", [document]) if isinstance(document, dict) else document
    if isinstance(document, dict) and document.get("next"):
        yield ParseError(_ONE_PAGE)
    if not isinstance(listed, list):
        yield ParseError("expected a list of cables in results")
        return
    for number, cable in enumerate(listed, 1):
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


def _parse_end(cable: Mapping[str, Any], side: str) -> _End:
    """Return one end; its names are empty where it is no interface.

    Raises:
        ParseError: it has none or several, or an interface without a name.
    """
    listed = cable.get(f"{side}_terminations")
    if isinstance(listed, list):
        if len(listed) != 1:
            raise ParseError(BREAKOUT_PROBLEM if listed else f"no end {side}")
        first = listed[0]
        kind, found = (
            (first.get("object_type"), first.get("object"))
            if isinstance(first, Mapping)
            else (None, None)
        )
    else:
        kind, found = cable.get(f"termination_{side}_type"), cable.get(f"termination_{side}")
    if not isinstance(kind, str):
        raise ParseError(f"no end {side} with a type")
    if kind != _INTERFACE:
        return _End(kind, "", "")
    return _End(kind, _name(_field(found, "device")), _name(found))


def _field(found: object, key: str) -> object:
    return found.get(key) if isinstance(found, Mapping) else None


def _name(found: object) -> str:
    """Return the name of an object, or what NetBox displays where a device has none."""
    for key in ("name", "display"):
        name = _field(found, key)
        if isinstance(name, str) and name.strip():
            return name.strip()
    raise ParseError("an interface or its device has no name")
