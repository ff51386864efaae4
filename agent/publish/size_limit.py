"""Makes a report fit into an object of the API server. Pure.

A report is a few KB. One that is too large hears crowds: a hub, or somebody who floods a port with
made-up neighbors. Of such a port nobody can tell what it is cabled to, so its neighbors are what
is left out, the most crowded port first, and the report's status says so.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from topology.model.errors import show
from topology.reports.neighbor_report import (
    MAX_TEXT,
    CollectorOutcome,
    NeighborReport,
    ReportPort,
    render_report,
)

MAX_OBJECT_BYTES: Final = 1_200_000
"""Of a rendered report; etcd takes 1.5 MiB, in which the server's own fields count too."""
OUTCOME_NAME: Final = "report"
"""Stands among the collectors of a status where something was left out."""


class FittedReport(NamedTuple):
    """A report that fits, if that can be."""

    report: NeighborReport
    crowded: tuple[str, ...]
    """Ports whose neighbors were left out, in the report's order."""
    size_bytes: int


def fit_report(report: NeighborReport, limit: int = MAX_OBJECT_BYTES) -> FittedReport:
    """Return the report, without the neighbors of its most crowded ports where it is too large.

    Cost: O(bytes), and again as much where it is too large.
    """
    size = _size(render_report(report))
    if size <= limit:
        return FittedReport(report, (), size)
    excess, crowded = size - limit, set[int]()
    for weight, at in sorted(_measure_ports(report.spec.ports), reverse=True):
        if excess <= 0 or not weight:
            break
        excess -= weight
        crowded.add(at)
    if not crowded:
        return FittedReport(report, (), size)
    names = tuple(report.spec.ports[at].name for at in sorted(crowded))
    ports = tuple(
        port.model_copy(update={"neighbors": ()}) if at in crowded else port
        for at, port in enumerate(report.spec.ports)
    )
    fitted = report.model_copy(
        update={
            "spec": report.spec.model_copy(update={"ports": ports}),
            "status": report.status.model_copy(
                update={"collectors": (*report.status.collectors, _outcome(names))}
            ),
        }
    )
    return FittedReport(fitted, names, _size(render_report(fitted)))


def _measure_ports(ports: tuple[ReportPort, ...]) -> list[tuple[int, int]]:
    """Return of each port the bytes of its neighbors, and its place."""
    rendered = (
        [heard.model_dump(mode="json", by_alias=True, exclude_defaults=True) for heard in heards]
        for heards in (port.neighbors for port in ports)
    )
    return [(_size(heards) if heards else 0, at) for at, heards in enumerate(rendered)]


def _outcome(names: tuple[str, ...]) -> CollectorOutcome:
    shown = ", ".join(show(name) for name in names)
    message = f"too large: the neighbors of crowded ports are left out: {shown}"[:MAX_TEXT]
    return CollectorOutcome(name=OUTCOME_NAME, outcome="failed", message=message)


def _size(value: object) -> int:
    return len(json.dumps(value))
