"""Elects one leader among the replicas, with a Lease that the leader renews.

A replica never compares the clocks of two machines: for it, a lease has expired if it has not
*seen* the lease change for the lease's duration, on its own monotonic clock. The leader counts its
time from before it sent the granted renewal, and stops before the others may take over. So two
replicas never lead at once, even if their clocks show different times, as long as the clocks run at
about the same speed. The timeout of every request is limited by the remaining time.

The number of transitions grows with each new leader. A write can carry this number (the epoch), so
that a store can refuse late writes of a former leader. A command that writes holds the lease of the
leader meanwhile.
"""

from __future__ import annotations

import logging
import os
import random  # noqa: TID251 - this is an edge: it spreads retries
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Thread
from time import monotonic
from typing import Final, NamedTuple

from generator.kube.applier import Fence, never_fenced
from generator.kube.lease_record import (
    LEASE_NAME,
    Leader,
    LeaseRecord,
    parse_lease,
    render_lease,
    render_micro_time,
)
from generator.kube.resources import LEASES
from generator.kube.transport import KubeRequest, Transport, decode_object
from runtime.clock import utc_now
from runtime.retry import RefusalStreak, WaitContext
from runtime.stop import Stop
from topology.model.errors import (
    ConfigError,
    KubeConflict,
    KubeError,
    KubeForbidden,
    KubeNotFound,
    show,
)

log = logging.getLogger(__name__)

RELEASE_TIMEOUT_S: Final = 2.0
"""Longest wait of a release; without it, the others wait for the expiry."""
_RELEASED_DURATION_S: Final = 1
"""Duration of a lease without a holder; the API refuses 0."""
_JITTER: Final = 0.2
_MIN_WAIT_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class LeaseDurations:
    """The durations of a lease, counted from its last renewal."""

    lease_s: float = 15.0
    """After this time the others may take over."""
    renew_s: float = 10.0
    """After this time the leader stops leading."""
    retry_s: float = 2.0
    """Between renewals, and between attempts to become leader."""


class LeaseName(NamedTuple):
    """The name of the Lease, and the identity of this replica."""

    namespace: str
    name: str
    identity: str
    """Unique to this process: it has a random part that changes with every start."""

    @property
    def path(self) -> str:
        """The path of the object."""
        return LEASES.path(self.name, namespace=self.namespace)


class _ObservedLease(NamedTuple):
    """A lease as it was last read or written."""

    record: LeaseRecord
    version: str
    observed_at_s: float
    """When this version was first seen, on our clock."""


class Elector:
    """Tries to become leader, and leads as long as it can renew; call `run` in its own thread."""

    def __init__(
        self,
        transport: Transport,
        lease: LeaseName,
        *,
        now: Callable[[], datetime],
        pace: WaitContext,
        durations: LeaseDurations = LeaseDurations(),
        problem_level: int = logging.WARNING,
    ) -> None:
        """Send no request yet.

        Args:
            transport: sends requests to the API server.
            lease: the Lease, and the identity of this replica.
            now: the wall clock; its times are only shown in the lease.
            pace: how to wait, and the stop request.
            durations: the durations of the lease.
            problem_level: the log level of a new problem, unless it passes soon.
        """
        self._transport = transport
        self._lease = lease
        self._now = now
        self._pace = pace
        self._durations = durations
        self._problem_level = problem_level
        self._observed: _ObservedLease | None = None
        self.address = ""
        """Where we answer calls; published in the lease while we lead. Set it before `run`."""
        self.error: KubeError | None = None
        """Why the last attempt failed; None: it did not."""
        self.num_renewals = 0
        """Granted renewals, including the first claim of each leadership."""
        self._num_terms = 0
        """Claims that began to lead. After a stall, a claim of our own lease begins a new term of
        the same epoch: for a moment nothing could be written."""
        self._held_until: float | None = None
        """When leadership ends unless renewed; None while another replica leads."""
        self._problem = ""
        self._refusals = RefusalStreak()

    @property
    def is_leader(self) -> bool:
        """Whether we lead now; correct even if the thread of `run` has not noticed a change yet."""
        held_until = self._held_until
        return held_until is not None and self._pace.clock() < held_until

    @property
    def left_s(self) -> float:
        """The remaining seconds of our leadership without another renewal; 0 if we do not lead."""
        held_until = self._held_until
        return 0.0 if held_until is None else max(0.0, held_until - self._pace.clock())

    @property
    def epoch(self) -> int:
        """The number of leadership changes when we last saw the lease."""
        return 0 if self._observed is None else self._observed.record.transitions

    @property
    def holder(self) -> str:
        """The identity of the leader in the lease as last seen; empty without one."""
        return "" if self._observed is None else self._observed.record.holder

    @property
    def version(self) -> str:
        """The version of the lease as last seen; it changes with each renewal."""
        return "" if self._observed is None else self._observed.version

    @property
    def leader(self) -> Leader | None:
        """The leader in the lease as last seen; None without one."""
        return None if self._observed is None else self._observed.record.leader

    def run(self, *, on_gained: Callable[[int], None], on_lost: Callable[[], None]) -> None:
        """Try until a stop is requested, then release the lease if we hold it.

        Args:
            on_gained: called with the epoch when leadership begins, also if it had only expired
                and no other replica has led since; must return soon.
            on_lost: called when leadership ends, also after a stop request, before the release.
        """
        led: tuple[int, int] | None = None
        while not self._pace.stop.is_set:
            self.advance()
            now = (self._num_terms, self.epoch) if self.is_leader else None
            if led is not None and led != now:
                log.info("leadership lost", extra={"lease": self._lease.name, "epoch": led[1]})
                on_lost()
            if now is not None and now != led:
                log.info("leadership gained", extra={"lease": self._lease.name, "epoch": now[1]})
                on_gained(now[1])
            led = now
            self._wait_for_retry()
        self._held_until = None
        if led is not None:
            on_lost()
        self.release()

    def advance(self) -> None:
        """Make one attempt to stay leader or to become leader."""
        held_until, now = self._held_until, self._pace.clock()
        if held_until is not None and now < held_until:
            self._attempt(self._renew, held_until)
        else:
            self._held_until = None
            self._attempt(self._take_over, now + self._durations.renew_s)

    def _attempt(self, attempt: Callable[[float], None], deadline: float) -> None:
        """Make one attempt; log a new failure once, and try again later."""
        try:
            attempt(deadline)
        except KubeError as error:
            self.error = error
            is_passing = self._refusals.record(error)
            if str(error) != self._problem:
                level = logging.INFO if is_passing else self._problem_level
                fields = {"lease": self._lease.name, "error": str(error)}
                log.log(level, "cannot reach lease", extra=fields)
            self._problem = "" if is_passing else str(error)
        else:
            self.error = None
            self._refusals.record(None)
            self._problem = ""

    def _take_over(self, deadline: float) -> None:
        """Read the lease, and take it if it has no holder or has expired."""
        seen = self._read(deadline)
        if seen is not None and seen.record.holder not in ("", self._lease.identity):
            expires = seen.observed_at_s + max(seen.record.duration_s, self._durations.lease_s)
            if self._pace.clock() < expires:
                return
        self._claim(seen, deadline)

    def _renew(self, deadline: float) -> None:
        """Write the lease again; if it changed meanwhile, check whether it is still ours."""
        try:
            self._claim(self._observed, deadline)
        except (KubeConflict, KubeNotFound):
            seen = self._read(deadline)
            if seen is not None and seen.record.holder != self._lease.identity:
                self._held_until = None  # an administrator took it, or our clock ran wrong
                return
            self._claim(seen, deadline)

    def _read(self, deadline: float) -> _ObservedLease | None:
        """Return the current lease, or None if we have never seen one.

        A lease that was deleted while it was held counts as renewed just now.
        """
        try:
            record, version = self._send(KubeRequest("GET", self._lease.path), deadline)
        except KubeNotFound:
            if self._observed is not None and self._observed.version:
                self._observed = _ObservedLease(self._observed.record, "", self._pace.clock())
            return self._observed
        if self._observed is None or self._observed.version != version:
            self._observed = _ObservedLease(record, version, self._pace.clock())
        return self._observed

    def _claim(self, seen: _ObservedLease | None, deadline: float) -> None:
        """Write that we hold the lease; this replaces only the version that was seen."""
        record = LeaseRecord(
            holder=self._lease.identity,
            duration_s=max(1, round(self._durations.lease_s)),
            transitions=0,
            acquired_at=render_micro_time(self._now()),
            address=self.address,
        )
        if seen is not None:
            last = seen.record
            is_ours = last.holder == self._lease.identity
            record = replace(
                record,
                transitions=last.transitions + (0 if is_ours else 1),
                acquired_at=last.acquired_at if is_ours else record.acquired_at,
            )
        sent = self._pace.clock()
        self._observed = self._write(record, "" if seen is None else seen.version, deadline)
        self._num_terms += not self.is_leader
        self._held_until = sent + self._durations.renew_s
        self.num_renewals += 1

    def _write(self, record: LeaseRecord, version: str, deadline: float) -> _ObservedLease:
        """Replace this version of the lease, or create the lease if the version is empty."""
        namespace, name = self._lease.namespace, self._lease.name
        body = render_lease(
            record, namespace=namespace, name=name, version=version, now=self._now()
        )
        request = (
            KubeRequest("PUT", self._lease.path, body=body)
            if version
            else KubeRequest("POST", LEASES.path(namespace=namespace), body=body)
        )
        written, version = self._send(request, deadline)
        return _ObservedLease(written, version, self._pace.clock())

    def _send(self, request: KubeRequest, deadline: float) -> tuple[LeaseRecord, str]:
        """Send a request with half of the remaining time as its timeout.

        A connection that falls silent after its first bytes takes twice the timeout.
        """
        limit_s = max(_MIN_WAIT_S, (deadline - self._pace.clock()) / 2)
        return parse_lease(
            decode_object(str(request), self._transport.ask(request, timeout_s=limit_s))
        )

    def release(self) -> None:
        """Release the lease, so that another replica need not wait for its expiry."""
        seen, self._held_until = self._observed, None
        if seen is None or seen.record.holder != self._lease.identity or not seen.version:
            return
        empty = replace(seen.record, holder="", duration_s=_RELEASED_DURATION_S, address="")
        try:
            self._observed = self._write(
                empty, seen.version, self._pace.clock() + RELEASE_TIMEOUT_S
            )
        except KubeError as error:
            fields = {"lease": self._lease.name, "error": str(error)}
            log.warning("lease not released", extra=fields)

    def _wait_for_retry(self) -> None:
        """Wait for the next attempt, but not beyond the end of leadership."""
        retry_s = self._durations.retry_s
        wait_s = self._pace.uniform(retry_s, retry_s * (1 + _JITTER))
        if self._held_until is not None:
            wait_s = max(0.0, min(wait_s, self._held_until - self._pace.clock()))
        self._pace.stop.wait(wait_s)


_POLL_S: Final = 0.5


@contextmanager
def hold_lease(
    transport: Transport, namespace: str, *, on_note: Callable[[str], None]
) -> Iterator[Fence]:
    """Hold the lease within the context; yield the fence of the writes.

    If the lease of a program that was killed has not expired, this waits for its expiry.

    Args:
        transport: sends requests to the API server.
        namespace: the namespace of the lease, in which `toponaut serve` runs.
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
