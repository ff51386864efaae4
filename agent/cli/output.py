"""The output format, and the text output: aligned columns, with untrusted text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from runtime.options import Choice, option
from topology.model.errors import show
from topology.model.facts import show_number
from topology.reports.neighbor_report import NeighborReport, ReportNeighbor, ReportPort

_GIGA = 1_000_000_000


OUTPUT: Final = option(
    "Output format.",
    "--output",
    "-o",
    default="text",
    type=Choice(["text", "json", "yaml"]),
)


def render_text(reports: Sequence[NeighborReport]) -> str:
    """Return the node's report, its sweep, and the outcome of each collector as text."""
    node = reports[0]
    lines = [f"node {show(node.metadata.name)}"]
    if node.spec.device is not None:
        ids = [(str(id_.type), show(id_.value)) for id_ in node.spec.device.ids]
        lines += [f"  {line}" for line in align_columns(ids)]
    rows_of_ports = [row for port in node.spec.ports for row in _port_rows(port)]
    if rows_of_ports:
        header = ("PORT", "MEDIUM", "STATE", "RATE", "NEIGHBOR", "ITS PORT", "VIA")
        lines += ["", *align_columns([header, *rows_of_ports])]
    sweeps = [report.spec.sweep for report in reports if report.spec.sweep is not None]
    if sweeps:
        parts = show_number(sweeps[0].of, "part")
        lines += ["", f"sweep {sweeps[0].sweep_id} of subnet {sweeps[0].subnet}: {parts}"]
    outcomes = [
        (collector.name, collector.outcome, show(collector.message, 500))
        for collector in node.status.collectors
    ]
    lines += ["", *align_columns([("COLLECTOR", "OUTCOME", "MESSAGE"), *outcomes])]
    return "\n".join(lines)


def align_columns(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return rows of equal length as lines with aligned columns, without trailing blanks."""
    rows = list(rows)
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _port_rows(port: ReportPort) -> list[tuple[str, ...]]:
    rate = f"{port.rate_bps / _GIGA:g}G" if port.rate_bps else "-"
    own = (show(port.name), str(port.medium), str(port.state), rate)
    rows: list[tuple[str, ...]] = [
        (*own, *_neighbor_cells(neighbor)) for neighbor in port.neighbors
    ]
    return rows or [(*own, "-", "-", "-")]


def _neighbor_cells(neighbor: ReportNeighbor) -> tuple[str, str, str]:
    ids = [id_.value for id_ in neighbor.ids]
    name = neighbor.name or (ids[0] if ids else "?")
    return show(name), show(neighbor.port_name) or "?", str(neighbor.source)
