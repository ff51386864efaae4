"""NeighborReports as objects of an API server, where they differ from files. Pure.

The server's schema refuses fields that no version knows. A field unknown to this version is
therefore from a newer agent: it is dropped, and the other fields count. An agent may lack the
permission to delete its objects, so it withdraws a part of a sweep by writing an empty part.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import inspect

from topology.model.errors import ReportError
from topology.reports.neighbor_report import (
    NeighborReport,
    ReportMetadata,
    ReportSpec,
    SweepPart,
    parse_report,
)

_WITHDRAWN: Final = "withdrawn"
"""The sweep id of a withdrawn part; it cannot be the hash of a sweep."""


def parse_stored_report(document: object) -> NeighborReport:
    """Return the report in a decoded object, without fields that only a newer version knows.

    Raises:
        ReportError: another version, a missing field, or a value out of range.
    """
    try:
        return parse_report(document)
    except ReportError:
        return parse_report(_keep_known(document, inspect.type_info(NeighborReport)))


def build_withdrawn_part(name: str, subnet: str) -> NeighborReport:
    """Return the empty report that replaces a part of a sweep.

    It says that it is one of two parts, so a reader that does not know withdrawn parts sees an
    incomplete sweep and ignores it.
    """
    part = SweepPart(subnet=subnet, sweep_id=_WITHDRAWN, part=0, of=2, facts="")
    return NeighborReport(metadata=ReportMetadata(name=name), spec=ReportSpec(sweep=part))


def is_withdrawn(sweep: SweepPart | None) -> bool:
    """Return whether a part of a sweep, if a report is one, is withdrawn."""
    return sweep is not None and sweep.sweep_id == _WITHDRAWN and not sweep.facts


def _keep_known(value: Any, expected: inspect.Type) -> Any:  # noqa: ANN401 - JSON
    """Drop the fields that the type does not declare, at any depth."""
    match expected:
        case inspect.UnionType():  # an optional value
            for option in expected.types:
                value = _keep_known(value, option)
        case inspect.VarTupleType() if isinstance(value, list):
            return [_keep_known(item, expected.item_type) for item in value]
        case inspect.StructType() if isinstance(value, Mapping):
            known = {field.encode_name: field.type for field in expected.fields}
            return {
                key: _keep_known(item, known[key]) for key, item in value.items() if key in known
            }
    return value
