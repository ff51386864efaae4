"""Cabling plans from NetBox's API: `/api/dcim/cables/`, one page or a list of cables.

Source: NetBox's REST API. Since 3.3, a side is a list `a_terminations` of {object_type, object}.
Older versions have one object `termination_a` and its `termination_a_type`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from topology.model.cabling_plan import PlannedCable
from topology.model.errors import ParseError
from topology.sources.cabling.csv_table import BREAKOUT_PROBLEM, PANEL_PROBLEM, is_decommissioning

_INTERFACE: Final = "dcim.interface"
_PANEL_TYPES: Final = frozenset({"dcim.frontport", "dcim.rearport"})
_ONE_PAGE: Final = "only one page of the cables: query NetBox with limit=0, or join the pages"

_FULL_ANSWER: Final = "a brief answer has ids only; query /api/dcim/cables/?limit=0 without brief"


class _End(NamedTuple):
    type: str
    device: str
    port: str


def parse_netbox(text: str) -> Iterator[PlannedCable | ParseError]:
    """Yield a cable or an error per entry.

    Skips cables that do not carry a network and cables with the status "decommissioning".
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


def _parse_end(cable: Mapping[str, Any], side: str) -> _End:
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
        return _End(kind, "", "")
    return _End(kind, _name(_field(termination, "device")), _name(termination))


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
