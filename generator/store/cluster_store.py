"""A cluster as a store: objects of the API server, listed once or kept current by watches.

Reads of a followed kind send no request. They fail until its first list is complete. While the
server is unavailable, they return the last state. Our own writes are visible at once. No answer is
an error, never an empty list. An unusable object becomes a problem that names it, and affects no
other object.
"""

from __future__ import annotations

import random  # noqa: TID251 - this is an edge: it spreads retries
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from threading import Lock, Thread
from time import monotonic
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from generator.kube.access import ClusterAccess
from generator.kube.applier import (
    FIELD_MANAGER,
    Applier,
    Fence,
    RetryPolicy,
    never_fenced,
    retry_request,
)
from generator.kube.cache import Cache, Listing, StoredObject
from generator.kube.credentials import find_credentials
from generator.kube.elector import hold_lease
from generator.kube.reflector import (
    Paging,
    Reflector,
    ReflectorConfig,
    fetch_objects,
    list_into_cache,
)
from generator.kube.resources import Resource
from generator.kube.transport import KubeRequest, KubeTransport, Transport, decode_object
from generator.objects.inventory import Inventory, list_node_problems
from generator.store.fabric_store import FabricStore
from generator.store.kinds import NODES, SERVED, Kind, WritePace
from generator.store.object_store import Document, KindProgress, Written
from runtime.retry import TokenBucket, WaitContext
from runtime.stop import Stop
from topology.model.errors import KubeNotFound, KubeUnavailable, ParseError

Value = TypeVar("Value")

_READ_POLICY: Final = RetryPolicy(max_attempts=4)
_DISCOVERY_TIMEOUT_S: Final = 10.0
_DISCOVERY_PERIOD_S: Final = 30.0
"""How often the server is asked again for a kind that it did not serve."""


class _FollowedKind:
    """A kind that is followed, in the version that the server serves."""

    def __init__(self, resource: Resource, reflector: Reflector[Any]) -> None:
        self.resource = resource
        self.reflector = reflector
        self.last: tuple[Listing[Any], Listing[Any]] | None = None
        """The listing of the cache, and as it was returned."""
        self.thread = Thread(target=reflector.run, name=f"follow {resource.plural}")


class ClusterStore:
    """The objects of one cluster; follows them within its context."""

    has_agent_tokens = True

    def __init__(
        self,
        transport: Transport,
        *,
        pace: WaitContext,
        fence: Fence = never_fenced,
        on_change: Callable[[], None] | None = None,
        served: Sequence[Kind[Any]] = (),
        on_note: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Send no request yet.

        Args:
            transport: sends requests to the API server.
            pace: how to wait, and the stop request, which the end of the context sets.
            fence: returns for how long writes may still be sent.
            on_change: called after a change, in a thread of ours; must return soon. None: nothing
                is followed, and each read lists the objects.
            served: kinds that are followed from the beginning; others from their first read.
            on_note: receives lines for the person who waits for the lease.
        """
        self._transport = transport
        self._pace = pace
        self._fence = fence
        self._on_change = on_change
        self._on_note = on_note
        self._appliers: dict[WritePace, Applier] = {}
        self._lock = Lock()
        """Guards the parts that are created when they are first used."""
        self._asked_at_s: dict[Kind[Any], float] = {}
        """When the server was last asked for a kind that it did not serve."""
        self._served = tuple(served)
        self._followed = {kind: self._build_followed(kind, kind.resource) for kind in served}

    def __enter__(self) -> Self:
        """Start to follow the served kinds."""
        for followed in self._followed.values():
            followed.thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Request the stop, and wait until all following threads have ended."""
        self._pace.stop.set()
        for followed in self._followed.values():
            followed.thread.join()

    @property
    def is_synced(self) -> bool:
        """Whether all kinds of a round were listed once, or need not be served."""
        return all(
            reflector.is_synced or (kind.is_optional and reflector.is_missing)
            for kind, reflector in self._round_kinds
        )

    @property
    def _round_kinds(self) -> Iterator[tuple[Kind[Any], Reflector[Any]]]:
        return ((kind, self._followed[kind].reflector) for kind in self._served if kind in SERVED)

    @property
    def is_alive(self) -> bool:
        """Whether the threads of all followed kinds still run, with or without success."""
        return all(followed.thread.is_alive() for followed in self._followed.values())

    @property
    def watches(self) -> Mapping[str, int]:
        """The number of complete lists and started watches, by the plural of each served kind."""
        reflectors = ((kind, self._followed[kind].reflector) for kind in self._served)
        return {
            kind.resource.plural: reflector.num_lists + reflector.num_watches
            for kind, reflector in reflectors
        }

    @property
    def problems(self) -> tuple[str, ...]:
        """Why kinds of a round cannot be followed at the moment; empty while all are current."""
        return tuple(
            reflector.problem
            for kind, reflector in self._round_kinds
            if reflector.problem and not (kind.is_optional and reflector.is_missing)
        )

    def find_progress(self, kind: Kind[Any]) -> KindProgress:
        """Return how far a followed kind is known."""
        followed = self._followed.get(kind)
        if followed is None:
            return KindProgress()
        return KindProgress(followed.reflector.is_synced, followed.reflector.problem)

    def read(self, kind: Kind[Value]) -> Listing[Value]:
        """Return all objects of a kind, as far as its quota allows.

        Raises:
            KubeNotFound: the server does not serve the kind.
            KubeUnavailable: the objects were never listed.
            KubeError: they cannot be listed.
        """
        if self._on_change is None:
            cache: Cache[Value] = Cache(_complete(kind), kind.quota)
            self._retry(
                lambda: list_into_cache(cache, self._transport, kind.resource, paging=_page(kind))
            )
            return _name_kind(cache.listing, kind)
        followed = self._follow(kind)
        reflector: Reflector[Value] = followed.reflector
        if kind.is_optional and reflector.is_missing:
            return Listing(is_missing=True)
        if not reflector.is_synced:
            reason = f": {reflector.problem}" if reflector.problem else ""
            raise KubeUnavailable(f"{kind.resource.plural} are not listed yet{reason}")
        listing = reflector.cache.listing
        if followed.last is None or followed.last[0] is not listing:
            followed.last = listing, _name_kind(listing, kind)
        return followed.last[1]

    def read_nodes(self) -> Inventory:
        """Return the nodes with their whole capacity.

        Raises:
            KubeError: the nodes are not known.
        """
        nodes = self.read(NODES)
        return Inventory(nodes.values, (*nodes.all_problems, *list_node_problems(nodes.values)))

    def refresh(self, kind: Kind[Any]) -> None:
        """List a followed kind beside its watch, which may be behind.

        Raises:
            KubeError: the objects cannot be listed.
        """
        followed, versions = self._follow(kind), list[str]()
        objects = fetch_objects(self._transport, followed.resource, versions, _page(kind))
        followed.reflector.cache.merge(objects, lambda: versions[-1])

    def get(self, kind: Kind[Any], name: str) -> StoredObject[Document] | None:
        """Return the present document of an object.

        Raises:
            KubeError: it cannot be read.
        """
        namespace, _, local = name.rpartition("/")
        request = KubeRequest("GET", kind.resource.path(local, namespace=namespace))
        timeout_s = _READ_POLICY.request_timeout_s
        try:
            body = self._retry(lambda: self._transport.ask(request, timeout_s=timeout_s))
        except KubeNotFound:
            return None
        document = decode_object(str(request), body)
        return StoredObject(name, document, *_identity(document))

    def list_once(self, kind: Kind[Any]) -> tuple[Document, ...]:
        """Return the whole objects of a kind now; none if the server has no such kind.

        Raises:
            KubeError: the objects cannot be listed.
        """
        for version in (kind.resource.version, *kind.older_versions):
            with suppress(KubeNotFound):
                resource = kind.resource._replace(version=version)
                return tuple(fetch_objects(self._transport, resource, [], _page(kind)))
        return ()

    def create(self, kind: Kind[Any], document: Document) -> StoredObject[Document]:
        """Create an object by a POST.

        Raises:
            KubeConflict: the name exists, possibly from an earlier attempt without an answer.
            KubeError: the server refused the request, or did not answer.
        """
        answer = self._applier(kind).create(kind.resource, document)
        self._record(kind, answer)
        return StoredObject(answer["metadata"]["name"], answer, *_identity(answer))

    def apply(
        self,
        kind: Kind[Any],
        document: Document,
        *,
        seen: StoredObject[Any] | None = None,
        manager: str = FIELD_MANAGER,
        is_forced: bool | None = None,
    ) -> Written:
        """Apply the fields of an object under a field manager, if that changes anything.

        A new object of a kind that others create too is not forced: its name may be taken.

        Args:
            kind: the kind of the object.
            document: exactly the fields that the manager owns afterwards.
            seen: the object as last read; None creates it.
            manager: the field manager.
            is_forced: whether to take over fields of others; None: of an object that was read.

        Raises:
            KubeConflict: a field belongs to another manager, or the object was changed.
            KubeError: the server refused the request, or did not answer.
        """
        applier, resource = self._applier(kind), self._find_resource(kind)
        known: Document | None = _document_of(seen)
        is_ours = is_forced if is_forced is not None else seen is not None or kind.is_private
        head = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": document["metadata"],
        }
        content = {key: value for key, value in document.items() if key != "status"}
        is_changed = False
        if "status" not in document or "spec" in document or seen is None:
            answer = applier.apply(
                resource, content | head, known, is_ours=is_ours, manager=manager
            )
            is_changed, known = answer is not known, answer
        if "status" in document and kind.has_status:
            # What else the answer of the write above says of the object does not matter here.
            last = _without_version(known) if seen is None and known else known
            answer = applier.apply(
                resource,
                head | {"status": document["status"]},
                last,
                subresource="status",
                is_ours=True,
                manager=manager,
            )
            is_changed, known = is_changed or answer is not last, answer
        if is_changed and known is not None:
            self._record(kind, known)
        return Written(is_changed, _identity(known or {})[0])

    def patch(
        self,
        kind: Kind[Any],
        name: str,
        change: Document,
        *,
        seen: StoredObject[Any] | None = None,
    ) -> None:
        """Merge a change into an object.

        Raises:
            KubeNotFound: there is no such object.
            KubeConflict: it has changed since it was seen.
            KubeError: the server refused the request, or did not answer.
        """
        if seen is not None and seen.version:
            metadata = {**change.get("metadata", {}), "resourceVersion": seen.version}
            change = {**change, "metadata": metadata}
        self._record(kind, self._applier(kind).patch(kind.resource, name, change))

    def delete(self, kind: Kind[Any], seen: StoredObject[Any]) -> bool:
        """Delete an object that was read, if it is still the same.

        Raises:
            KubeConflict: the object was replaced or changed since.
            KubeError: the server refused the request, or did not answer.
        """
        namespace, _, name = seen.name.rpartition("/")
        metadata = {"name": name, "namespace": namespace}
        metadata |= {"uid": seen.uid} if seen.uid else {}
        metadata |= {"resourceVersion": seen.version} if seen.version else {}
        existed = self._applier(kind).delete(self._find_resource(kind), {"metadata": metadata})
        followed = self._followed.get(kind)
        if followed is not None and followed.reflector.cache.forget(seen.name, seen.version):
            self._notify()
        return existed

    @contextmanager
    def hold_writes(self, namespace: str) -> Iterator[Fence]:
        """Hold the lease of the leader, so that no server of this namespace writes.

        Raises:
            ConfigError: another program writes; the message names it.
            KubeError: the server does not answer.
        """
        with hold_lease(self._transport, namespace, on_note=self._on_note) as self._fence:
            yield self._fence

    def _record(self, kind: Kind[Any], answer: Document) -> None:
        """Keep the answer to a write as the state of the object."""
        followed = self._followed.get(kind)
        if followed is not None and followed.reflector.cache.record(answer):
            self._notify()

    def _notify(self) -> None:
        if self._on_change is not None:
            self._on_change()

    def _find_left_s(self) -> float:
        return self._fence()

    def _find_resource(self, kind: Kind[Any]) -> Resource:
        followed = self._followed.get(kind)
        return kind.resource if followed is None else followed.resource

    def _follow(self, kind: Kind[Any]) -> _FollowedKind:
        with self._lock:
            followed = self._followed.get(kind)
            if followed is None:
                followed = self._build_followed(kind, self._find_served(kind))
                self._followed = {**self._followed, kind: followed}
                followed.thread.start()
            return followed

    def _build_followed(self, kind: Kind[Any], resource: Resource) -> _FollowedKind:
        reflector: Reflector[Any] = Reflector(
            self._transport,
            resource,
            parse=_complete(kind),
            on_change=self._notify,
            pace=self._pace,
            config=ReflectorConfig(_page(kind), quota=kind.quota),
        )
        return _FollowedKind(resource, reflector)

    def _find_served(self, kind: Kind[Any]) -> Resource:
        """Return the kind in the first version that the server serves; ask only now and then."""
        resource = kind.resource
        if not resource.group:
            return resource
        missing = KubeNotFound(f"the cluster has no {resource.kind}, its CRD is not installed")
        now_s = self._pace.clock()
        asked_at_s = self._asked_at_s.get(kind)
        if asked_at_s is not None and now_s - asked_at_s < _DISCOVERY_PERIOD_S:
            raise missing
        self._asked_at_s[kind] = now_s
        for version in (resource.version, *kind.older_versions):
            request = KubeRequest("GET", f"/apis/{resource.group}/{version}")
            try:
                body = self._transport.ask(request, timeout_s=_DISCOVERY_TIMEOUT_S)
            except KubeNotFound:
                continue
            rows = decode_object(str(request), body).get("resources")
            names = {row.get("name") for row in rows or () if isinstance(row, Mapping)}
            if resource.plural in names:
                return resource._replace(version=version)
        raise missing

    def _applier(self, kind: Kind[Any]) -> Applier:
        pace = kind.pace
        with self._lock:
            if pace not in self._appliers:
                bucket = TokenBucket(
                    per_second=pace.per_second,
                    burst=pace.burst,
                    clock=self._pace.clock,
                    pause=self._pace.stop.wait,
                )
                self._appliers[pace] = Applier(
                    self._transport,
                    bucket=bucket,
                    pace=self._pace,
                    retry_policy=RetryPolicy(pace.max_attempts, pace.timeout_s, pace.backoff),
                    fence=self._find_left_s,
                )
            return self._appliers[pace]

    def _retry(self, ask: Callable[[], Value]) -> Value:
        return retry_request(ask, pace=self._pace, policy=_READ_POLICY)


@contextmanager
def open_objects(
    access: ClusterAccess,
    environ: Mapping[str, str],
    *,
    fence: Fence = never_fenced,
    on_change: Callable[[], None] | None = None,
    on_note: Callable[[str], None] = lambda _: None,
) -> Iterator[ClusterStore]:
    """Yield the objects of a cluster, and close its connections at the end.

    Args:
        access: how to reach the cluster.
        environ: the environment.
        fence: the same argument as in `ClusterStore`.
        on_change: the same argument as in `ClusterStore`.
        on_note: receives lines for the person who waits for the lease.

    Raises:
        ConfigError: there are no credentials, or they are not usable.
    """
    load = find_credentials(kubeconfig=access.kubeconfig, context=access.context, environ=environ)
    pace = WaitContext(Stop(), monotonic, random.SystemRandom().uniform)
    with (
        closing(KubeTransport(load)) as transport,
        ClusterStore(
            transport, pace=pace, fence=fence, on_change=on_change, on_note=on_note
        ) as objects,
    ):
        yield objects


@contextmanager
def open_cluster(access: ClusterAccess, environ: Mapping[str, str]) -> Iterator[FabricStore]:
    """Yield the store of a cluster for a command that reads; arguments as in `open_objects`."""
    with open_objects(access, environ) as objects:
        yield FabricStore(objects)


def _page(kind: Kind[Any]) -> Paging:
    return Paging(kind.page_size, query=kind.query)


def _complete(kind: Kind[Value]) -> Callable[[Mapping[str, Any]], Value]:
    """Return the parser of list items, which have no `apiVersion` and no `kind`."""
    parse = kind.parse
    head = {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind}
    return lambda item: parse({**head, **item})


def _name_kind(listing: Listing[Value], kind: Kind[Value]) -> Listing[Value]:
    """Return a listing in which the source of each problem starts with the kind."""
    if not listing.refused:
        return listing
    refused = {
        name: ParseError(problem.problem, source=f"{kind.resource.kind} {problem.source}")
        for name, problem in listing.refused.items()
    }
    return listing._replace(refused=refused)


def _identity(document: Document) -> tuple[str, str]:
    """Return version and uid of a document of the server."""
    metadata = document.get("metadata", {})
    return str(metadata.get("resourceVersion", "")), str(metadata.get("uid", ""))


def _document_of(seen: StoredObject[Any] | None) -> dict[str, Any] | None:
    """Return the part of an object that a write needs: its identity, and a kept document."""
    if seen is None:
        return None
    is_document = isinstance(seen.value, Mapping) and "metadata" in seen.value
    document = dict(seen.value) if is_document else {"metadata": {"name": seen.name}}
    metadata = {**document["metadata"], "uid": seen.uid, "resourceVersion": seen.version}
    kept = {key: value for key, value in metadata.items() if value}
    return {**document, "metadata": kept}


def _without_version(document: Document) -> dict[str, Any]:
    metadata = {
        key: value for key, value in document["metadata"].items() if key != "resourceVersion"
    }
    return {**document, "metadata": metadata}
