"""The cluster as a store that is always current: a list once, then a watch for each kind.

Reading costs no request. Before the first list of a kind is complete, nothing is known of it, and
that is an error, not an empty list; afterwards the last state stands while the server is away.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from types import TracebackType
from typing import Any, Self, TypeVar

from generator.inventory import Inventory, ListedNode
from generator.kube.pacing import Pace
from generator.kube.reflector import Reflector
from generator.kube.resources import HYPERNODES, NODES, REPORTS, Resource
from generator.kube.transport import Transport
from generator.outputs.hypernode import HyperNode, parse_manifest
from generator.store.cluster import ClusterStore, Told, parse_kube_node, reports_of, told_by
from generator.store.directory import ReadHyperNodes, ReadReports
from topology.errors import KubeUnavailable
from topology.report import NeighborReport
from topology.stored_reports import parse_stored_report

Value = TypeVar("Value")


class FollowedCluster:
    """Reports, nodes and HyperNodes of a cluster; a `Target` of plans. Follows in its context."""

    def __init__(self, transport: Transport, *, pace: Pace, on_change: Callable[[], None]) -> None:
        """Ask nothing yet.

        Args:
            transport: to the API server.
            pace: how to wait, and until when: the context wishes its end.
            on_change: called after something changed, in a thread of ours; must return soon.
        """
        self._store = ClusterStore(transport, pace=pace)
        self._ending = pace.ending

        def tell(_: object) -> None:
            on_change()

        self._reports: Reflector[NeighborReport] = Reflector(
            transport, REPORTS, parse=parse_stored_report, on_change=tell, pace=pace
        )
        self._nodes: Reflector[ListedNode] = Reflector(
            transport, NODES, parse=parse_kube_node, on_change=tell, pace=pace
        )
        self._hypernodes: Reflector[HyperNode] = Reflector(
            transport, HYPERNODES, parse=parse_manifest, on_change=tell, pace=pace
        )
        self._threads = [
            Thread(target=one.run, name=f"follow {resource.plural}")
            for resource, one in self._followed
        ]

    @property
    def _followed(self) -> tuple[tuple[Resource, Reflector[Any]], ...]:
        return (REPORTS, self._reports), (NODES, self._nodes), (HYPERNODES, self._hypernodes)

    def __enter__(self) -> Self:
        """Begin to follow."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it, within moments."""
        self._ending.wish()
        for thread in self._threads:
            thread.join()

    @property
    def is_synced(self) -> bool:
        """Whether all kinds have been listed once."""
        return all(one.is_synced for _, one in self._followed)

    @property
    def problems(self) -> tuple[str, ...]:
        """Why kinds cannot be followed at the moment; empty while all are current."""
        return tuple(one.problem for _, one in self._followed if one.problem)

    def read_reports(self) -> ReadReports:
        """Return all reports.

        Raises:
            KubeUnavailable: they were never listed.
        """
        return reports_of(_known(REPORTS, self._reports))

    def read_nodes(self) -> Inventory:
        """Return the nodes with what a job may use of them.

        Raises:
            KubeUnavailable: they were never listed.
        """
        found = _known(NODES, self._nodes)
        return Inventory(found.values, found.problems)

    def read_hypernodes(self) -> ReadHyperNodes:
        """Return all HyperNodes, ours and foreign ones.

        Raises:
            KubeUnavailable: they were never listed.
        """
        return ReadHyperNodes(*_known(HYPERNODES, self._hypernodes))

    def put(self, hypernode: HyperNode) -> bool:
        """Create or replace a HyperNode, as `ClusterStore` does."""
        return self._store.put(hypernode)

    def remove(self, name: str) -> bool:
        """Delete a HyperNode, as `ClusterStore` does."""
        return self._store.remove(name)


def _known(resource: Resource, reflector: Reflector[Value]) -> Told[Value]:
    if not reflector.is_synced:
        why = f": {reflector.problem}" if reflector.problem else ""
        raise KubeUnavailable(f"{resource.plural} are not listed yet{why}")
    return told_by(reflector.cache, resource)
