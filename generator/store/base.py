"""What is read from a store, in a folder or a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from generator.kube.cache import Listing
from generator.objects.tree_record import TreeRecord
from generator.outputs.hypernode.model import HyperNode
from topology.model.errors import ParseError
from topology.reports.packed_reports import PackedReport
from topology.reports.report_objects import is_withdrawn

NO_VOLCANO: Final = (
    "the cluster serves no HyperNodes: install Volcano, or list other outputs in spec.outputs of "
    "the Fabric object"
)


class StoredReports(NamedTuple):
    """The reports of a store."""

    reports: tuple[PackedReport, ...] = ()
    """One report per name, sorted by name."""
    problems: tuple[ParseError, ...] = ()
    refused: Mapping[str, ParseError] = MappingProxyType({})
    """Those of the problems that are about a file or an object that an agent wrote, by its name."""


class StoredHyperNodes(NamedTuple):
    """The HyperNodes of a store."""

    hypernodes: tuple[HyperNode, ...] = ()
    """One HyperNode per name, sorted by name. An object that cannot be read is one without members:
    its name is taken."""
    problems: tuple[ParseError, ...] = ()
    is_missing: bool = False
    """Whether the cluster does not serve the kind: there are none, and none can be written."""


class StoredRecord(NamedTuple):
    """The HyperNodes that were decided last."""

    record: TreeRecord | None = None
    """None if there is no record, or it cannot be read."""
    problems: tuple[ParseError, ...] = ()


class FabricRead(NamedTuple):
    """The Fabric object as one round read it."""

    document: Mapping[str, Any] | None = None
    """None if there is no such object, or it could not be read."""
    problems: tuple[ParseError, ...] = ()
    """Why it could not be read."""


def build_stored_reports(listing: Listing[PackedReport]) -> StoredReports:
    """Return the reports of a listing, without withdrawn parts of sweeps."""
    reports = tuple(report for report in listing.values if not is_withdrawn(report.sweep))
    return StoredReports(reports, listing.all_problems, listing.refused)
