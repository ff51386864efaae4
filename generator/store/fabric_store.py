"""The objects of one fabric, in a folder or a cluster: what is read, and the rules of each write.

It is the same for both: only our own HyperNodes are written, the record follows from the record
that was read, and an approval is used once. An unusable object becomes a problem that names it.

In a cluster, an agent knows its node's name. Elsewhere an agent reports under the name that its
host gives itself, which may be one of the host names of a listed node; then the report gets the
name of that node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import structs

from generator.kube.cache import Listing, StoredObject
from generator.objects.inventory import Inventory
from generator.objects.pods import (
    BoundPod,
    FollowedPod,
    FreeInventory,
    Gang,
    RunningPod,
    find_gangs,
    find_unready_agents,
)
from generator.objects.tree_record import RECORD_NAME, TreeRecord, render_tree_record
from generator.objects.write_policy import (
    APPROVED_PLAN_ANNOTATION,
    check_approval,
    parse_write_policy,
)
from generator.outputs.hypernode.model import (
    HyperNode,
    build_unreadable,
    parse_manifest,
    render_manifest,
)
from generator.outputs.owned_object import is_object_name
from generator.store.folder_store import FolderStore
from generator.store.kinds import FABRICS, HYPERNODES, PODS, RECORDS, REPORTS
from generator.store.object_folders import drop_withdrawn
from generator.store.object_store import (
    Document,
    ForeignObject,
    ObjectStore,
    StoreConflict,
    Written,
)
from topology.identity.node_names import build_node_names
from topology.model.errors import (
    ConfigError,
    KubeConflict,
    KubeNotFound,
    ParseError,
    StoreError,
    show,
)
from topology.model.facts import DeviceKind
from topology.reports.fabric_status import FABRIC_NAME, fabric_head
from topology.reports.neighbor_report import NeighborReport, render_report
from topology.reports.packed_reports import PackedReport, bind_to_node, pack_device, pack_report

Value = TypeVar("Value")

_MAX_ATTEMPTS: Final = 4
_SWEEP: Final = ".sweep."


class StoredRecord(NamedTuple):
    """The tree that was decided last."""

    record: TreeRecord | None = None
    """None if there is no record, or it cannot be read."""
    problems: tuple[ParseError, ...] = ()


class FabricStore:
    """Reads reports, nodes and gangs; reads and writes HyperNodes, the record and the Fabric."""

    def __init__(
        self, objects: ObjectStore, *, agent_namespace: str = "", is_shared: bool = False
    ) -> None:
        """Read nothing yet.

        Args:
            objects: the objects of a folder or a cluster.
            agent_namespace: the namespace in which pods count as agents.
            is_shared: whether another program may write despite the lock or the lease. Then each
                write of a HyperNode first checks that nobody has decided since.
        """
        self.objects = objects
        self._agent_namespace = agent_namespace
        self._is_shared = is_shared
        self._decision: str | None = None
        """The version of the record that was read or written last, empty if there was none; None:
        it was not read, or cannot be."""
        self._free_capacity = FreeInventory()
        self._named: tuple[object, object, Listing[PackedReport]] | None = None
        """The last reports and inventory, and these reports under the names in the inventory."""

    def read_reports(self) -> Listing[PackedReport]:
        """Return all reports but withdrawn parts of sweeps; the identical value if none changed.

        In a folder, a report gets the name of the listed node that its own name means.

        Raises:
            TopologyError: the reports are not known, which does not mean that there are none.
        """
        stored = self.objects.read(REPORTS)
        inventory = None if self.objects.has_agent_tokens else self.objects.read_nodes()
        if self._named is not None:
            last_stored, last_inventory, named = self._named
            if last_stored is stored and last_inventory is inventory:
                return named
        named = name_reports_as_listed(drop_withdrawn(stored), inventory)
        self._named = stored, inventory, named
        return named

    def write_report(self, report: NeighborReport) -> bool:
        """Write a report of a switch that we walked; return False if nothing is new.

        In a cluster, a new time alone is nothing new: pods show whether a report is fresh.

        Raises:
            TopologyError: the report cannot be written.
        """
        if self.objects.has_agent_tokens:
            known = self.objects.read(REPORTS).find(report.metadata.name)
            if known is not None and _drop_time(known.value) == _drop_time(pack_report(report)):
                return False
        return self.objects.apply(REPORTS, render_report(report)).is_changed

    def withdraw_report(self, name: str) -> None:
        """Delete the report of a switch that another report replaced, if it exists.

        Raises:
            TopologyError: the report cannot be deleted, or another client wrote it just now.
        """
        if self.objects.read(REPORTS).find(name) is not None:
            seen = self.objects.get(REPORTS, name)
            if seen is not None:
                self.objects.delete(REPORTS, seen)

    def read_inventory(self) -> Inventory | None:
        """Return the nodes with their free capacity, or None if there is no list of nodes.

        Only one thread may call this.

        Raises:
            TopologyError: nodes or pods are not known.
        """
        inventory, pods = self.objects.read_nodes(), self.objects.read(PODS)
        if inventory is None or pods.is_missing:
            return inventory
        return self._free_capacity.subtract(
            inventory._replace(problems=(*inventory.problems, *pods.all_problems)),
            (pod.resource_usage for pod in _select_pods(pods)),
        )

    def read_gangs(self) -> tuple[Gang, ...]:
        """Return the gangs that run on two nodes or more.

        Raises:
            TopologyError: the pods are not known.
        """
        return find_gangs(_select_running(self.objects.read(PODS)))

    def read_bound_pods(self) -> tuple[BoundPod, ...]:
        """Return the pods of gangs that are bound to a node.

        Read the bound pods before the inventory, so that the inventory's free capacity already
        excludes every pod that was returned.

        Raises:
            TopologyError: the pods are not known.
        """
        pods = _select_pods(self.objects.read(PODS))
        return tuple(pod.bound for pod in pods if pod.bound is not None)

    def read_unready_agents(self) -> frozenset[str] | None:
        """Return the nodes whose agent does not collect; None if the age of reports shows it.

        Raises:
            TopologyError: the pods are not known.
        """
        pods = self.objects.read(PODS)
        if pods.is_missing:
            return None
        return find_unready_agents(_select_running(pods), self._agent_namespace)

    def read_fabric(self) -> Mapping[str, Any] | None:
        """Return the Fabric object, or None if there is none.

        Raises:
            TopologyError: the object is not known.
        """
        found = self._find_fabric()
        return None if found is None else found.value

    def _find_fabric(self) -> StoredObject[Document] | None:
        listing = self.objects.read(FABRICS)
        refused = listing.refused.get(FABRIC_NAME)
        if refused is not None:
            raise StoreError(str(refused))
        return listing.find(FABRIC_NAME)

    def write_status(self, status: Mapping[str, Any]) -> bool:
        """Replace the status of the Fabric object; return False if it has this status already.

        Creates the object if it does not exist. Only we write the status, so it does not matter
        whether people have changed other fields since it was read.

        Raises:
            TopologyError: the object cannot be written.
        """
        found = self._find_fabric()
        seen = None if found is None else found._replace(version="")
        document = fabric_head() | {"status": dict(status)}
        return self.objects.apply(FABRICS, document, seen=seen).is_changed

    def approve(self, plan: str) -> None:
        """Approve a held plan.

        Raises:
            ConfigError: the text is not the hash of the held plan.
            TopologyError: the object cannot be written; in a cluster, also if there is none.
        """
        seen = self.objects.get(FABRICS, FABRIC_NAME)
        check_approval(None if seen is None else seen.value, plan)
        try:
            self._set_approval(plan, None)
        except KubeNotFound as error:
            raise KubeNotFound(
                f"nothing to approve: there is no Fabric {FABRIC_NAME} in the cluster; the first "
                "round of `toponaut serve --kube` creates it"
            ) from error

    def consume_approval(self, plan: str) -> bool:
        """Remove the approval of an applied plan, and return whether there was one.

        Raises:
            TopologyError: the object cannot be written.
        """

        def attempt() -> bool:
            seen = self.objects.get(FABRICS, FABRIC_NAME)
            if seen is None or not parse_write_policy(seen.value).is_approved(plan):
                return False
            self._set_approval(None, seen)
            return True

        return _retry_on_conflict(attempt)

    def _set_approval(self, plan: str | None, seen: StoredObject[Document] | None) -> None:
        change = {"metadata": {"annotations": {APPROVED_PLAN_ANNOTATION: plan}}}
        self.objects.patch(FABRICS, FABRIC_NAME, change, seen=seen)

    def read_record(self) -> StoredRecord:
        """Return the record of the HyperNodes that were decided last.

        A file that cannot be read is returned as a problem; the next record overwrites it.

        Raises:
            KubeError: the API server does not say whether a record exists.
        """
        try:
            listing = self.objects.read(RECORDS)
        except StoreError as error:
            return StoredRecord(problems=(ParseError(str(error)),))
        found, refused = listing.find(RECORD_NAME), listing.refused.get(RECORD_NAME)
        self._decision = None if refused else _version_of(found)
        return StoredRecord(found.value if found else None, (refused,) if refused else ())

    def write_record(self, record: TreeRecord) -> bool:
        """Write the record; return False if this record is there already.

        Raises:
            ForeignObject: another program has decided since the record was read.
            TopologyError: the object cannot be written.
        """

        def attempt() -> Written:
            seen = self._get_record()
            is_current = self._decision in (None, _version_of(seen))
            desired = render_tree_record(record)
            is_written = seen is not None and seen.value.get("spec") == desired["spec"]
            if not (is_written or is_current):
                raise ForeignObject(
                    f"TreeRecord {RECORD_NAME} has changed: another program decided"
                )
            return self.objects.apply(RECORDS, desired, seen=seen)

        written = _retry_on_conflict(attempt)
        self._decision = written.version
        return written.is_changed

    def _get_record(self) -> StoredObject[Document] | None:
        """Return the record as it is now; a file that cannot be read is replaced like none."""
        try:
            return self.objects.get(RECORDS, RECORD_NAME)
        except StoreError:
            return None

    def _check_decision(self) -> None:
        """Refuse to write if another program has decided since the record was read.

        Raises:
            ForeignObject: it has.
        """
        if not self._is_shared or self._decision is None:  # this user may not read the record
            return
        if _version_of(self._get_record()) != self._decision:
            raise ForeignObject("another program has decided meanwhile; run the command again")

    def read_hypernodes(self) -> Listing[HyperNode]:
        """Return all HyperNodes, ours and foreign ones.

        An object that cannot be read counts as a HyperNode without members: its name is taken.

        Raises:
            TopologyError: the HyperNodes are not known.
        """
        listing = self.objects.read(HYPERNODES)
        unreadable = (
            StoredObject(name, build_unreadable(name))
            for name in listing.refused
            if is_object_name(name)
        )
        rows = sorted((*listing.objects, *unreadable), key=lambda row: row.name)
        return listing._replace(objects=tuple(rows))

    def put(self, hypernode: HyperNode, taken: HyperNode | None = None) -> bool:
        """Create or replace a HyperNode; return False if it has this content already.

        Args:
            hypernode: the HyperNode, which is written as ours.
            taken: the one of another client that it replaces, as a person approved it.

        Raises:
            ForeignObject: an object of another client has this name, or the one that is taken over
                was changed or deleted since.
            TopologyError: the object cannot be written.
        """
        self._check_decision()

        def attempt() -> Written:
            seen = self._get_own(hypernode.name) if taken is None else self._get_same(taken)
            return self.objects.apply(HYPERNODES, render_manifest(hypernode), seen=seen)

        return _retry_on_conflict(attempt).is_changed

    def _get_same(self, hypernode: HyperNode) -> StoredObject[Document]:
        """Return the object of a HyperNode that nobody has changed."""
        found = self.objects.get(HYPERNODES, hypernode.name)
        if found is None or parse_manifest(found.value) != hypernode:
            raise ForeignObject(f"HyperNode {hypernode.name} was changed; plan again")
        return found

    def remove(self, name: str) -> bool:
        """Delete a HyperNode; return whether it existed.

        Raises:
            ForeignObject: an object of another client has this name.
            TopologyError: the object cannot be deleted.
        """
        self._check_decision()

        def attempt() -> bool:
            seen = self._get_own(name)
            return seen is not None and self.objects.delete(HYPERNODES, seen)

        return _retry_on_conflict(attempt)

    def _get_own(self, name: str) -> StoredObject[Document] | None:
        """Return our own HyperNode of this name, or None if there is none."""
        try:
            found = self.objects.get(HYPERNODES, name)
        except StoreError as error:
            raise ForeignObject(f"HyperNode {show(name)} stays unchanged: {error}") from error
        if found is not None and not _is_own(found.value):
            why = "it is not managed by Toponaut, or cannot be read"
            raise ForeignObject(f"HyperNode {name} stays unchanged: {why}")
        return found


def open_folder(root: Path, nodes: Path | None = None) -> FabricStore:
    """Return the store in a folder; arguments and errors as in `FolderStore`."""
    return FabricStore(FolderStore(root, nodes))


def _retry_on_conflict(attempt: Callable[[], Value]) -> Value:
    """Repeat a read and a write a few times if the object changed in between.

    Other clients write into our objects too: Volcano counts the nodes of each HyperNode in its
    status.

    Raises:
        KubeConflict: the object changed each time.
        StoreConflict: the same, in a folder.
    """
    for _ in range(_MAX_ATTEMPTS - 1):
        try:
            return attempt()
        except (KubeConflict, StoreConflict):
            continue
    return attempt()


def _version_of(found: StoredObject[Any] | None) -> str:
    return "" if found is None else found.version


def _is_own(document: Document) -> bool:
    """Return whether a HyperNode can be read and is ours."""
    try:
        return parse_manifest(document).is_ours
    except ConfigError:
        return False


def _select_running(pods: Listing[FollowedPod | None]) -> list[RunningPod]:
    return [pod.running for pod in _select_pods(pods) if pod.running is not None]


def _select_pods(pods: Listing[FollowedPod | None]) -> list[FollowedPod]:
    return [pod for pod in pods.values if pod is not None]


def _drop_time(report: PackedReport) -> tuple[object, ...]:
    """Return the content of a report without its time."""
    return report.content, structs.replace(report.status, observed_at=None)


def name_reports_as_listed(
    stored: Listing[PackedReport], inventory: Inventory | None
) -> Listing[PackedReport]:
    """Return the reports under the names of listed nodes, where a name means one such node.

    A node that reports under its own name keeps its report. The same object is returned if nothing
    changes.
    """
    listed = {node.name for node in inventory.nodes} if inventory else set[str]()
    hosts = {report.name for report in stored.values if report.device_kind is DeviceKind.HOST}
    unlisted = hosts - listed
    if inventory is None or not unlisted:
        return stored
    names = build_node_names(inventory.ids_by_node, unlisted)
    meant = {name: node for name in sorted(unlisted) if (node := names.find(name)) is not None}
    counts = Counter([*meant.values(), *(hosts & listed)])
    chosen = {name: node for name, node in meant.items() if counts[node] == 1}
    if not chosen:
        return stored
    renamed = (_rename(report, chosen) for report in stored.values)
    rows = (StoredObject(report.name, report) for report in renamed)
    return stored._replace(objects=tuple(sorted(rows, key=lambda row: row.name)))


def _rename(report: PackedReport, chosen: Mapping[str, str]) -> PackedReport:
    """Return a report of a node, or a part of its sweep, under the name of the node."""
    reporter, mark, part = report.name.partition(_SWEEP)
    node, device = chosen.get(reporter), report.device
    if node is None:
        return report
    if device is not None:
        return structs.replace(report, name=node, packed=pack_device(bind_to_node(device, node)))
    return structs.replace(report, name=f"{node}{mark}{part}")
