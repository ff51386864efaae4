"""A cluster as a store that is always current: for each kind one list, then a watch.

Reading costs no request. Reading a kind before its first list is complete is an error, not an empty
list. Later, while the server is unavailable, the last state is used. Our own writes are returned at
once, although the watch reports them a moment later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Thread
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, TypeVar

from generator.kube.applier import Fence, never_fenced
from generator.kube.cache import Parse
from generator.kube.reflector import Reflector, ReflectorConfig
from generator.kube.resources import (
    FABRICS,
    HYPERNODES,
    NODES,
    PODS,
    RECORDS,
    REPORTS,
    Resource,
)
from generator.kube.transport import Transport
from generator.objects.inventory import Inventory, ListedNode, list_node_problems
from generator.objects.pod_resources import FreeInventory
from generator.objects.pods import (
    BoundPod,
    FollowedPod,
    Gang,
    RunningPod,
    find_gangs,
    find_unready_agents,
    parse_followed_pod,
)
from generator.objects.tree_record import RECORD_NAME, TreeRecord, parse_tree_record
from generator.outputs.hypernode import HyperNode, parse_manifest
from generator.store.base import StoredHyperNodes, StoredRecord, StoredReports
from generator.store.cluster import SMALL_PAGES, UNENDED_PODS, ClusterStore
from generator.store.interned_reports import REPORT_QUOTA, ReportInterner
from generator.store.listed_objects import (
    ObjectListing,
    build_listing,
    build_stored_hypernodes,
    build_stored_reports,
    parse_kube_node,
)
from generator.store.own_writes import OwnWrites
from runtime.retry import WaitContext
from topology.model.errors import KubeUnavailable
from topology.reports.compact_reports import CompactReport, compact_report
from topology.reports.fabric_status import FABRIC_NAME
from topology.reports.neighbor_report import NeighborReport

Value = TypeVar("Value")

_DEFAULT_CONFIG: Final = ReflectorConfig()
_POD_CONFIG: Final = ReflectorConfig(UNENDED_PODS)
_REPORT_CONFIG: Final = ReflectorConfig(SMALL_PAGES, quota=REPORT_QUOTA)


class _FollowSettings(NamedTuple):
    """The arguments that the reflectors of all kinds share."""

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
    """A cluster's objects as a `ServedStore`; follows them within its context."""

    def __init__(
        self,
        transport: Transport,
        *,
        pace: WaitContext,
        on_change: Callable[[], None],
        fence: Fence = never_fenced,
        agent_namespace: str = "",
    ) -> None:
        """Send no request yet.

        Args:
            transport: to the API server.
            pace: how to wait, and the stop request, which the end of the context sets.
            on_change: called after a change, in a thread of ours; must return soon.
            fence: returns for how long writes may still be sent.
            agent_namespace: the namespace in which pods count as agents.
        """
        self._agent_namespace = agent_namespace
        self._store = ClusterStore(transport, pace=pace, fence=fence)
        self._stop = pace.stop

        def notify(_: object) -> None:
            on_change()

        follow = _FollowSettings(transport, pace, notify)
        self._reports: Reflector[CompactReport] = follow(REPORTS, ReportInterner(), _REPORT_CONFIG)
        self._nodes: Reflector[ListedNode] = follow(NODES, parse_kube_node)
        self._hypernodes: Reflector[HyperNode] = follow(HYPERNODES, parse_manifest)
        self._fabrics: Reflector[Mapping[str, Any]] = follow(FABRICS, _add_kind)
        self._pods: Reflector[FollowedPod | None] = follow(PODS, parse_followed_pod, _POD_CONFIG)
        self._records: Reflector[TreeRecord] = follow(RECORDS, _parse_record)
        self._free_capacity = FreeInventory()
        self._own_hypernodes: OwnWrites[HyperNode] = _build_own_writes(self._hypernodes)
        self._own_fabrics: OwnWrites[Mapping[str, Any]] = _build_own_writes(self._fabrics)
        self._own_records: OwnWrites[TreeRecord] = _build_own_writes(self._records)
        self._record_version = ""
        """Of the record that was read or written last."""
        self._threads = [
            Thread(target=reflector.run, name=f"follow {resource.plural}")
            for resource, reflector in self._reflectors
        ]

    @property
    def _reflectors(self) -> tuple[tuple[Resource, Reflector[Any]], ...]:
        return (
            (REPORTS, self._reports),
            (NODES, self._nodes),
            (HYPERNODES, self._hypernodes),
            (FABRICS, self._fabrics),
            (RECORDS, self._records),
            (PODS, self._pods),
        )

    def __enter__(self) -> Self:
        """Start to follow the objects."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop following, within moments."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    @property
    def is_synced(self) -> bool:
        """Whether all kinds were listed once; a cluster without Volcano has no HyperNodes."""
        return all(
            reflector.is_synced or (resource is HYPERNODES and reflector.is_missing)
            for resource, reflector in self._reflectors
        )

    @property
    def is_alive(self) -> bool:
        """Whether the threads of all kinds still run, with or without success."""
        return all(thread.is_alive() for thread in self._threads)

    @property
    def watches(self) -> Mapping[str, int]:
        """The number of complete lists and started watches, by the plural of each kind."""
        return {
            resource.plural: reflector.num_lists + reflector.num_watches
            for resource, reflector in self._reflectors
        }

    @property
    def has_agent_tokens(self) -> bool:
        """Return True: a policy binds each report to the node of the agent's token."""
        return True

    @property
    def problems(self) -> tuple[str, ...]:
        """Why kinds cannot be followed at the moment; empty while all are current."""
        return tuple(
            reflector.problem
            for resource, reflector in self._reflectors
            if reflector.problem and not (resource is HYPERNODES and reflector.is_missing)
        )

    def read_reports(self) -> StoredReports:
        """Return all reports.

        Raises:
            KubeUnavailable: the objects were never listed.
        """
        return build_stored_reports(_build_known_listing(REPORTS, self._reports))

    def read_inventory(self) -> Inventory:
        """Return the nodes with their free capacity; only one thread may call this.

        Raises:
            KubeUnavailable: nodes or pods were never listed.
        """
        nodes, pods = (
            _build_known_listing(NODES, self._nodes),
            _build_known_listing(PODS, self._pods),
        )
        own = list_node_problems(nodes.values)
        inventory = Inventory(nodes.values, (*nodes.problems, *own, *pods.problems))
        return self._free_capacity.subtract(
            inventory, (pod.resource_usage for pod in pods.values if pod is not None)
        )

    def read_bound_pods(self) -> tuple[BoundPod, ...]:
        """Return the pods of gangs that are bound to a node.

        Raises:
            KubeUnavailable: pods were never listed.
        """
        pods = _build_known_listing(PODS, self._pods).values
        return tuple(pod.bound for pod in pods if pod is not None and pod.bound is not None)

    def read_hypernodes(self) -> StoredHyperNodes:
        """Return all HyperNodes, ours and foreign ones; none where Volcano's CRD is missing.

        Raises:
            KubeUnavailable: the objects were never listed.
        """
        if self._hypernodes.is_missing:
            return StoredHyperNodes((), (), 0, is_missing=True)
        listing = _build_known_listing(HYPERNODES, self._hypernodes)
        pending = self._own_hypernodes.pending()
        if pending:
            by_name = {hypernode.name: hypernode for hypernode in listing.values} | pending
            current = (value for _, value in sorted(by_name.items()) if value is not None)
            refused = tuple(name for name in listing.refused if name not in pending)
            listing = listing._replace(values=tuple(current), refused=refused)
        return build_stored_hypernodes(listing)

    def read_gangs(self) -> tuple[Gang, ...]:
        """Return the gangs that run on two nodes or more.

        Raises:
            KubeUnavailable: pods were never listed.
        """
        return find_gangs(_select_running(self._pods))

    def read_unready_agents(self) -> frozenset[str]:
        """Return the nodes whose agent does not collect.

        Raises:
            KubeUnavailable: pods were never listed.
        """
        return find_unready_agents(_select_running(self._pods), self._agent_namespace)

    def read_fabric(self) -> Mapping[str, Any] | None:
        """Return the Fabric object, or None if there is none.

        Raises:
            KubeUnavailable: Fabric objects were never listed.
        """
        known = {
            document["metadata"]["name"]: document
            for document in _build_known_listing(FABRICS, self._fabrics).values
        }
        return (known | self._own_fabrics.pending()).get(FABRIC_NAME)

    def write_status(self, status: Mapping[str, Any]) -> bool:
        """Replace the status of the Fabric object, as `ClusterStore` does."""
        written = self._store.write_status(status, self.read_fabric())
        self._record_fabric(written.document)
        return written.is_changed

    def consume_approval(self, plan: str) -> bool:
        """Remove the approval of a plan, as `ClusterStore` does."""
        document = self._store.consume_approval(plan)
        if document is None:
            return False
        self._record_fabric(document)
        return True

    def read_record(self) -> StoredRecord:
        """Return the record of the HyperNodes that were decided last.

        Raises:
            KubeUnavailable: the objects were never listed.
        """
        pending = self._own_records.pending().get(RECORD_NAME)
        if pending is None:
            self._record_version = self._records.cache.version_of(RECORD_NAME)
        listing = _build_known_listing(RECORDS, self._records)
        record = pending or next(iter(listing.values), None)
        return StoredRecord(record, () if pending else listing.problems)

    def write_record(self, record: TreeRecord) -> bool:
        """Write the record, as `ClusterStore` does, unless it has changed since it was read."""
        written = self._store.write_record(record, version=self._record_version)
        self._record_version = written.document["metadata"]["resourceVersion"]
        self._own_records.record(RECORD_NAME, self._record_version, record)
        return written.is_changed

    def write_report(self, report: NeighborReport) -> bool:
        """Write a report of a switch, unless only its time would change."""
        known = {
            known_report.metadata.name: known_report
            for known_report in _build_known_listing(REPORTS, self._reports).values
        }
        last = known.get(report.metadata.name)
        if last is not None and _drop_time(last) == _drop_time(compact_report(report)):
            return False
        self._store.write_report(report)
        return True

    def withdraw_report(self, name: str) -> None:
        """Delete the report of a switch, as `ClusterStore` does; no request if it is unknown."""
        if any(report.metadata.name == name for report in self.read_reports().reports):
            self._store.withdraw_report(name)

    def put(self, hypernode: HyperNode) -> bool:
        """Create or replace a HyperNode, as `ClusterStore` does."""
        written = self._store.write(hypernode)
        version = written.document["metadata"]["resourceVersion"]
        self._own_hypernodes.record(hypernode.name, version, parse_manifest(written.document))
        return written.is_changed

    def remove(self, name: str) -> bool:
        """Delete a HyperNode, as `ClusterStore` does."""
        deleted = self._store.delete(name)
        if deleted is None:
            return False
        self._own_hypernodes.record(name, deleted["metadata"]["resourceVersion"], None)
        return True

    def _record_fabric(self, document: Mapping[str, Any]) -> None:
        self._own_fabrics.record(FABRIC_NAME, document["metadata"]["resourceVersion"], document)


def _add_kind(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a list item with its `apiVersion` and `kind`, which list items do not have."""
    return {"apiVersion": FABRICS.api_version, "kind": FABRICS.kind, **item}


def _parse_record(item: Mapping[str, Any]) -> TreeRecord:
    """Return the record of a list item, which has no `apiVersion` and `kind`."""
    return parse_tree_record({"apiVersion": RECORDS.api_version, "kind": RECORDS.kind, **item})


def _drop_time(report: CompactReport) -> tuple[object, ...]:
    """Return the content of a report without its time: a new time alone is not written."""
    return report.content, report.status.model_copy(update={"observed_at": None})


def _build_own_writes(reflector: Reflector[Value]) -> OwnWrites[Value]:
    return OwnWrites(reflector.cache.version_of, lambda: reflector.version)


def _select_running(reflector: Reflector[FollowedPod | None]) -> tuple[RunningPod, ...]:
    pods = _build_known_listing(PODS, reflector).values
    running = (pod.running for pod in pods if pod is not None)
    return tuple(pod for pod in running if pod is not None)


def _build_known_listing(resource: Resource, reflector: Reflector[Value]) -> ObjectListing[Value]:
    if not reflector.is_synced:
        reason = f": {reflector.problem}" if reflector.problem else ""
        raise KubeUnavailable(f"{resource.plural} are not listed yet{reason}")
    return build_listing(reflector.cache, resource)
