"""Reports of a cluster: packed when they arrive, and weighed for the quota of the sender. Pure."""

from __future__ import annotations

from typing import Final

from generator.kube.quota import Quota
from topology.model.facts import DeviceKind
from topology.reports.neighbor_report import ReportStatus
from topology.reports.packed_reports import PackedReport, pack_report
from topology.reports.report_objects import parse_stored_report

_OBJECT_BYTES: Final = 1000
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


def read_stored_report(document: object) -> PackedReport:
    """Return the report in a decoded object, as `parse_stored_report` does.

    Raises:
        ReportError: as `parse_stored_report` does.
    """
    return pack_report(parse_stored_report(document))


def _weigh(report: PackedReport) -> int:
    """Return the bytes of a report in memory, its facts as they are when a fabric is built."""
    device, size = report.device, _weigh_status(report.status)
    if device is None:
        return size + (len(report.sweep.facts) if report.sweep else 0)
    entries = [neighbor for port in device.ports for neighbor in port.neighbors]
    # A host's neighbors above `MAX_HOST_NEIGHBORS` are left out, but were read before.
    num_unusual = max(0, len(entries) - _USUAL_NEIGHBORS) if device.kind is DeviceKind.HOST else 0
    size += len(entries) * _NEIGHBOR_BYTES + num_unusual * _UNUSUAL_NEIGHBOR_BYTES
    num_ids = sum(len(entry.device_ids) + len(entry.port_ids) for entry in entries)
    num_usual_ids = len(entries) * _USUAL_IDS.get(device.kind, _MOST_USUAL_IDS)
    return size + max(0, num_ids - num_usual_ids) * _UNUSUAL_ID_BYTES + report.num_bytes


def _weigh_status(status: ReportStatus) -> int:
    standing = status.sweeping
    subnets = (*standing.failed, *standing.refused) if standing else ()
    outcomes = (one.name + one.message for one in status.collectors)
    lists = (*status.flapping, *subnets, *outcomes)
    return _OBJECT_BYTES + sum(_OBJECT_BYTES // 10 + len(text) for text in lists)


REPORT_QUOTA: Final = Quota(
    limit_bytes=192 << 20,
    find_sender=lambda name: name.partition(".sweep.")[0],
    weigh=_weigh,
)
"""25,000 hosts with 8 HCAs each take 100 MiB, with 8 LLDP neighbors each 170 MiB, and a sweep of
200,000 HCAs takes 15 MiB."""
