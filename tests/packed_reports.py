"""Reports in the form in which the generator keeps them."""

from collections.abc import Iterable

from topology.reports.neighbor_report import NeighborReport
from topology.reports.packed_reports import PackedReport, pack_report


def packed(reports: Iterable[NeighborReport]) -> tuple[PackedReport, ...]:
    """Return the reports as a store returns them."""
    return tuple(map(pack_report, reports))
