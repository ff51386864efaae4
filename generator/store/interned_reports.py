"""Parses a cluster's reports compactly, and shares equal parts of different reports.

Ten thousand reports then take about twenty megabytes, because nearly all statuses are the same.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any, Final, TypeVar

from generator.kube.quota import Quota
from topology.model.facts import DeviceKind
from topology.reports.compact_reports import CompactReport, compact_document
from topology.reports.neighbor_report import ReportStatus
from topology.reports.report_objects import parse_stored_report

_OBJECT_BYTES: Final = 1000
_NEIGHBOR_BYTES: Final = 400
"""Of a neighbor entry in a fabric, where many hosts hear the same switches."""
_USUAL_NEIGHBORS: Final = 16
_UNUSUAL_NEIGHBOR_BYTES: Final = 1500
"""More of each further entry: those that a hostile report invents are devices of their own."""
_MAX_POOLED: Final = 1 << 12
"""The most parts in the pool. When it is full, it is emptied: parts that many reports share return
soon, and parts of a single report would only waste memory."""
_Part = TypeVar("_Part", bound=Hashable)


def _weigh(report: CompactReport) -> int:
    """Return the bytes of a report in memory, its facts as they are when a fabric is built."""
    sweep, facts, status = report.sweep, report.facts, report.status
    lists = (*status.flapping, *(one.name + one.message for one in status.collectors))
    size = _OBJECT_BYTES + sum(_OBJECT_BYTES // 10 + len(text) for text in lists)
    size += len(sweep.facts) if sweep else 0
    if facts is None:
        return size
    num_neighbors = facts.num_neighbors
    # A host's neighbors above `MAX_HOST_NEIGHBORS` are left out, but were read before.
    num_unusual = max(0, num_neighbors - _USUAL_NEIGHBORS) if facts.kind is DeviceKind.HOST else 0
    size += num_neighbors * _NEIGHBOR_BYTES + num_unusual * _UNUSUAL_NEIGHBOR_BYTES
    return size + facts.num_bytes


REPORT_QUOTA: Final = Quota(
    limit_bytes=192 << 20,
    find_sender=lambda name: name.partition(".sweep.")[0],
    weigh=_weigh,
)
"""25,000 hosts with 8 HCAs each take 100 MiB, with 8 LLDP neighbors each 170 MiB, and a sweep of
200,000 HCAs takes 15 MiB."""


class ReportInterner:
    """Parses reports, and shares equal parts with reports that were parsed before."""

    def __init__(self) -> None:
        """Start with an empty pool."""
        self._pool: dict[Hashable, Any] = {}

    def __call__(self, document: object) -> CompactReport:
        """Return the report in a decoded object, as `parse_stored_report` does.

        Raises:
            ReportError: as `parse_stored_report` does.
        """
        if len(self._pool) > _MAX_POOLED:
            self._pool = {}
        report = compact_document(document, parse_stored_report)
        facts = report.facts
        if facts is not None:
            facts = facts._replace(swept_ports=self._intern(facts.swept_ports))
        return replace(report, status=self._intern_status(report.status), facts=facts)

    def _intern_status(self, status: ReportStatus) -> ReportStatus:
        """Return an equal status from the pool; if only its parts are known, made of them."""
        if status in self._pool:
            return self._intern(status)
        outcomes = tuple(map(self._intern, status.collectors))
        update = {"collectors": self._intern(outcomes), "sweeping": self._intern(status.sweeping)}
        return self._intern(status.model_copy(update=update))

    def _intern(self, part: _Part) -> _Part:
        known: _Part = self._pool.setdefault(part, part)
        return known
