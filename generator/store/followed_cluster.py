"""The cluster as a store that is always current: a list once, then a watch for each kind.

Reading costs no request. Before the first list of a kind is complete, nothing is known of it, and
that is an error, not an empty list; afterwards the last state stands while the server is away.
What was written is read back at once, although the watch tells it a moment later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Thread
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, TypeVar

from generator.kube.applier import Fence, never_fenced
from generator.kube.cache import Parse
from generator.kube.reflector import Reflector, ReflectorConfig
from generator.kube.resources import FABRICS, HYPERNODES, NODES, PODS, REPORTS, Resource
from generator.kube.transport import Transport
from generator.objects.inventory import Inventory, ListedNode
from generator.objects.pod_resources import FreeCapacity
from generator.objects.pods import (
    BoundPod,
    FollowedPod,
    Gang,
    RunningPod,
    find_unready_agents,
    find_gangs,
    parse_followed_pod,
)
from generator.outputs.hypernode import HyperNode, parse_manifest
from generator.store.cluster import (
    SMALL_PAGES,
    UNENDED_PODS,
    ClusterStore,
    ObjectListing,
    parse_kube_node,
    build_stored_reports,
    build_listing,
)
from generator.store.directory import StoredHyperNodes, StoredReports
from generator.store.interned_reports import ReportInterner
from generator.store.own_writes import OwnWrites
from runtime.retry import WaitContext
from topology.model.errors import KubeUnavailable
from topology.reports.compact_reports import CompactReport, compact_report
from topology.reports.fabric_status import FABRIC_NAME
from topology.reports.neighbor_report import NeighborReport

Value = TypeVar("Value")

_DEFAULT_CONFIG: Final = ReflectorConfig()
_POD_CONFIG: Final = ReflectorConfig(UNENDED_PODS)
_REPORT_CONFIG: Final = ReflectorConfig(SMALL_PAGES)


class _FollowSettings(NamedTuple):
    """How all kinds are followed."""

    transport: Transport
    pace: WaitContext
    on_change: Callable[[object], None]

    def __call__(
        self, resource: Resource, parse: Parse[Value], settings: ReflectorConfig = _DEFAULT_CONFIG
    ) -> Reflector[Value]:
        return Reflector(
            self.transport,
            resource,
            parse=parse,
            on_change=self.on_change,
            pace=self.pace,
            config=settings,
        )


class FollowedCluster:
    """A cluster's objects as a `ServedStore`. Follows them within its context."""

    def __init__(
        self,
        transport: Transport,
        *,
        pace: WaitContext,
        on_change: Callable[[], None],
        fence: Fence = never_fenced,
    ) -> None:
        """Ask nothing yet.

        Args:
            transport: to the API server.
            pace: how to wait, and until when: the context wishes its end.
            on_change: called after something changed, in a thread of ours; must return soon.
            fence: for how long writes may still be sent.
        """
        self._store = ClusterStore(transport, pace=pace, fence=fence)
        self._stop = pace.stop

        def tell(_: object) -> None:
            on_change()

        follow = _FollowSettings(transport, pace, tell)
        self._reports: Reflector[CompactReport] = follow(REPORTS, ReportInterner(), _REPORT_CONFIG)
        self._nodes: Reflector[ListedNode] = follow(NODES, parse_kube_node)
        self._hypernodes: Reflector[HyperNode] = follow(HYPERNODES, parse_manifest)
        self._fabrics: Reflector[Mapping[str, Any]] = follow(FABRICS, _add_kind)
        self._pods: Reflector[FollowedPod | None] = follow(PODS, parse_followed_pod, _POD_CONFIG)
        self._free_capacity = FreeCapacity()
        self._own_hypernodes: OwnWrites[HyperNode] = _build_own_writes(self._hypernodes)
        self._own_fabrics: OwnWrites[Mapping[str, Any]] = _build_own_writes(self._fabrics)
        self._threads = [
            Thread(target=one.run, name=f"follow {resource.plural}")
            for resource, one in self._reflectors
        ]

    @property
    def _reflectors(self) -> tuple[tuple[Resource, Reflector[Any]], ...]:
        return (
            (REPORTS, self._reports),
            (NODES, self._nodes),
            (HYPERNODES, self._hypernodes),
            (FABRICS, self._fabrics),
            (PODS, self._pods),
        )

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
        self._stop.set()
        for thread in self._threads:
            thread.join()

    @property
    def is_synced(self) -> bool:
        """Whether all kinds have been listed once."""
        return all(one.is_synced for _, one in self._reflectors)

    @property
    def is_alive(self) -> bool:
        """Whether every kind is still followed, be it with success or not."""
        return all(thread.is_alive() for thread in self._threads)

    @property
    def watches(self) -> Mapping[str, int]:
        """Lists made and watches begun so far, by the plural of each kind."""
        return {
            resource.plural: one.num_lists + one.num_watches for resource, one in self._reflectors
        }

    @property
    def problems(self) -> tuple[str, ...]:
        """Why kinds cannot be followed at the moment; empty while all are current."""
        return tuple(one.problem for _, one in self._reflectors if one.problem)

    def read_reports(self) -> StoredReports:
        """Return all reports.

        Raises:
            KubeUnavailable: they were never listed.
        """
        return build_stored_reports(_build_known_listing(REPORTS, self._reports))

    def read_inventory(self) -> Inventory:
        """Return the nodes with what the pods there leave of them; for one thread.

        Raises:
            KubeUnavailable: nodes or pods were never listed.
        """
        nodes, pods = (
            _build_known_listing(NODES, self._nodes),
            _build_known_listing(PODS, self._pods),
        )
        inventory = Inventory(nodes.values, (*nodes.problems, *pods.problems))
        return self._free_capacity.subtract(
            inventory, (pod.resource_usage for pod in pods.values if pod is not None)
        )

    def read_bound_pods(self) -> tuple[BoundPod, ...]:
        """Return the pods of gangs that have a node.

        Raises:
            KubeUnavailable: pods were never listed.
        """
        pods = _build_known_listing(PODS, self._pods).values
        return tuple(pod.bound for pod in pods if pod is not None and pod.bound is not None)

    def read_hypernodes(self) -> StoredHyperNodes:
        """Return all HyperNodes, ours and foreign ones.

        Raises:
            KubeUnavailable: they were never listed.
        """
        found = _build_known_listing(HYPERNODES, self._hypernodes)
        pending = self._own_hypernodes.pending()
        if pending:
            known = {one.name: one for one in found.values} | pending
            there = (one for _, one in sorted(known.items()) if one is not None)
            found = found._replace(values=tuple(there))
        return StoredHyperNodes(*found)

    def read_gangs(self) -> tuple[Gang, ...]:
        """Return what runs on two nodes or more.

        Raises:
            KubeUnavailable: pods were never listed.
        """
        return find_gangs(_select_running(self._pods))

    def read_unready_agents(self) -> frozenset[str]:
        """Return the nodes whose agent does not collect.

        Raises:
            KubeUnavailable: pods were never listed.
        """
        return find_unready_agents(_select_running(self._pods))

    def read_fabric(self) -> Mapping[str, Any] | None:
        """Return the Fabric object, None where there is none.

        Raises:
            KubeUnavailable: it was never asked for.
        """
        known = {
            one["metadata"]["name"]: one
            for one in _build_known_listing(FABRICS, self._fabrics).values
        }
        return (known | self._own_fabrics.pending()).get(FABRIC_NAME)

    def write_status(self, status: Mapping[str, Any]) -> bool:
        """Replace the status of the Fabric object, as `ClusterStore` does."""
        written = self._store.write_status(status, self.read_fabric())
        self._record_fabric(written.document)
        return written.is_changed

    def consume_approval(self, plan: str) -> bool:
        """Take back the approval of a plan, as `ClusterStore` does."""
        document = self._store.consume_approval(plan)
        if document is None:
            return False
        self._record_fabric(document)
        return True

    def write_report(self, report: NeighborReport) -> bool:
        """Write a report of a switch, unless only its time would be new."""
        known = {
            one.metadata.name: one for one in _build_known_listing(REPORTS, self._reports).values
        }
        last = known.get(report.metadata.name)
        if last is not None and _drop_time(last) == _drop_time(compact_report(report)):
            return False
        self._store.write_report(report)
        return True

    def withdraw_report(self, name: str) -> None:
        """Delete the report of a switch, as `ClusterStore` does; no request where none is known."""
        if any(one.metadata.name == name for one in self.read_reports().reports):
            self._store.withdraw_report(name)

    def put(self, hypernode: HyperNode) -> bool:
        """Create or replace a HyperNode, as `ClusterStore` does."""
        written = self._store.write(hypernode)
        version = written.document["metadata"]["resourceVersion"]
        self._own_hypernodes.record(hypernode.name, version, parse_manifest(written.document))
        return written.is_changed

    def remove(self, name: str) -> bool:
        """Delete a HyperNode, as `ClusterStore` does."""
        gone = self._store.delete(name)
        if gone is None:
            return False
        self._own_hypernodes.record(name, gone["metadata"]["resourceVersion"], None)
        return True

    def _record_fabric(self, document: Mapping[str, Any]) -> None:
        self._own_fabrics.record(FABRIC_NAME, document["metadata"]["resourceVersion"], document)


def _add_kind(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an object as it is; an item of a list does not say its kind."""
    return {"apiVersion": FABRICS.api_version, "kind": FABRICS.kind, **found}


def _drop_time(report: CompactReport) -> tuple[object, ...]:
    """Return what a report says but for its time, which alone is no reason to write."""
    return report.content, report.status.model_copy(update={"observed_at": None})


def _build_own_writes(reflector: Reflector[Value]) -> OwnWrites[Value]:
    return OwnWrites(reflector.cache.version_of, lambda: reflector.version)


def _select_running(reflector: Reflector[FollowedPod | None]) -> tuple[RunningPod, ...]:
    found = (pod.running for pod in _build_known_listing(PODS, reflector).values if pod is not None)
    return tuple(pod for pod in found if pod is not None)


def _build_known_listing(resource: Resource, reflector: Reflector[Value]) -> ObjectListing[Value]:
    if not reflector.is_synced:
        why = f": {reflector.problem}" if reflector.problem else ""
        raise KubeUnavailable(f"{resource.plural} are not listed yet{why}")
    return build_listing(reflector.cache, resource)
