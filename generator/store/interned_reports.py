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
from topology.reports.neighbor_report import ReportStatus, SweptPort
from topology.reports.report_objects import parse_stored_report

_OBJECT_BYTES: Final = 1000
_ENTRY_BYTES: Final = 200
"""Of an entry in the pool."""
_PORT_BYTES: Final = 300
"""Of a swept port without its texts."""
_NEIGHBOR_BYTES: Final = 400
"""Of a neighbor entry in a fabric, where many hosts hear the same switches."""
_USUAL_NEIGHBORS: Final = 16
_UNUSUAL_NEIGHBOR_BYTES: Final = 1500
"""More of each further entry: those that a hostile report invents are devices of their own."""
_USUAL_IDS: Final = {DeviceKind.HOST: 4}
_MOST_USUAL_IDS: Final = 8
"""Of a neighbor entry; switches list the addresses of their neighbors."""
_UNUSUAL_ID_BYTES: Final = 400
"""Of each further id: a fabric joins devices by it."""
_MAX_POOL_BYTES: Final = 16 << 20
"""When the pool is full, it is emptied: parts that many reports share return soon, and parts of a
single report would only waste memory. A node may write reports without a common part for ever."""
_Part = TypeVar("_Part", bound=Hashable)


def _weigh(report: CompactReport) -> int:
    """Return the bytes of a report in memory, its facts as they are when a fabric is built."""
    sweep, facts = report.sweep, report.facts
    size = _weigh_status(report.status) + (len(sweep.facts) if sweep else 0)
    if facts is None:
        return size
    num_neighbors = facts.num_neighbors
    # A host's neighbors above `MAX_HOST_NEIGHBORS` are left out, but were read before.
    num_unusual = max(0, num_neighbors - _USUAL_NEIGHBORS) if facts.kind is DeviceKind.HOST else 0
    size += num_neighbors * _NEIGHBOR_BYTES + num_unusual * _UNUSUAL_NEIGHBOR_BYTES
    num_usual_ids = num_neighbors * _USUAL_IDS.get(facts.kind, _MOST_USUAL_IDS)
    size += max(0, facts.num_neighbor_ids - num_usual_ids) * _UNUSUAL_ID_BYTES
    return size + facts.num_bytes


def _weigh_status(status: ReportStatus) -> int:
    standing = status.sweeping
    subnets = (*standing.failed, *standing.refused) if standing else ()
    outcomes = (one.name + one.message for one in status.collectors)
    lists = (*status.flapping, *subnets, *outcomes)
    return _OBJECT_BYTES + sum(_OBJECT_BYTES // 10 + len(text) for text in lists)


def _weigh_ports(ports: tuple[SweptPort, ...]) -> int:
    texts = (len(port.subnet) + len(port.name) + len(port.rdma_device or "") for port in ports)
    return sum(_PORT_BYTES + size for size in texts)


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
        self._pool_bytes = 0

    def __call__(self, document: object) -> CompactReport:
        """Return the report in a decoded object, as `parse_stored_report` does.

        Raises:
            ReportError: as `parse_stored_report` does.
        """
        if self._pool_bytes > _MAX_POOL_BYTES:
            self._pool, self._pool_bytes = {}, 0
        report = compact_document(document, parse_stored_report)
        facts = report.facts
        if facts is not None:
            ports = facts.swept_ports
            facts = facts._replace(swept_ports=self._intern(ports, _weigh_ports(ports)))
        return replace(report, status=self._intern_status(report.status), facts=facts)

    def _intern_status(self, status: ReportStatus) -> ReportStatus:
        """Return an equal status from the pool; if only its parts are known, made of them."""
        known: ReportStatus | None = self._pool.get(status)
        if known is not None:
            return known
        outcomes = tuple(map(self._intern, status.collectors))
        update = {"collectors": self._intern(outcomes), "sweeping": self._intern(status.sweeping)}
        return self._intern(status.model_copy(update=update), _weigh_status(status))

    def _intern(self, part: _Part, num_bytes: int = 0) -> _Part:
        """Return an equal part from the pool, or add this one.

        Args:
            part: to share.
            num_bytes: that it takes besides the parts which are in the pool already.
        """
        num_before = len(self._pool)
        known: _Part = self._pool.setdefault(part, part)
        if len(self._pool) > num_before:
            self._pool_bytes += _ENTRY_BYTES + num_bytes
        return known
