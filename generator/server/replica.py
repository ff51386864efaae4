"""One replica of a generator in a cluster: it follows, stands for leader, and leaves in order.

A write is fenced twice. Before each request the lease must still be ours, by our own clock, and
the request may last no longer than that; and an object is only changed from the version that was
read for it. So what a former leader sends late meets either an answer that it no longer waits
for, or an object that another has changed, and is refused.
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
from generator.kube.transport import KubeTransport, OnAnswer, ignore_answer
from generator.reservations.cluster import ClusterReservations, Leadership
from generator.server.settings import ReplicaSettings
from generator.store.followed_cluster import FollowedCluster
from runtime.clock import utc_now
from runtime.retry import WaitContext
from runtime.stop import Stop
from runtime.values import Address, parse_address

log = logging.getLogger(__name__)

LEASE_NAME: Final = "toponaut-generator"
DEFAULT_NAMESPACE: Final = "default"
_WILDCARD_HOSTS: Final = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - known, not bound
_NAMESPACE_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class Replica:
    """A cluster to serve; writes to it while it leads."""

    def __init__(self, transport: KubeTransport, lease: LeaseName, *, pod_ip: str = "") -> None:
        """Ask nothing yet.

        Args:
            transport: to the API server; closed in the end.
            lease: which one, and who we are.
            pod_ip: at which the others reach us, empty where nothing tells it.
        """
        self._pod_ip = pod_ip
        uniform = random.SystemRandom().uniform
        self.transport = transport
        self.identity = lease.identity
        """Ours alone, as it stands in the lease."""
        self._stop = Stop()
        self.elector = Elector(
            transport, lease, now=utc_now, pace=WaitContext(self._stop, monotonic, uniform)
        )
        self._is_stopping = False
        self._wake: Callable[[], None] = _ignore_change
        self.store = FollowedCluster(
            transport,
            pace=WaitContext(Stop(), monotonic, uniform),
            on_change=self._notify,
            fence=self._lease_left_s,
        )
        self.reservations = ClusterReservations(
            transport,
            pace=WaitContext(Stop(), monotonic, uniform),
            leadership=Leadership(
                self._lease_left_s,
                epoch=lambda: self.elector.epoch,
                leader_address=lambda: self.elector.leader_address,
            ),
            on_change=self._notify,
        )
        self._thread = Thread(target=self._run_election, name="stand for leader")

    @classmethod
    def from_settings(
        cls,
        seat: ReplicaSettings,
        environ: Mapping[str, str],
        *,
        on_answer: OnAnswer = ignore_answer,
    ) -> Replica:
        """Return the replica that the options and the pod's environment name.

        Args:
            seat: which cluster, and as whom.
            environ: the environment.
            on_answer: told how each request to the API server ended.

        Raises:
            ConfigError: there are no credentials, or they are no use.
        """
        access = seat.access
        load = find_credentials(
            kubeconfig=access.kubeconfig, context=access.context, environ=environ
        )
        namespace = seat.namespace or find_namespace(environ)
        name = seat.identity or environ.get("POD_NAME") or socket.gethostname()
        identity = f"{name}_{secrets.token_hex(8)}"
        lease = LeaseName(namespace, LEASE_NAME, identity)
        return cls(KubeTransport(load, on_answer), lease, pod_ip=environ.get("POD_IP", ""))

    def is_leader(self) -> bool:
        """Return whether we lead at this moment and have not begun to leave."""
        return self._lease_left_s() > 0

    @contextmanager
    def follow(self, wake: Callable[[], None]) -> Iterator[None]:
        """Follow the cluster and stand for leader; changes of either wake."""
        self._wake = wake
        try:
            with self.store, self.reservations:
                self._thread.start()
                yield
                self.stop_writing()
                self.release()
        finally:
            self._stop.set()
            self.transport.close()

    def advertise(self, address: str) -> None:
        """Tell the other replicas where we answer, for calls that only the leader grants.

        Args:
            address: as bound; where that is every address of this machine, the pod's is told.
        """
        host, port = parse_address(address)
        if host in _WILDCARD_HOSTS:
            host = self._pod_ip or socket.gethostname()
        self.elector.address = str(Address(host, port))

    def stop_writing(self) -> None:
        """Begin no further write."""
        self._is_stopping = True

    def release(self) -> None:
        """Release the lease, so that another one need not wait for its expiry."""
        self._stop.set()
        self._thread.join()

    @property
    def is_alive(self) -> bool:
        """Whether all threads that should run do; before they are started none should."""
        has_begun = self._thread.ident is not None
        follows = self.store.is_alive and self.reservations.is_alive
        return not has_begun or (self._thread.is_alive() and follows)

    def _lease_left_s(self) -> float:
        return 0.0 if self._is_stopping else self.elector.left_s

    def _notify(self) -> None:
        self._wake()

    def _run_election(self) -> None:
        try:
            self.elector.run(on_gained=lambda _: self._notify(), on_lost=self._notify)
        except Exception as error:
            # Without this thread nobody renews, so that leadership ends by itself.
            log.exception("election ended", extra={"error": str(error)})


def find_namespace(environ: Mapping[str, str], file: Path = _NAMESPACE_FILE) -> str:
    """Return the namespace that we run in, `default` where nothing tells it."""
    named = environ.get("POD_NAMESPACE")
    if named:
        return named
    try:
        return file.read_text(encoding="ascii").strip() or DEFAULT_NAMESPACE
    except (OSError, ValueError):
        return DEFAULT_NAMESPACE


def _ignore_change() -> None:
    """Wake nobody: nothing runs yet."""
