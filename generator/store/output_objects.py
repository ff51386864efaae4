"""The objects of other schedulers in a cluster: followed, applied and deleted.

A kind is followed only once an output needs it, and only the parts that Toponaut owns are kept. A
kind that the cluster does not serve concerns its own output alone.
"""

from __future__ import annotations

import random  # noqa: TID251 - this is an edge: it spreads retries
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from threading import Thread
from time import monotonic
from types import TracebackType
from typing import Any, Final, Self

from generator.kube.access import ClusterAccess
from generator.kube.applier import Applier, Fence, RetryPolicy, never_fenced
from generator.kube.credentials import find_credentials
from generator.kube.owned_parts import ObservedObject, find_owned_parts
from generator.kube.reflector import Reflector
from generator.kube.resources import Resource
from generator.kube.transport import KubeRequest, KubeTransport, Transport, decode_object
from generator.store.own_writes import OwnWrites
from runtime.retry import TokenBucket, WaitContext
from runtime.stop import Stop
from topology.model.errors import KubeNotFound, KubeUnavailable

WRITES_PER_SECOND: Final = 50
BURST: Final = 50
_RETRY_POLICY: Final = RetryPolicy(max_attempts=2)
_DISCOVERY_TIMEOUT_S: Final = 10.0
_DISCOVERY_PERIOD_S: Final = 30.0
"""How often the server is asked again for a kind that it did not serve."""


class _FollowedKind:
    """A kind that is followed, and our writes that its watch has not reported yet."""

    def __init__(self, resource: Resource, reflector: Reflector[ObservedObject]) -> None:
        self.resource = resource
        """With the version that the server serves."""
        self.reflector = reflector
        self.own_writes: OwnWrites[ObservedObject] = OwnWrites(
            reflector.cache.version_of, lambda: reflector.version
        )
        self.thread = Thread(target=reflector.run, name=f"follow {resource.plural}")

    def read(self) -> Mapping[str, ObservedObject]:
        """Return the objects by name, our last writes included.

        Raises:
            KubeError: the objects were never listed.
        """
        if not self.reflector.is_synced:
            problem = self.reflector.problem or "not listed yet"
            raise KubeUnavailable(f"{self.resource.plural}: {problem}")
        found = {value.name: value for value in self.reflector.cache.values}
        current = found | self.own_writes.pending()
        return {name: value for name, value in current.items() if value is not None}


class OutputObjects:
    """The objects of the outputs in one cluster. Not thread-safe."""

    def __init__(
        self,
        transport: Transport,
        *,
        pace: WaitContext,
        managers: Collection[str],
        on_change: Callable[[], None],
        fence: Fence = never_fenced,
    ) -> None:
        """Send no request yet.

        Args:
            transport: to the API server.
            pace: how to wait, and the stop request, which ends what is followed.
            managers: the field managers whose parts are kept.
            on_change: called after a change of a part of ours, in a thread of ours.
            fence: returns for how long writes may still be sent.
        """
        self._transport = transport
        self._pace = pace
        self._managers = frozenset(managers)
        self._on_change = on_change
        self._fence = fence
        self._bucket = TokenBucket(
            per_second=WRITES_PER_SECOND, burst=BURST, clock=pace.clock, pause=pace.stop.wait
        )
        self._kinds: dict[Resource, _FollowedKind] = {}
        self._asked_at_s: dict[Resource, float] = {}
        """When the server was last asked for a kind that it did not serve."""
        self._appliers: dict[str, Applier] = {}

    @property
    def is_alive(self) -> bool:
        """Whether the threads of all followed kinds still run."""
        return all(kind.thread.is_alive() for kind in self._kinds.values())

    def __enter__(self) -> Self:
        """Return this; the first read of a kind starts to follow it."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop following, within moments."""
        self._pace.stop.set()
        for followed in self._kinds.values():
            followed.thread.join()

    def read(
        self, resource: Resource, older_versions: tuple[str, ...] = ()
    ) -> Mapping[str, ObservedObject]:
        """Return the objects of a kind by name; the first call starts to follow it.

        Args:
            resource: the kind, in its newest version.
            older_versions: that are used where the server does not serve the newest.

        Raises:
            KubeNotFound: the server does not serve the kind.
            KubeError: the objects are not known yet.
        """
        return self._follow(resource, older_versions).read()

    def apply(
        self,
        resource: Resource,
        document: Mapping[str, Any],
        *,
        manager: str,
        observed: ObservedObject | None,
        is_forced: bool,
    ) -> None:
        """Apply the fields of an object under a field manager.

        Args:
            resource: a kind that was read.
            document: exactly the fields that the manager owns afterwards.
            manager: the field manager.
            observed: the object as last seen; None creates it.
            is_forced: whether to take over fields that another manager has changed.

        Raises:
            KubeConflict: a field belongs to another manager, or the object was replaced.
            KubeError: the server refused the request, or did not answer.
        """
        kind = self._kinds[resource]
        desired = {**document, "apiVersion": kind.resource.api_version}
        known = None if observed is None else {"metadata": {"uid": observed.uid}}
        answer = self._find_applier(manager).apply(kind.resource, desired, known, is_ours=is_forced)
        written = self._parse(answer)
        kind.own_writes.record(written.name, answer["metadata"]["resourceVersion"], written)

    def delete(self, resource: Resource, observed: ObservedObject, *, manager: str) -> None:
        """Delete an object that was read, if it is still the same.

        Raises:
            KubeConflict: the object was replaced.
            KubeError: the server refused the request, or did not answer.
        """
        kind = self._kinds[resource]
        namespace, _, name = observed.name.rpartition("/")
        metadata = {"name": name, "uid": observed.uid}
        if namespace:
            metadata["namespace"] = namespace
        version = kind.reflector.cache.version_of(observed.name)
        self._find_applier(manager).delete(kind.resource, {"metadata": metadata})
        kind.own_writes.record(observed.name, version, None)

    def list_once(
        self, resource: Resource, older_versions: tuple[str, ...] = ()
    ) -> tuple[Mapping[str, Any], ...]:
        """Return the whole objects of a kind now; none if the server has no such kind.

        Args:
            resource: the kind, in its newest version.
            older_versions: that are used where the server does not serve the newest.

        Raises:
            KubeError: the objects cannot be listed.
        """
        for version in (resource.version, *older_versions):
            request = KubeRequest("GET", resource._replace(version=version).path())
            try:
                body = self._transport.ask(request, timeout_s=_RETRY_POLICY.request_timeout_s)
            except KubeNotFound:
                continue
            items = decode_object(str(request), body).get("items")
            return tuple(item for item in items or () if isinstance(item, Mapping))
        return ()

    def _follow(self, resource: Resource, older_versions: tuple[str, ...]) -> _FollowedKind:
        known = self._kinds.get(resource)
        if known is not None:
            return known
        served = self._find_served(resource, (resource.version, *older_versions))
        kind = _FollowedKind(
            served,
            Reflector(
                self._transport,
                served,
                parse=self._parse,
                on_change=lambda _: self._on_change(),
                pace=self._pace,
            ),
        )
        self._kinds[resource] = kind
        kind.thread.start()
        return kind

    def _find_served(self, resource: Resource, versions: tuple[str, ...]) -> Resource:
        """Return the kind in the first version that the server serves; ask only now and then."""
        if not resource.group:
            return resource
        missing = KubeNotFound(f"the cluster has no {resource.kind}, its CRD is not installed")
        now_s = self._pace.clock()
        asked_at_s = self._asked_at_s.get(resource)
        if asked_at_s is not None and now_s - asked_at_s < _DISCOVERY_PERIOD_S:
            raise missing
        self._asked_at_s[resource] = now_s
        for version in versions:
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

    def _parse(self, document: Mapping[str, Any]) -> ObservedObject:
        metadata = document["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace")
        return ObservedObject(
            f"{namespace}/{name}" if namespace else name,
            str(metadata.get("uid", "")),
            find_owned_parts(document, self._managers),
        )

    def _find_applier(self, manager: str) -> Applier:
        applier = self._appliers.get(manager)
        if applier is None:
            applier = self._appliers[manager] = Applier(
                self._transport,
                bucket=self._bucket,
                pace=self._pace,
                field_manager=manager,
                retry_policy=_RETRY_POLICY,
                fence=self._fence,
            )
        return applier


@contextmanager
def open_output_objects(
    access: ClusterAccess, environ: Mapping[str, str], *, managers: Collection[str]
) -> Iterator[OutputObjects]:
    """Yield the objects of a cluster, and close its connections at the end.

    Raises:
        ConfigError: there are no credentials, or they are not usable.
    """
    load = find_credentials(kubeconfig=access.kubeconfig, context=access.context, environ=environ)
    pace = WaitContext(Stop(), monotonic, random.SystemRandom().uniform)
    with (
        closing(KubeTransport(load)) as transport,
        OutputObjects(transport, pace=pace, managers=managers, on_change=lambda: None) as objects,
    ):
        yield objects
