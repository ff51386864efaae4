"""The cluster as a store: reports, nodes and HyperNodes are objects of the API server.

It reads what `store.directory` reads of folders, and is a `HyperNodeStore` of plans as that is. An object
that cannot be used costs itself and is named. No answer is an error, never an empty list.
"""

from __future__ import annotations

import random  # noqa: TID251 - this is an edge: it spreads retries
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from time import monotonic
from typing import Any, Final, Generic, NamedTuple, TypeVar

from generator.kube.access import ClusterAccess
from generator.kube.applier import Applier, Fence, RetryPolicy, retry_request, never_fenced
from generator.kube.cache import Cache, Parse
from generator.kube.credentials import find_credentials
from generator.kube.listing import DEFAULT_PAGING, Paging, list_into_cache
from generator.kube.resources import FABRICS, HYPERNODES, NODES, PODS, REPORTS, Resource
from generator.kube.transport import KubeTransport, KubeRequest, Transport, decode_object
from generator.objects.inventory import Inventory, ListedNode, parse_node
from generator.objects.pod_resources import subtract_usage, parse_pod_usage
from generator.objects.pods import Gang, find_gangs, parse_gang_pod
from generator.objects.write_policy import (
    APPROVED_PLAN_ANNOTATION,
    parse_write_policy,
    with_approval,
)
from generator.outputs.hypernode import HyperNode, parse_manifest, render_manifest
from generator.store.directory import StoredHyperNodes, StoredReports
from generator.store.interned_reports import ReportInterner
from runtime.retry import WaitContext, TokenBucket
from runtime.stop import Stop
from topology.model.errors import KubeConflict, KubeNotFound, ParseError
from topology.reports.compact_reports import CompactReport
from topology.reports.fabric_status import FABRIC_NAME
from topology.reports.neighbor_report import NeighborReport, render_report
from topology.reports.report_objects import is_withdrawn

Value = TypeVar("Value")

WRITES_PER_SECOND: Final = 10
BURST: Final = 100
_RETRY_POLICY: Final = RetryPolicy(max_attempts=4)
_MAX_ATTEMPTS: Final = 4
RUNNING_PODS: Final = Paging(query=(("fieldSelector", "status.phase=Running"),))
"""Of pods only those."""
UNENDED_PODS: Final = Paging(
    query=(("fieldSelector", "status.phase!=Succeeded,status.phase!=Failed,spec.nodeName!="),)
)
"""Of pods those that take something of a node."""


SMALL_PAGES: Final = Paging(page_size=50)
"""Of reports: one of a switch has 60 KB, and ten times that while it is decoded."""


class ForeignObject(KubeConflict):
    """The object of this name is somebody else's, however often it is read."""


class WrittenObject(NamedTuple):
    """An object after a write."""

    document: Mapping[str, Any]
    is_changed: bool
    """False where it said all of it already, and nothing was sent."""


class ObjectListing(NamedTuple, Generic[Value]):
    """What is known of the objects of a kind."""

    values: tuple[Value, ...]
    """In order of their names."""
    problems: tuple[ParseError, ...]
    num_objects: int
    """Good or bad."""


def build_listing(cache: Cache[Value], resource: Resource) -> ObjectListing[Value]:
    """Return what a cache knows, its problems with the kind of their object."""
    problems = tuple(
        ParseError(one.problem, source=f"{resource.kind} {one.source}") for one in cache.problems
    )
    return ObjectListing(cache.values, problems, len(cache.values) + len(problems))


def build_stored_reports(told: ObjectListing[CompactReport]) -> StoredReports:
    """Return what is known of the reports; a part that was withdrawn is as good as not there."""
    there = tuple(report for report in told.values if not is_withdrawn(report))
    return StoredReports(there, told.problems, told.num_objects)


def parse_kube_node(found: Mapping[str, Any]) -> ListedNode:
    """Return the node of an item of a list: there built-in kinds do not say their kind.

    Raises:
        ConfigError: a field that counts is malformed.
    """
    return parse_node({**found, "kind": NODES.kind})


class ClusterStore:
    """The objects of one cluster; a `HyperNodeStore` of plans."""

    def __init__(
        self, transport: Transport, *, pace: WaitContext, fence: Fence = never_fenced
    ) -> None:
        """Ask nothing yet.

        Args:
            transport: to the API server.
            pace: how to wait, and until when.
            fence: for how long writes may still be sent.
        """
        self._transport = transport
        self._pace = pace
        bucket = TokenBucket(
            per_second=WRITES_PER_SECOND, burst=BURST, clock=pace.clock, pause=pace.stop.wait
        )
        self._applier = Applier(transport, bucket=bucket, pace=pace, fence=fence)

    def read_reports(self) -> StoredReports:
        """Return all reports.

        Raises:
            KubeError: they cannot be listed.
        """
        return build_stored_reports(self.read_objects(REPORTS, ReportInterner(), SMALL_PAGES))

    def read_hypernodes(self) -> StoredHyperNodes:
        """Return all HyperNodes, ours and foreign ones.

        Raises:
            KubeError: they cannot be listed.
        """
        return StoredHyperNodes(*self.read_objects(HYPERNODES, parse_manifest))

    def read_nodes(self) -> Inventory:
        """Return the nodes with what a job may use of them.

        Raises:
            KubeError: they cannot be listed.
        """
        found = self.read_objects(NODES, parse_kube_node)
        return Inventory(found.values, found.problems)

    def read_free_nodes(self) -> Inventory:
        """Return the nodes with what the pods there leave of them.

        Raises:
            KubeError: nodes or pods cannot be listed.
        """
        inventory = self.read_nodes()
        pods = self.read_objects(PODS, parse_pod_usage, UNENDED_PODS)
        left = subtract_usage(inventory, pods.values)
        return left._replace(problems=(*left.problems, *pods.problems))

    def read_pods(self) -> tuple[Mapping[str, Any], ...]:
        """Return the pods that are on a node and have not ended, as they are.

        Raises:
            KubeError: they cannot be listed.
        """
        return self.read_objects(PODS, dict, UNENDED_PODS).values

    def write_report(self, report: NeighborReport) -> None:
        """Write a report of a switch: what it says, then how that was found out.

        Raises:
            KubeError: it is refused, or there is no answer.
        """
        document = render_report(report)
        head = {key: document[key] for key in ("apiVersion", "kind", "metadata")}
        self._applier.apply(REPORTS, head | {"spec": document["spec"]}, is_ours=True)
        status = head | {"status": document.get("status", {})}
        self._applier.apply(REPORTS, status, subresource="status", is_ours=True)

    def withdraw_report(self, name: str) -> None:
        """Delete the report of a switch, if there is one; policies let it be no other.

        Raises:
            KubeConflict: somebody wrote it just now.
            KubeError: it is refused, or there is no answer.
        """
        observed = self._get(REPORTS, name)
        if observed is not None:
            self._applier.delete(REPORTS, observed)

    def put(self, hypernode: HyperNode) -> bool:
        """Create or replace a HyperNode; return False where the cluster says so already.

        Raises:
            KubeError: it is refused, or there is no answer.
            KubeConflict: somebody else's object has this name.
        """
        return self.write(hypernode).is_changed

    def write(self, hypernode: HyperNode) -> WrittenObject:
        """Create or replace a HyperNode, and return it as the server has it now.

        Raises:
            KubeError: it is refused, or there is no answer.
            KubeConflict: somebody else's object has this name.
        """

        def attempt() -> WrittenObject:
            observed = self._get_own(hypernode.name)
            wanted = render_manifest(hypernode)
            told = self._applier.apply(HYPERNODES, wanted, observed, is_ours=observed is not None)
            return WrittenObject(told, told is not observed)

        return _retry_on_conflict(attempt)

    def remove(self, name: str) -> bool:
        """Delete a HyperNode; return whether it was there.

        Raises:
            KubeError: it is refused, or there is no answer.
            KubeConflict: somebody else's object has this name.
        """
        return self.delete(name) is not None

    def delete(self, name: str) -> Mapping[str, Any] | None:
        """Delete a HyperNode, and return it as it was last; None where there was none.

        Raises:
            KubeError: it is refused, or there is no answer.
            KubeConflict: somebody else's object has this name.
        """

        def attempt() -> Mapping[str, Any] | None:
            observed = self._get_own(name)
            if observed is None or not self._applier.delete(HYPERNODES, observed):
                return None
            return observed

        return _retry_on_conflict(attempt)

    def read_gangs(self) -> tuple[Gang, ...]:
        """Return what runs on two nodes or more.

        Raises:
            KubeError: pods cannot be listed.
        """
        found = self.read_objects(PODS, parse_gang_pod, RUNNING_PODS).values
        return find_gangs(pod for pod in found if pod is not None)

    def read_fabric(self) -> Mapping[str, Any] | None:
        """Return the Fabric object, None where there is none.

        Raises:
            KubeError: it cannot be read.
        """
        return self._get(FABRICS, FABRIC_NAME)

    def write_status(
        self, status: Mapping[str, Any], document: Mapping[str, Any] | None
    ) -> WrittenObject:
        """Replace the status of the Fabric object, and return the whole.

        Args:
            status: all of it.
            document: as last read; None where there is none, which is then made.

        Raises:
            KubeError: it is refused, or there is no answer.
        """
        name = {"name": FABRIC_NAME}
        head = {"apiVersion": FABRICS.api_version, "kind": FABRICS.kind, "metadata": name}
        if document is None:
            document = self._applier.apply(FABRICS, head)
        # The status is ours alone, so it does not matter whether people changed the rest.
        metadata = {
            key: value for key, value in document["metadata"].items() if key != "resourceVersion"
        }
        known = {**document, "metadata": metadata}
        told = self._applier.apply(
            FABRICS, head | {"status": status}, known, subresource="status", is_ours=True
        )
        return WrittenObject(document if told is known else told, is_changed=told is not known)

    def approve(self, plan: str) -> None:
        """Let a plan be carried out although it is held.

        Raises:
            ConfigError: it is no hash of a plan.
            KubeError: there is no Fabric object, so that nothing is held, or the server does not
                let us write it.
        """
        annotations = with_approval(None, plan)["metadata"]["annotations"]
        try:
            self._applier.patch(FABRICS, FABRIC_NAME, {"metadata": {"annotations": annotations}})
        except KubeNotFound as error:
            raise KubeNotFound(
                f"nothing to approve: there is no Fabric {FABRIC_NAME} in the cluster, which the "
                "first round of `toponaut serve --kube` makes"
            ) from error

    def consume_approval(self, plan: str) -> Mapping[str, Any] | None:
        """Take back the approval of a plan that was carried out; return the object if there was.

        Raises:
            KubeError: it is refused, or there is no answer.
        """

        def attempt() -> Mapping[str, Any] | None:
            document = self.read_fabric()
            if document is None or not parse_write_policy(document).is_approved(plan):
                return None
            version = document["metadata"]["resourceVersion"]
            gone = {"resourceVersion": version, "annotations": {APPROVED_PLAN_ANNOTATION: None}}
            return self._applier.patch(FABRICS, FABRIC_NAME, {"metadata": gone})

        return _retry_on_conflict(attempt)

    def _get_own(self, name: str) -> Mapping[str, Any] | None:
        """Return our own HyperNode of this name, None where there is none."""
        found = self._get(HYPERNODES, name)
        if found is not None and not parse_manifest(found).is_ours:
            raise ForeignObject(f"HyperNode {name} is not ours")
        return found

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
        self, resource: Resource, parse: Parse[Value], paging: Paging = DEFAULT_PAGING
    ) -> ObjectListing[Value]:
        """Return all objects of a kind.

        Raises:
            KubeError: they cannot be listed.
        """
        cache = Cache(parse)
        self._retry_request(
            lambda: list_into_cache(cache, self._transport, resource, paging=paging)
        )
        return build_listing(cache, resource)

    def _retry_request(self, ask: Callable[[], Value]) -> Value:
        return retry_request(ask, pace=self._pace, policy=_RETRY_POLICY)


def _retry_on_conflict(attempt: Callable[[], Value]) -> Value:
    """Read and write anew where the object changed in between, a few times.

    Others write into our objects too: Volcano counts the nodes of each HyperNode in its status.
    """
    for _ in range(_MAX_ATTEMPTS - 1):
        try:
            return attempt()
        except ForeignObject:
            raise
        except KubeConflict:
            continue
    return attempt()


@contextmanager
def open_cluster(access: ClusterAccess, environ: Mapping[str, str]) -> Iterator[ClusterStore]:
    """Yield the store of a cluster, and close its connections in the end.

    Raises:
        ConfigError: there are no credentials, or they are no use.
    """
    load = find_credentials(kubeconfig=access.kubeconfig, context=access.context, environ=environ)
    with closing(KubeTransport(load)) as transport:
        pace = WaitContext(Stop(), monotonic, random.SystemRandom().uniform)
        yield ClusterStore(transport, pace=pace)
