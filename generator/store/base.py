"""What a generator that serves needs of its store, be it a folder or a cluster.

Reading is cheap enough for every round: only what changed is read anew. A write is done whole or
fails with a `TopologyError`, and what was written is what is read next.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from generator.objects.inventory import Inventory
from generator.objects.pods import BoundPod, Gang
from generator.outputs.hypernode import HyperNode
from generator.store.directory import StoredHyperNodes, StoredReports
from topology.model.errors import ParseError
from topology.reports.neighbor_report import NeighborReport


class FabricRead(NamedTuple):
    """The Fabric object as one round read it."""

    document: Mapping[str, Any] | None = None
    """None if there is no such object, or it could not be read."""
    problems: tuple[ParseError, ...] = ()
    """Why it could not be read."""


class ServedStore(Protocol):
    """Reports, nodes and gangs in; HyperNodes and the Fabric object in and out."""

    @property
    def is_synced(self) -> bool:
        """Whether all of it was read once."""
        ...

    @property
    def problems(self) -> tuple[str, ...]:
        """Why something of it may not be current at the moment, which is logged already."""
        ...

    def read_reports(self) -> StoredReports:
        """Return all reports; the very same value where none changed.

        Raises:
            TopologyError: they are not known, which is not to say that there are none.
        """
        ...

    def read_hypernodes(self) -> StoredHyperNodes:
        """Return all HyperNodes, ours and foreign ones.

        Raises:
            TopologyError: they are not known.
        """
        ...

    def read_inventory(self) -> Inventory | None:
        """Return the cluster's nodes, None where nobody lists them.

        Raises:
            TopologyError: they are not known.
        """
        ...

    def read_gangs(self) -> tuple[Gang, ...]:
        """Return what runs on more than one node, as far as this store tells of it.

        Raises:
            TopologyError: it is not known.
        """
        ...

    def read_bound_pods(self) -> tuple[BoundPod, ...]:
        """Return the pods of gangs that have a node, as far as this store tells of them.

        Read it before the inventory: what it holds is then taken off there.

        Raises:
            TopologyError: they are not known.
        """
        ...

    def read_unready_agents(self) -> frozenset[str] | None:
        """Return the nodes whose agent does not collect; None where ages of reports tell it.

        Raises:
            TopologyError: it is not known.
        """
        ...

    def read_fabric(self) -> Mapping[str, Any] | None:
        """Return the Fabric object, None where there is none.

        Raises:
            TopologyError: it is not known.
        """
        ...

    def write_status(self, status: Mapping[str, Any]) -> bool:
        """Replace the status of the Fabric object; return False where it says so already.

        Where there is no such object, it is made.
        """
        ...

    def consume_approval(self, plan: str) -> bool:
        """Take back the approval of a plan that was carried out; return whether there was one."""
        ...

    def write_report(self, report: NeighborReport) -> bool:
        """Write a report of a switch that we walked; return False where it says nothing new."""
        ...

    def withdraw_report(self, name: str) -> None:
        """Let the report of a switch go that another one replaced; nothing where there is none."""
        ...

    def put(self, hypernode: HyperNode) -> bool:
        """Create or replace a HyperNode; return whether anything was written."""
        ...

    def remove(self, name: str) -> bool:
        """Delete a HyperNode; return whether it was there."""
        ...
