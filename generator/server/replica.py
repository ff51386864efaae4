"""One replica of the generator in a cluster: follows objects, and takes part in leader election.

Every write is fenced twice. First, this replica must hold the lease before each request, by its
own clock, and the request times out when the lease expires. Second, an object is only changed
from the version that was read. So a late write of a former leader either has timed out, or is
refused because another replica changed the object.
"""

from __future__ import annotations

import logging
import random  # noqa: TID251 - this is an edge: it spreads retries
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import Final

from generator.kube.credentials import find_credentials
from generator.kube.elector import Elector, LeaseName
from generator.kube.lease_record import LEASE_NAME
from generator.kube.transport import KubeTransport, OnAnswer, ignore_answer
from generator.reconcile.cluster_outputs import ClusterPublisher
from generator.reconcile.outputs import Publisher
from generator.reservations.objects import RESERVATIONS, Leadership, ReservationObjects
from generator.server.settings import ReplicaSettings
from generator.store.cluster_store import ClusterStore
from generator.store.fabric_store import FabricStore
from generator.store.history_object import HistoryObject
from generator.store.kinds import SERVED
from generator.telemetry.metrics import LeadershipSample
from runtime.clock import utc_now
from runtime.retry import WaitContext
from runtime.stop import Stop
from runtime.values import Address, parse_address

log = logging.getLogger(__name__)

DEFAULT_NAMESPACE: Final = "default"
_WILDCARD_HOSTS: Final = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - known, not bound
_NAMESPACE_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class Replica:
    """A backend that serves a cluster, and writes to it while it is the leader."""

    def __init__(self, transport: KubeTransport, lease: LeaseName, *, pod_ip: str = "") -> None:
        """Send no request yet.

        Args:
            transport: sends requests to the API server; `follow` closes it at the end.
            lease: the lease, and the identity of this replica.
            pod_ip: the address at which other replicas reach this one; empty if unknown.
        """
        self._pod_ip = pod_ip
        uniform = random.SystemRandom().uniform
        self.transport = transport
        self.identity = lease.identity
        """The unique name of this replica in the lease."""
        self._stop = Stop()
        self.elector = Elector(
            transport, lease, now=utc_now, pace=WaitContext(self._stop, monotonic, uniform)
        )
        self._is_stopping = False
        self._wake: Callable[[], None] = _ignore_change
        self.objects = ClusterStore(
            transport,
            pace=WaitContext(Stop(), monotonic, uniform),
            fence=self._lease_left_s,
            on_change=self._notify,
            served=(*SERVED, RESERVATIONS),
        )
        self.store = FabricStore(self.objects, agent_namespace=lease.namespace)
        self.reservations = ReservationObjects(
            self.objects,
            Leadership(
                self._lease_left_s,
                epoch=lambda: self.elector.epoch,
                find_leader=lambda: self.elector.leader,
            ),
        )
        self.publisher: Publisher = ClusterPublisher(
            self.objects, namespace=lease.namespace, clock=monotonic
        )
        self.history = HistoryObject(self.objects, lease.namespace)
        self._thread = Thread(target=self._run_election, name="leader election")

    @classmethod
    def from_settings(
        cls,
        settings: ReplicaSettings,
        environ: Mapping[str, str],
        *,
        on_answer: OnAnswer = ignore_answer,
    ) -> Replica:
        """Return the replica that the options and the pod's environment name.

        Args:
            settings: the cluster, and the name of this replica.
            environ: the environment.
            on_answer: called with the status of each request to the API server.

        Raises:
            ConfigError: there are no credentials, or they are unusable.
        """
        access = settings.access
        load = find_credentials(
            kubeconfig=access.kubeconfig, context=access.context, environ=environ
        )
        namespace = settings.namespace or find_namespace(environ)
        name = settings.identity or environ.get("POD_NAME") or socket.gethostname()
        identity = f"{name}_{secrets.token_hex(8)}"
        lease = LeaseName(namespace, LEASE_NAME, identity)
        return cls(KubeTransport(load, on_answer), lease, pod_ip=environ.get("POD_IP", ""))

    def is_leader(self) -> bool:
        """Return whether this replica holds the lease and is not stopping."""
        return self._lease_left_s() > 0

    @contextmanager
    def follow(self, wake: Callable[[], None]) -> Iterator[None]:
        """Follow the cluster and take part in the election; a change of either calls `wake`."""
        self._wake = wake
        try:
            with self.objects:
                self._thread.start()
                yield
                self.stop_writing()
                self.release()
        finally:
            self._stop.set()
            self.transport.close()

    def advertise(self, address: str) -> None:
        """Publish the address of this replica in the lease; followers forward calls to the leader.

        Args:
            address: the bound address. A wildcard is replaced by the pod's address.
        """
        host, port = parse_address(address)
        if host in _WILDCARD_HOSTS:
            host = self._pod_ip or socket.gethostname()
        self.elector.address = str(Address(host, port))

    def stop_writing(self) -> None:
        """Start no further write."""
        self._is_stopping = True

    def release(self) -> None:
        """Release the lease, so that another replica need not wait until it expires."""
        self._stop.set()
        self._thread.join()

    def read_leadership(self) -> LeadershipSample:
        """Return the leadership and the watches at this moment."""
        return LeadershipSample(self.elector.is_leader, self.elector.epoch, self.objects.watches)

    def readiness_problem(self) -> str:
        """Return why this replica cannot answer yet, empty if it can."""
        if self.objects.is_synced:
            return ""
        return "; ".join(self.objects.problems) or "the cluster is not listed yet"

    def liveness_problem(self) -> str:
        """Return why only a restart helps, empty if all started threads run."""
        has_begun = self._thread.ident is not None
        is_alive = self._thread.is_alive() and self.objects.is_alive
        return "" if is_alive or not has_begun else "a thread for watches or leader election ended"

    def _lease_left_s(self) -> float:
        return 0.0 if self._is_stopping else self.elector.left_s

    def _notify(self) -> None:
        self._wake()

    def _run_election(self) -> None:
        try:
            self.elector.run(on_gained=lambda _: self._notify(), on_lost=self._notify)
        except Exception as error:
            # Without this thread nothing renews the lease, so leadership ends by itself.
            log.exception("leader election ended", extra={"error": str(error)})


def find_namespace(environ: Mapping[str, str], file: Path = _NAMESPACE_FILE) -> str:
    """Return the namespace of this pod, `default` if it is unknown."""
    named = environ.get("POD_NAMESPACE")
    if named:
        return named
    try:
        return file.read_text(encoding="ascii").strip() or DEFAULT_NAMESPACE
    except (OSError, ValueError):
        return DEFAULT_NAMESPACE


def _ignore_change() -> None:
    """Do nothing: no round runs yet."""
