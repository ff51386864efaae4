"""The lease of the leader, held by a command while it writes: no server writes meanwhile."""

from __future__ import annotations

import logging
import os
import random  # noqa: TID251 - this is an edge: it spreads retries
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from time import monotonic
from typing import Final

from generator.kube.applier import Fence, never_fenced
from generator.kube.elector import Elector, LeaseDurations, LeaseName
from generator.kube.lease import LEASE_NAME
from generator.kube.transport import Transport
from runtime.clock import utc_now
from runtime.retry import WaitContext
from runtime.stop import Stop
from topology.model.errors import ConfigError, KubeForbidden, KubeNotFound, show

_POLL_S: Final = 0.5


@contextmanager
def hold_lease(
    transport: Transport, namespace: str, *, on_note: Callable[[str], None]
) -> Iterator[Fence]:
    """Hold the lease within the context; yield the fence of the writes.

    If the lease of a program that was killed has not expired, this waits for its expiry.

    Args:
        transport: to the API server.
        namespace: of the lease: where `toponaut serve` runs.
        on_note: receives lines for the person who waits, and why no lease can be held.

    Raises:
        ConfigError: another program renews the lease; the message names it.
        KubeError: the server does not answer.
    """
    name = f"command-{socket.gethostname()}-{os.getpid()}_{secrets.token_hex(8)}"
    lease, stop = LeaseName(namespace, LEASE_NAME, name), Stop()
    pace = WaitContext(stop, monotonic, random.SystemRandom().uniform)
    # The caller reports problems.
    level = logging.DEBUG
    elector = Elector(transport, lease, now=utc_now, pace=pace, problem_level=level)
    if not _await_lease(elector, lease, stop, on_note):
        yield never_fenced
        return
    thread = Thread(
        target=elector.run,
        kwargs={"on_gained": lambda _epoch: None, "on_lost": lambda: None},
        name="lease of the command",
    )
    thread.start()
    try:
        yield lambda: elector.left_s
    finally:
        stop.set()
        thread.join()


def _await_lease(
    elector: Elector, lease: LeaseName, stop: Stop, on_note: Callable[[str], None]
) -> bool:
    """Wait until we hold the lease; return False if no lease can exist, or none that we may hold.

    Raises:
        ConfigError: another program renews the lease.
        KubeError: the server does not answer.
    """
    unanswered_until = monotonic() + LeaseDurations().lease_s
    first_seen = ""
    while True:
        elector.advance()
        if elector.is_leader:
            return True
        match elector.error:
            case None:
                first_seen = _check_ended(elector, lease, first_seen, on_note)
            case KubeNotFound():
                on_note(
                    f"note: there is no namespace {lease.namespace}, so no server is expected; if "
                    "one runs in another namespace, stop it, or give its --namespace"
                )
                return False
            case KubeForbidden() as error:
                on_note(f"warning: a server that writes too is not excluded: {show(str(error))}")
                return False
            case error if monotonic() > unanswered_until:
                raise error
        stop.wait(_POLL_S)


def _check_ended(
    elector: Elector, lease: LeaseName, first_seen: str, on_note: Callable[[str], None]
) -> str:
    """Return the version of the lease that was seen first; refuse to wait for a renewed one.

    Raises:
        ConfigError: another program has renewed the lease since.
    """
    holder = show(elector.holder)
    if first_seen and elector.holder and elector.version != first_seen:
        raise ConfigError(
            f"{holder} leads in namespace {lease.namespace}, and it alone writes: stop it first, "
            "or let it write; to let a held plan through, use `toponaut approve`"
        )
    if not first_seen:
        on_note(f"waiting for the Lease {lease.namespace}/{lease.name} of {holder} to expire")
    return elector.version
