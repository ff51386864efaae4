"""The interface of a store that a server uses, for a folder or a cluster.

Reading is cheap enough for every round: only changed objects are read again. A write is complete or
fails with a `TopologyError`, and the next read returns what was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol

from generator.objects.inventory import Inventory
from generator.objects.pods import BoundPod, Gang
from generator.objects.tree_record import TreeRecord
from generator.outputs.hypernode import HyperNode
from topology.model.errors import ParseError
from topology.reports.compact_reports import Report
from topology.reports.neighbor_report import NeighborReport

NO_VOLCANO: Final = (
    "the cluster serves no HyperNodes: install Volcano, or list other outputs in spec.outputs of "
    "the Fabric object"
)


class StoredReports(NamedTuple):
    """The reports of a store."""

    reports: tuple[Report, ...]
    """One report per name, sorted by name."""
    problems: tuple[ParseError, ...]
    num_files: int
    """The number of files or objects, good or bad."""
    refused_files: tuple[ParseError, ...] = ()
    """Those of the problems that are about files of which at least one object cannot be used."""


class StoredHyperNodes(NamedTuple):
    """The HyperNodes of a store."""

    hypernodes: tuple[HyperNode, ...]
    """One HyperNode per name, sorted by name. An object that cannot be read is one without members:
    its name is taken."""
    problems: tuple[ParseError, ...]
    num_files: int
    """The number of files or objects, good or bad."""
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


class ServedStore(Protocol):
    """Reads reports, nodes and gangs; reads and writes HyperNodes and the Fabric object."""

    @property
    def is_synced(self) -> bool:
        """Whether everything was read once."""
        ...

    @property
    def has_agent_tokens(self) -> bool:
        """Whether each report is from an agent with a token of its own, which may write no other.

        In a folder, anyone who can write a report can write everything else as well.
        """
        ...

    @property
    def problems(self) -> tuple[str, ...]:
        """Why some objects may not be current at the moment; already logged."""
        ...

    def read_reports(self) -> StoredReports:
        """Return all reports; the identical value if none changed.

        Raises:
            TopologyError: the reports are not known, which does not mean that there are none.
        """
        ...

    def read_hypernodes(self) -> StoredHyperNodes:
        """Return all HyperNodes, ours and foreign ones.

        Raises:
            TopologyError: the HyperNodes are not known.
        """
        ...

    def read_inventory(self) -> Inventory | None:
        """Return the cluster's nodes, or None if the store has no list of nodes.

        Raises:
            TopologyError: the nodes are not known.
        """
        ...

    def read_gangs(self) -> tuple[Gang, ...]:
        """Return the gangs that run on more than one node, if this store knows pods.

        Raises:
            TopologyError: the pods are not known.
        """
        ...

    def read_bound_pods(self) -> tuple[BoundPod, ...]:
        """Return the pods of gangs that are bound to a node, if this store knows pods.

        Read the bound pods before the inventory, so that the inventory's free capacity already
        excludes every pod that was returned.

        Raises:
            TopologyError: the pods are not known.
        """
        ...

    def read_unready_agents(self) -> frozenset[str] | None:
        """Return the nodes whose agent does not collect; None if the age of reports shows it.

        Raises:
            TopologyError: the pods are not known.
        """
        ...

    def read_fabric(self) -> Mapping[str, Any] | None:
        """Return the Fabric object, or None if there is none.

        Raises:
            TopologyError: the object is not known.
        """
        ...

    def write_status(self, status: Mapping[str, Any]) -> bool:
        """Replace the status of the Fabric object; return False if it has this status already.

        Creates the object if it does not exist.
        """
        ...

    def consume_approval(self, plan: str) -> bool:
        """Remove the approval of a plan that was applied; return whether there was one."""
        ...

    def write_report(self, report: NeighborReport) -> bool:
        """Write a report of a switch that we walked; return False if nothing is new."""
        ...

    def withdraw_report(self, name: str) -> None:
        """Delete the report of a switch that another report replaced, if it exists."""
        ...

    def read_record(self) -> StoredRecord:
        """Return the record of the HyperNodes that were decided last.

        Raises:
            TopologyError: it is not known whether there is a record.
        """
        ...

    def write_record(self, record: TreeRecord) -> bool:
        """Write the record; return False if this record is there already."""
        ...

    def put(self, hypernode: HyperNode) -> bool:
        """Create or replace a HyperNode; return whether anything was written."""
        ...

    def remove(self, name: str) -> bool:
        """Delete a HyperNode; return whether it was there."""
        ...
