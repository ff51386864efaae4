"""A cluster that a command such as `apply` writes, with nobody else writing meanwhile.

The command holds the lease of the leader, so no server writes as long as the lease can be held. A
server of another namespace, and a command that was stopped and goes on, are kept apart by the
record: each write checks that nobody has decided since.
"""

from __future__ import annotations

import random  # noqa: TID251 - this is an edge: it spreads retries
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from time import monotonic
from typing import Any

from generator.kube.access import ClusterAccess
from generator.kube.applier import Fence, never_fenced
from generator.kube.credentials import find_credentials
from generator.kube.lease_hold import hold_lease
from generator.kube.resources import RECORDS
from generator.kube.transport import KubeTransport, Transport
from generator.objects.tree_record import RECORD_NAME, TreeRecord
from generator.outputs.hypernode import HyperNode
from generator.store.cluster import ClusterStore, WrittenObject
from generator.store.write_conflicts import ForeignObject, find_version
from runtime.retry import WaitContext
from runtime.stop import Stop


class CommandStore(ClusterStore):
    """The objects of one cluster, which `hold_writes` reserves for us."""

    def __init__(
        self, transport: Transport, *, pace: WaitContext, on_note: Callable[[str], None]
    ) -> None:
        """Send no request yet.

        Args:
            transport: to the API server.
            pace: how to wait, and the stop request.
            on_note: receives lines for the person who waits for the lease.
        """
        super().__init__(transport, pace=pace, fence=self._find_left_s)
        self._on_note = on_note
        self._lease: Fence = never_fenced

    @contextmanager
    def hold_writes(self, namespace: str) -> Iterator[None]:
        """Let no server of this namespace write within the context.

        Raises:
            ConfigError: another program writes; the message names it.
            KubeError: the server does not answer.
        """
        with hold_lease(self._transport, namespace, on_note=self._on_note) as self._lease:
            yield

    def write_record(self, record: TreeRecord, *, version: str | None = None) -> WrittenObject:
        """Write the record, as `ClusterStore` does; the next writes follow from it."""
        written = super().write_record(record, version=version)
        self._record_version = find_version(written.document)
        return written

    def write(self, hypernode: HyperNode) -> WrittenObject:
        """Create or replace a HyperNode, as `ClusterStore` does, unless somebody has decided."""
        self._check_decision()
        return super().write(hypernode)

    def take_over(self, hypernode: HyperNode, seen: HyperNode) -> bool:
        """Replace a HyperNode of another client, unless somebody has decided."""
        self._check_decision()
        return super().take_over(hypernode, seen)

    def delete(self, name: str) -> Mapping[str, Any] | None:
        """Delete a HyperNode, as `ClusterStore` does, unless somebody has decided."""
        self._check_decision()
        return super().delete(name)

    def _check_decision(self) -> None:
        if self._record_version is None:  # this user may not read the record
            return
        if find_version(self._get(RECORDS, RECORD_NAME)) != self._record_version:
            raise ForeignObject("another program has decided meanwhile; run the command again")

    def _find_left_s(self) -> float:
        return self._lease()


@contextmanager
def open_command_store(
    access: ClusterAccess, environ: Mapping[str, str], *, on_note: Callable[[str], None]
) -> Iterator[CommandStore]:
    """Yield the store of a cluster, and close its connections at the end.

    Raises:
        ConfigError: there are no credentials, or they are not usable.
    """
    load = find_credentials(kubeconfig=access.kubeconfig, context=access.context, environ=environ)
    with closing(KubeTransport(load)) as transport:
        pace = WaitContext(Stop(), monotonic, random.SystemRandom().uniform)
        yield CommandStore(transport, pace=pace, on_note=on_note)
