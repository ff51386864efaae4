"""Makes a report fit into an object of the API server. Pure.

A report is a few KB. A report that is too large has ports with very many neighbors: behind a hub,
or because an attacker floods a port with made-up neighbors. Such a port does not show its cabling
anyway, so its neighbors are left out, the most crowded port first, and the report's status says so.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from msgspec.structs import replace

from topology.model.errors import show
from topology.reports.neighbor_report import (
    MAX_TEXT,
    CollectorOutcome,
    NeighborReport,
    ReportPort,
    render_part,
    render_report,
)

MAX_OBJECT_BYTES: Final = 1_200_000
"""The limit of a rendered report; etcd takes 1.5 MiB, including the server's own fields."""
MAX_NEIGHBORS: Final = 256
"""Neighbor entries of a host; the generator leaves out what is more, and asks whether the agent
wrote the report."""
OUTCOME_NAME: Final = "report"
"""The name of the additional entry among a status's collectors if neighbors were left out."""


class FittedReport(NamedTuple):
    """A report within the size limit, if that is possible."""

    report: NeighborReport
    crowded: tuple[str, ...]
    """The ports without their neighbors, in the report's order."""
    size_bytes: int


def fit_report(report: NeighborReport, limit: int = MAX_OBJECT_BYTES) -> FittedReport:
    """Return the report; if it is too large, without the neighbors of its most crowded ports.

    It is too large if it has more than `limit` bytes, or more than `MAX_NEIGHBORS` neighbors.

    Cost: O(bytes), and again as much if it is too large.
    """
    size = _size(render_report(report))
    num_neighbors = sum(len(port.neighbors) for port in report.spec.ports)
    if size <= limit and num_neighbors <= MAX_NEIGHBORS:
        return FittedReport(report, (), size)
    excess, excess_neighbors, crowded = size - limit, num_neighbors - MAX_NEIGHBORS, set[int]()
    for num_bytes, index in sorted(_measure_ports(report.spec.ports), reverse=True):
        if (excess <= 0 and excess_neighbors <= 0) or not num_bytes:
            break
        excess -= num_bytes
        excess_neighbors -= len(report.spec.ports[index].neighbors)
        crowded.add(index)
    if not crowded:
        return FittedReport(report, (), size)
    names = tuple(report.spec.ports[index].name for index in sorted(crowded))
    ports = tuple(
        replace(port, neighbors=()) if index in crowded else port
        for index, port in enumerate(report.spec.ports)
    )
    outcomes = (*report.status.collectors, _outcome(names))
    fitted = replace(
        report,
        spec=replace(report.spec, ports=ports),
        status=replace(report.status, collectors=outcomes),
    )
    return FittedReport(fitted, names, _size(render_report(fitted)))


def _measure_ports(ports: tuple[ReportPort, ...]) -> list[tuple[int, int]]:
    """Return (bytes of the neighbors, index) of each port."""
    sizes = []
    for index, port in enumerate(ports):
        neighbors = [render_part(neighbor) for neighbor in port.neighbors]
        sizes.append((_size(neighbors) if neighbors else 0, index))
    return sizes


def _outcome(names: tuple[str, ...]) -> CollectorOutcome:
    shown = ", ".join(show(name) for name in names)
    message = f"report too large: left out the neighbors of crowded ports: {shown}"[:MAX_TEXT]
    return CollectorOutcome(name=OUTCOME_NAME, outcome="failed", message=message)


def _size(value: object) -> int:
    return len(json.dumps(value))
