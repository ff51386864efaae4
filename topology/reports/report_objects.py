"""Reports as objects of an API server, where they differ from files. Pure.

The server's schema has refused what no version knows, so a field that we do not know is that of a
newer agent: it is left out, and the rest counts. Who wrote an object may not be let delete it, so
a part of a sweep can also be empty: it then stands for a part that is not there.
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
"""No hash of a sweep."""


def parse_stored_report(document: object) -> NeighborReport:
    """Return the report in a decoded object, without the fields that only a newer version knows.

    Raises:
        ReportError: another version, a missing field, a value out of range.
    """
    try:
        return parse_report(document)
    except ReportError as error:
        unknown = _unknown_fields(error.__cause__)
        if not unknown:
            raise
    return parse_report(_remove_fields(document, unknown))


def build_withdrawn_part(name: str, subnet: str) -> NeighborReport:
    """Return what a part of a sweep becomes when it says nothing any more.

    It is never whole, so that a reader which knows nothing of withdrawing does not count it.
    """
    part = SweepPart(subnet=subnet, sweep_id=_WITHDRAWN, part=0, of=2, facts="")
    return NeighborReport(metadata=ReportMetadata(name=name), spec=ReportSpec(sweep=part))


def is_withdrawn(report: Report) -> bool:
    """Return whether it stands for a part that is not there."""
    sweep = report.sweep
    return sweep is not None and sweep.sweep_id == _WITHDRAWN and not sweep.facts


def _unknown_fields(cause: BaseException | None) -> list[tuple[int | str, ...]]:
    """Return the paths of the fields that a model has no place for."""
    if not isinstance(cause, ValidationError):
        return []
    found = cause.errors(include_url=False, include_context=False, include_input=False)
    return [one["loc"] for one in found if one["type"] == "extra_forbidden"]


def _remove_fields(document: object, paths: Sequence[tuple[int | str, ...]]) -> Any:  # noqa: ANN401 - JSON
    kept: Any = deepcopy(document)
    for *path, field in paths:
        owner = kept
        for step in path:
            owner = owner[step]
        owner.pop(field, None)
    return kept
