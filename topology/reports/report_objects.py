"""NeighborReports as objects of an API server, where they differ from files. Pure.

The server's schema refuses fields that no version knows. A field unknown to this version is
therefore from a newer agent: it is dropped, and the other fields count. An agent may lack the
permission to delete its objects, so it withdraws a part of a sweep by writing an empty part.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Final

from pydantic import ValidationError

from topology.model.errors import ReportError
from topology.reports.compact_reports import Report
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
    except ReportError as error:
        unknown = _unknown_fields(error.__cause__)
        if not unknown:
            raise
    return parse_report(_remove_fields(document, unknown))


def build_withdrawn_part(name: str, subnet: str) -> NeighborReport:
    """Return the empty report that replaces a part of a sweep.

    It says that it is one of two parts, so a reader that does not know withdrawn parts sees an
    incomplete sweep and ignores it.
    """
    part = SweepPart(subnet=subnet, sweep_id=_WITHDRAWN, part=0, of=2, facts="")
    return NeighborReport(metadata=ReportMetadata(name=name), spec=ReportSpec(sweep=part))


def is_withdrawn(report: Report) -> bool:
    """Return whether a report is a withdrawn part of a sweep."""
    sweep = report.sweep
    return sweep is not None and sweep.sweep_id == _WITHDRAWN and not sweep.facts


def _unknown_fields(cause: BaseException | None) -> list[tuple[int | str, ...]]:
    """Return the paths of the fields that the model does not have."""
    if not isinstance(cause, ValidationError):
        return []
    details = cause.errors(include_url=False, include_context=False, include_input=False)
    return [fault["loc"] for fault in details if fault["type"] == "extra_forbidden"]


def _remove_fields(document: object, paths: Sequence[tuple[int | str, ...]]) -> Any:  # noqa: ANN401 - JSON
    remaining: Any = deepcopy(document)
    for *path, field in paths:
        owner = remaining
        for step in path:
            owner = owner[step]
        owner.pop(field, None)
    return remaining
