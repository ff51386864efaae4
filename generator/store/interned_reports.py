"""Reports as they are read in a cluster: packed, and what many of them have alike is one object.

Ten thousand reports are some twenty megabytes so, beside statuses that nearly all are the same.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any, Final, TypeVar

from topology.reports.compact_reports import CompactReport, compact_report
from topology.reports.neighbor_report import ReportStatus
from topology.reports.report_objects import parse_stored_report

_MAX_POOLED: Final = 1 << 12
"""Parts to find again in later reports. What many have alike soon is there anew after the pool was
emptied; what one has is not worth a place for longer."""
_Part = TypeVar("_Part", bound=Hashable)


class ReportInterner:
    """Parses reports, and shares equal parts with those parsed before."""

    def __init__(self) -> None:
        """Nothing was parsed yet."""
        self._pool: dict[Hashable, Any] = {}

    def __call__(self, document: object) -> CompactReport:
        """Return the report in a decoded object, as `parse_stored_report` does.

        Raises:
            ReportError: as `parse_stored_report`.
        """
        if len(self._pool) > _MAX_POOLED:
            self._pool = {}
        found = compact_report(parse_stored_report(document))
        facts = found.facts
        if facts is not None:
            facts = facts._replace(swept_ports=self._intern(facts.swept_ports))
        return replace(found, status=self._intern_status(found.status), facts=facts)

    def _intern_status(self, status: ReportStatus) -> ReportStatus:
        """Return an equal status; where its time is another, of parts that are known."""
        if status in self._pool:
            return self._intern(status)
        outcomes = tuple(map(self._intern, status.collectors))
        update = {"collectors": self._intern(outcomes), "sweeping": self._intern(status.sweeping)}
        return self._intern(status.model_copy(update=update))

    def _intern(self, part: _Part) -> _Part:
        known: _Part = self._pool.setdefault(part, part)
        return known
