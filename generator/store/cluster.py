"""The cluster as a store: reports, nodes and HyperNodes are objects of the API server.

It reads what `store.directory` reads of folders, and is a `Target` of plans as that is. An object
that cannot be used costs itself and is named. No answer is an error, never an empty list.
"""

from __future__ import annotations

import random  # noqa: TID251 - this is an edge: it spreads retries
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from time import monotonic
from typing import Any, Final, Generic, NamedTuple, TypeVar

from generator.inventory import Inventory, ListedNode, parse_node
from generator.kube.applier import Applier, Patience, insist
from generator.kube.cache import Cache, Parse
from generator.kube.credentials import find_credentials
from generator.kube.listing import refill
from generator.kube.pacing import Ending, Pace, TokenBucket
from generator.kube.resources import HYPERNODES, NODES, REPORTS, Resource
from generator.kube.transport import KubeTransport, Request, Transport, decode
from generator.outputs.hypernode import HyperNode, parse_manifest, render_manifest
from generator.store.access import Access
from generator.store.directory import ReadHyperNodes, ReadReports
from topology.errors import KubeConflict, KubeNotFound, ParseError
from topology.report import NeighborReport
from topology.stored_reports import is_withdrawn, parse_stored_report

Value = TypeVar("Value")

WRITES_PER_SECOND: Final = 10
BURST: Final = 100
_PATIENCE: Final = Patience(attempts=4)


class Told(NamedTuple, Generic[Value]):
    """What is known of the objects of a kind."""

    values: tuple[Value, ...]
    """In order of their names."""
    problems: tuple[ParseError, ...]
    num_objects: int
    """Good or bad."""


def told_by(cache: Cache[Value], resource: Resource) -> Told[Value]:
    """Return what a cache knows, its problems with the kind of their object."""
    problems = tuple(
        ParseError(one.problem, source=f"{resource.kind} {one.source}") for one in cache.problems
    )
    return Told(cache.values, problems, len(cache.values) + len(problems))


def reports_of(told: Told[NeighborReport]) -> ReadReports:
    """Return what is known of the reports; a part that was withdrawn is as good as not there."""
    there = tuple(report for report in told.values if not is_withdrawn(report))
    return ReadReports(there, told.problems, told.num_objects)


def parse_kube_node(found: Mapping[str, Any]) -> ListedNode:
    """Return the node of an item of a list: there built-in kinds do not say their kind.

    Raises:
        ConfigError: a field that counts is malformed.
    """
    return parse_node({**found, "kind": NODES.kind})


class ClusterStore:
    """The objects of one cluster; a `Target` of plans."""

    def __init__(self, transport: Transport, *, pace: Pace) -> None:
        """Ask nothing yet.

        Args:
            transport: to the API server.
            pace: how to wait, and until when.
        """
        self._transport = transport
        self._pace = pace
        bucket = TokenBucket(
            per_second=WRITES_PER_SECOND, burst=BURST, clock=pace.clock, pause=pace.ending.pause
        )
        self._applier = Applier(transport, bucket=bucket, pace=pace)

    def read_reports(self) -> ReadReports:
        """Return all reports.

        Raises:
            KubeError: they cannot be listed.
        """
        return reports_of(self._read(REPORTS, parse_stored_report))

    def read_hypernodes(self) -> ReadHyperNodes:
        """Return all HyperNodes, ours and foreign ones.

        Raises:
            KubeError: they cannot be listed.
        """
        return ReadHyperNodes(*self._read(HYPERNODES, parse_manifest))

    def read_nodes(self) -> Inventory:
        """Return the nodes with what a job may use of them.

        Raises:
            KubeError: they cannot be listed.
        """
        found = self._read(NODES, parse_kube_node)
        return Inventory(found.values, found.problems)

    def put(self, hypernode: HyperNode) -> bool:
        """Create or replace a HyperNode; return False where the cluster says so already.

        Raises:
            KubeError: it is refused, or there is no answer.
            KubeConflict: somebody else's object has this name.
        """
        observed = self._observed(hypernode.name)
        wanted = render_manifest(hypernode)
        told = self._applier.apply(HYPERNODES, wanted, observed, is_ours=observed is not None)
        return told is not observed

    def remove(self, name: str) -> bool:
        """Delete a HyperNode; return whether it was there.

        Raises:
            KubeError: it is refused, or there is no answer.
            KubeConflict: somebody else's object has this name.
        """
        observed = self._observed(name)
        return observed is not None and self._applier.delete(HYPERNODES, observed)

    def _observed(self, name: str) -> Mapping[str, Any] | None:
        """Return our own HyperNode of this name, None where there is none."""
        request = Request("GET", HYPERNODES.path(name))
        try:
            body = self._insist(lambda: self._transport.ask(request, timeout_s=_PATIENCE.request_s))
        except KubeNotFound:
            return None
        found = decode(str(request), body)
        if not parse_manifest(found).is_ours:
            raise KubeConflict(f"HyperNode {name} is not ours")
        return found

    def _read(self, resource: Resource, parse: Parse[Value]) -> Told[Value]:
        cache = Cache(parse)
        try:
            self._insist(lambda: refill(cache, self._transport, resource))
        except KubeNotFound as error:
            hint = f"the cluster knows no {resource.kind}, its CRD is not installed: {error}"
            raise KubeNotFound(hint, status=error.status, reason=error.reason) from error
        return told_by(cache, resource)

    def _insist(self, ask: Callable[[], Value]) -> Value:
        return insist(ask, pace=self._pace, patience=_PATIENCE)


@contextmanager
def open_cluster(access: Access, environ: Mapping[str, str]) -> Iterator[ClusterStore]:
    """Yield the store of a cluster, and close its connections in the end.

    Raises:
        ConfigError: there are no credentials, or they are no use.
    """
    load = find_credentials(kubeconfig=access.kubeconfig, context=access.context, environ=environ)
    with closing(KubeTransport(load)) as transport:
        pace = Pace(Ending(), monotonic, random.SystemRandom().uniform)
        yield ClusterStore(transport, pace=pace)
