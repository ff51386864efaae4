"""A cluster as a store: reports, nodes and HyperNodes are objects of the API server.

It reads the same values as `store.directory`, and is a `HyperNodeStore` for plans as well. An
unusable object becomes a problem that names it, and affects no other object. No answer is an error,
never an empty list.
"""

from __future__ import annotations

import random  # noqa: TID251 - this is an edge: it spreads retries
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from time import monotonic
from typing import Any, Final, NamedTuple, TypeVar

from generator.kube.access import ClusterAccess
from generator.kube.applier import Applier, Fence, RetryPolicy, never_fenced, retry_request
from generator.kube.cache import Cache, Parse
from generator.kube.credentials import find_credentials
from generator.kube.paged_list import DEFAULT_PAGING, Paging, list_into_cache
from generator.kube.quota import Quota
from generator.kube.resources import (
    FABRICS,
    HYPERNODES,
    NODES,
    PODS,
    RECORDS,
    REPORTS,
    Resource,
)
from generator.kube.transport import KubeRequest, KubeTransport, Transport, decode_object
from generator.objects.inventory import Inventory, list_node_problems
from generator.objects.pod_resources import parse_pod_usage, subtract_usage
from generator.objects.pods import Gang, find_gangs, parse_gang_pod
from generator.objects.tree_record import RECORD_NAME, TreeRecord, render_tree_record
from generator.objects.write_policy import (
    APPROVED_PLAN_ANNOTATION,
    check_approval,
    parse_write_policy,
    with_approval,
)
from generator.outputs.hypernode import HyperNode, parse_manifest, render_manifest
from generator.store.base import StoredHyperNodes, StoredRecord, StoredReports
from generator.store.interned_reports import REPORT_QUOTA, ReportInterner
from generator.store.listed_objects import (
    ObjectListing,
    build_listing,
    build_stored_hypernodes,
    build_stored_record,
    build_stored_reports,
    is_own_hypernode,
    parse_kube_node,
)
from generator.store.write_conflicts import ForeignObject, find_version, retry_on_conflict
from runtime.retry import TokenBucket, WaitContext
from runtime.stop import Stop
from topology.model.errors import KubeNotFound
from topology.reports.fabric_status import FABRIC_NAME
from topology.reports.neighbor_report import NeighborReport, render_report

Value = TypeVar("Value")

WRITES_PER_SECOND: Final = 10
BURST: Final = 100
_RETRY_POLICY: Final = RetryPolicy(max_attempts=4)
RUNNING_PODS: Final = Paging(query=(("fieldSelector", "status.phase=Running"),))
"""Lists only running pods."""
UNENDED_PODS: Final = Paging(
    query=(("fieldSelector", "status.phase!=Succeeded,status.phase!=Failed,spec.nodeName!="),)
)
"""Lists only pods that use resources of a node."""
SMALL_PAGES: Final = Paging(page_size=50)
"""For reports: the report of a switch has 60 KB, and needs ten times as much while decoded."""


class WrittenObject(NamedTuple):
    """An object after a write."""

    document: Mapping[str, Any]
    is_changed: bool
    """False if the object already had this content, and no write was sent."""


class ClusterStore:
    """The objects of one cluster; a `HyperNodeStore` for plans."""

    def __init__(
        self, transport: Transport, *, pace: WaitContext, fence: Fence = never_fenced
    ) -> None:
        """Send no request yet.

        Args:
            transport: to the API server.
            pace: how to wait, and the stop request.
            fence: returns for how long writes may still be sent.
        """
        self._transport = transport
        self._pace = pace
        bucket = TokenBucket(
            per_second=WRITES_PER_SECOND, burst=BURST, clock=pace.clock, pause=pace.stop.wait
        )
        self._applier = Applier(transport, bucket=bucket, pace=pace, fence=fence)
        self._record_version: str | None = None

    def read_reports(self) -> StoredReports:
        """Return all reports.

        Raises:
            KubeError: the objects cannot be listed.
        """
        listing = self.read_objects(REPORTS, ReportInterner(), SMALL_PAGES, quota=REPORT_QUOTA)
        return build_stored_reports(listing)

    def read_hypernodes(self) -> StoredHyperNodes:
        """Return all HyperNodes, ours and foreign ones.

        Raises:
            KubeError: the objects cannot be listed.
        """
        return build_stored_hypernodes(self.read_objects(HYPERNODES, parse_manifest))

    def read_nodes(self) -> Inventory:
        """Return the nodes with the resources that jobs may use.

        Raises:
            KubeError: the objects cannot be listed.
        """
        listing = self.read_objects(NODES, parse_kube_node)
        problems = (*listing.problems, *list_node_problems(listing.values))
        return Inventory(listing.values, problems)

    def read_free_nodes(self) -> Inventory:
        """Return the nodes with their free capacity: without the resources of their pods.

        Raises:
            KubeError: nodes or pods cannot be listed.
        """
        inventory = self.read_nodes()
        pods = self.read_objects(PODS, parse_pod_usage, UNENDED_PODS)
        free = subtract_usage(inventory, pods.values)
        return free._replace(problems=(*free.problems, *pods.problems))

    def read_pods(self) -> tuple[Mapping[str, Any], ...]:
        """Return the unparsed pods that are on a node and have not ended.

        Raises:
            KubeError: the objects cannot be listed.
        """
        return self.read_objects(PODS, dict, UNENDED_PODS).values

    def write_report(self, report: NeighborReport) -> None:
        """Write a report of a switch: its spec, then its status.

        Raises:
            KubeError: the server refused the request, or did not answer.
        """
        document = render_report(report)
        head = {key: document[key] for key in ("apiVersion", "kind", "metadata")}
        self._applier.apply(REPORTS, head | {"spec": document["spec"]}, is_ours=True)
        status = head | {"status": document.get("status", {})}
        self._applier.apply(REPORTS, status, subresource="status", is_ours=True)

    def withdraw_report(self, name: str) -> None:
        """Delete the report of a switch, if it exists; policies allow no other report.

        Raises:
            KubeConflict: another client wrote the report just now.
            KubeError: the server refused the request, or did not answer.
        """
        observed = self._get(REPORTS, name)
        if observed is not None:
            self._applier.delete(REPORTS, observed)

    def put(self, hypernode: HyperNode) -> bool:
        """Create or replace a HyperNode; return False if the cluster has this content already.

        Raises:
            KubeError: the server refused the request, or did not answer.
            KubeConflict: an object of another client has this name.
        """
        return self.write(hypernode).is_changed

    def write(self, hypernode: HyperNode) -> WrittenObject:
        """Create or replace a HyperNode, and return the server's object.

        Raises:
            KubeError: the server refused the request, or did not answer.
            KubeConflict: an object of another client has this name.
        """

        def attempt() -> WrittenObject:
            observed = self._get_own(hypernode.name)
            desired = render_manifest(hypernode)
            is_ours = observed is not None
            document = self._applier.apply(HYPERNODES, desired, observed, is_ours=is_ours)
            return WrittenObject(document, document is not observed)

        return retry_on_conflict(attempt)

    def take_over(self, hypernode: HyperNode, seen: HyperNode) -> bool:
        """Replace a HyperNode of another client, unless it was changed since it was seen."""
        document = self._get(HYPERNODES, hypernode.name)
        if document is None or parse_manifest(document) != seen:
            raise ForeignObject(f"HyperNode {hypernode.name} was changed; plan again")
        return bool(
            self._applier.apply(HYPERNODES, render_manifest(hypernode), document, is_ours=True)
        )

    def remove(self, name: str) -> bool:
        """Delete a HyperNode; return whether it existed.

        Raises:
            KubeError: the server refused the request, or did not answer.
            KubeConflict: an object of another client has this name.
        """
        return self.delete(name) is not None

    def delete(self, name: str) -> Mapping[str, Any] | None:
        """Delete a HyperNode, and return its last state; None if it did not exist.

        Raises:
            KubeError: the server refused the request, or did not answer.
            KubeConflict: an object of another client has this name.
        """

        def attempt() -> Mapping[str, Any] | None:
            observed = self._get_own(name)
            if observed is None or not self._applier.delete(HYPERNODES, observed):
                return None
            return observed

        return retry_on_conflict(attempt)

    def read_gangs(self) -> tuple[Gang, ...]:
        """Return the gangs that run on two nodes or more.

        Raises:
            KubeError: pods cannot be listed.
        """
        pods = self.read_objects(PODS, parse_gang_pod, RUNNING_PODS).values
        return find_gangs(pod for pod in pods if pod is not None)

    def read_fabric(self) -> Mapping[str, Any] | None:
        """Return the Fabric object, or None if there is none.

        Raises:
            KubeError: the object cannot be read.
        """
        return self._get(FABRICS, FABRIC_NAME)

    def write_status(
        self, status: Mapping[str, Any], document: Mapping[str, Any] | None
    ) -> WrittenObject:
        """Replace the status of the Fabric object, and return the whole object.

        Args:
            status: the whole status.
            document: the object as last read; None creates it.

        Raises:
            KubeError: the server refused the request, or did not answer.
        """
        name = {"name": FABRIC_NAME}
        head = {"apiVersion": FABRICS.api_version, "kind": FABRICS.kind, "metadata": name}
        if document is None:
            document = self._applier.apply(FABRICS, head)
        # Only we write the status, so it does not matter whether people changed other fields.
        metadata = {
            key: value for key, value in document["metadata"].items() if key != "resourceVersion"
        }
        known = {**document, "metadata": metadata}
        answer = self._applier.apply(
            FABRICS, head | {"status": status}, known, subresource="status", is_ours=True
        )
        is_changed = answer is not known
        return WrittenObject(answer if is_changed else document, is_changed=is_changed)

    def read_record(self) -> StoredRecord:
        """Return the record of the HyperNodes that were decided last.

        Raises:
            KubeError: the object cannot be read.
        """
        document = self._get(RECORDS, RECORD_NAME)
        self._record_version = find_version(document)
        return build_stored_record(document)

    def write_record(self, record: TreeRecord, *, version: str | None = None) -> WrittenObject:
        """Write the record, and return the server's object.

        Args:
            record: what is decided.
            version: of the record that the decision follows from, empty if there was none. None:
                the version that was read last from here.

        Raises:
            KubeConflict: another program has decided since.
            KubeError: the server refused the request, or did not answer.
        """
        desired = render_tree_record(record)
        expected = self._record_version if version is None else version

        def attempt() -> WrittenObject:
            observed = self._get(RECORDS, RECORD_NAME)
            is_written = observed is not None and observed.get("spec") == desired["spec"]
            if not is_written and expected not in (None, find_version(observed)):
                raise ForeignObject(
                    f"TreeRecord {RECORD_NAME} has changed: another program decided"
                )
            document = self._applier.apply(RECORDS, desired, observed, is_ours=True)
            return WrittenObject(document, document is not observed)

        return retry_on_conflict(attempt)

    def approve(self, plan: str) -> None:
        """Approve a held plan.

        Raises:
            ConfigError: the text is not the hash of the held plan.
            KubeError: there is no Fabric object, so no plan is held; or the server refused the
                write.
        """
        check_approval(self.read_fabric(), plan)
        annotations = with_approval(None, plan)["metadata"]["annotations"]
        try:
            self._applier.patch(FABRICS, FABRIC_NAME, {"metadata": {"annotations": annotations}})
        except KubeNotFound as error:
            raise KubeNotFound(
                f"nothing to approve: there is no Fabric {FABRIC_NAME} in the cluster; the first "
                "round of `toponaut serve --kube` creates it"
            ) from error

    def consume_approval(self, plan: str) -> Mapping[str, Any] | None:
        """Remove the approval of a plan that was applied; return the object, None without one.

        Raises:
            KubeError: the server refused the request, or did not answer.
        """

        def attempt() -> Mapping[str, Any] | None:
            document = self.read_fabric()
            if document is None or not parse_write_policy(document).is_approved(plan):
                return None
            version = document["metadata"]["resourceVersion"]
            metadata = {"resourceVersion": version, "annotations": {APPROVED_PLAN_ANNOTATION: None}}
            return self._applier.patch(FABRICS, FABRIC_NAME, {"metadata": metadata})

        return retry_on_conflict(attempt)

    def _get_own(self, name: str) -> Mapping[str, Any] | None:
        """Return our own HyperNode of this name, or None if there is none."""
        document = self._get(HYPERNODES, name)
        if document is not None and not is_own_hypernode(document):
            raise ForeignObject(f"HyperNode {name} is not managed by Toponaut, or cannot be read")
        return document

    def _get(self, resource: Resource, name: str) -> Mapping[str, Any] | None:
        request = KubeRequest("GET", resource.path(name))
        try:
            body = self._retry_request(
                lambda: self._transport.ask(request, timeout_s=_RETRY_POLICY.request_timeout_s)
            )
        except KubeNotFound:
            return None
        return decode_object(str(request), body)

    def read_objects(
        self,
        resource: Resource,
        parse: Parse[Value],
        paging: Paging = DEFAULT_PAGING,
        *,
        quota: Quota[Value] | None = None,
    ) -> ObjectListing[Value]:
        """Return all objects of a kind, as far as the quota allows.

        Raises:
            KubeError: the objects cannot be listed.
        """
        cache = Cache(parse, quota)
        self._retry_request(
            lambda: list_into_cache(cache, self._transport, resource, paging=paging)
        )
        return build_listing(cache, resource)

    def _retry_request(self, ask: Callable[[], Value]) -> Value:
        return retry_request(ask, pace=self._pace, policy=_RETRY_POLICY)


@contextmanager
def open_cluster(access: ClusterAccess, environ: Mapping[str, str]) -> Iterator[ClusterStore]:
    """Yield the store of a cluster, and close its connections at the end.

    Raises:
        ConfigError: there are no credentials, or they are not usable.
    """
    load = find_credentials(kubeconfig=access.kubeconfig, context=access.context, environ=environ)
    with closing(KubeTransport(load)) as transport:
        pace = WaitContext(Stop(), monotonic, random.SystemRandom().uniform)
        yield ClusterStore(transport, pace=pace)
