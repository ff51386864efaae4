"""Lists of a cluster's objects, as the values that a store returns. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from generator.kube.cache import Cache
from generator.kube.resources import NODES, RECORDS, Resource
from generator.objects.inventory import ListedNode, parse_node
from generator.objects.tree_record import RECORD_NAME, parse_tree_record
from generator.outputs.hypernode import HyperNode, build_unreadable, parse_manifest
from generator.outputs.object_names import is_object_name
from generator.store.base import StoredHyperNodes, StoredRecord, StoredReports
from topology.model.errors import ConfigError, ParseError
from topology.reports.compact_reports import CompactReport
from topology.reports.report_objects import is_withdrawn

Value = TypeVar("Value")


class ObjectListing(NamedTuple, Generic[Value]):
    """The known objects of a kind."""

    values: tuple[Value, ...]
    """Sorted by name."""
    problems: tuple[ParseError, ...]
    num_objects: int
    """The number of objects, good or bad."""
    refused: tuple[str, ...] = ()
    """The names of the bad objects."""


def build_listing(cache: Cache[Value], resource: Resource) -> ObjectListing[Value]:
    """Return the objects of a cache; the source of each problem starts with the object's kind."""
    problems = tuple(
        ParseError(problem.problem, source=f"{resource.kind} {problem.source}")
        for problem in cache.problems
    )
    refused = tuple(problem.source for problem in cache.problems)
    return ObjectListing(cache.values, problems, len(cache.values) + len(problems), refused)


def build_stored_reports(listing: ObjectListing[CompactReport]) -> StoredReports:
    """Return the reports of a listing, without withdrawn parts of sweeps."""
    reports = tuple(report for report in listing.values if not is_withdrawn(report))
    return StoredReports(reports, listing.problems, listing.num_objects)


def build_stored_hypernodes(listing: ObjectListing[HyperNode]) -> StoredHyperNodes:
    """Return the HyperNodes of a listing; the name of an object that cannot be read is taken."""
    unreadable = (build_unreadable(name) for name in listing.refused if is_object_name(name))
    hypernodes = sorted((*listing.values, *unreadable), key=lambda hypernode: hypernode.name)
    return StoredHyperNodes(tuple(hypernodes), listing.problems, listing.num_objects)


def parse_kube_node(item: Mapping[str, Any]) -> ListedNode:
    """Return the node of a list item; items of built-in kinds have no `kind` field.

    Raises:
        ConfigError: a field that is used is malformed.
    """
    return parse_node({**item, "kind": NODES.kind})


def build_stored_record(document: Mapping[str, Any] | None) -> StoredRecord:
    """Return the record of a decoded TreeRecord; None: there is none."""
    if document is None:
        return StoredRecord()
    try:
        return StoredRecord(parse_tree_record(document))
    except ConfigError as error:
        source = f"{RECORDS.kind} {RECORD_NAME}"
        return StoredRecord(problems=(ParseError(str(error), source=source),))


def is_own_hypernode(document: Mapping[str, Any]) -> bool:
    """Return whether a decoded HyperNode can be read and is ours."""
    try:
        return parse_manifest(document).is_ours
    except ConfigError:
        return False
