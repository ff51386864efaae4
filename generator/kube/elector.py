"""One leader among the replicas, by a Lease that it renews.

Nobody compares times of two machines: a lease has expired when its holder was not *seen* to change
it for its duration, on the own monotonic clock. The leader counts from before it sent the renewal
that was granted, and stops before the others may begin. So two never lead at once, whatever the
clocks say, as long as they run at about the same speed. Every request is capped by what is left.

The number of transitions grows with each new leader: what it writes can carry it, so that a
store may refuse what a former leader sends late.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, NamedTuple

from generator.kube.lease import LeaseRecord, render_micro_time, parse_lease, render_lease
from generator.kube.resources import LEASES
from generator.kube.transport import KubeRequest, Transport, decode_object
from runtime.retry import WaitContext
from topology.model.errors import KubeConflict, KubeError, KubeNotFound

log = logging.getLogger(__name__)

RELEASE_TIMEOUT_S: Final = 2.0
"""Longest wait of a release; the others can wait for the expiry as well."""
_RELEASED_DURATION_S: Final = 1
"""Duration of a lease that nobody holds: 0 is refused by the API."""
_JITTER: Final = 0.2
_MIN_WAIT_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class LeaseDurations:
    """How long a leader leads without renewing."""

    lease_s: float = 15.0
    """After this the others may take over."""
    renew_s: float = 10.0
    """After this the leader gives up."""
    retry_s: float = 2.0
    """Between renewals, and between tries to become leader."""


class LeaseName(NamedTuple):
    """Which lease, and who wants it."""

    namespace: str
    name: str
    identity: str
    """Of this process alone: with a part that is drawn anew at every start."""

    @property
    def path(self) -> str:
        """Where the object is."""
        return LEASES.path(self.name, namespace=self.namespace)


class _ObservedLease(NamedTuple):
    """A lease as it was last read or written."""

    record: LeaseRecord
    version: str
    observed_at_s: float
    """When it was first seen to be so, on our clock."""


class Elector:
    """Tries to lead, and leads as long as it can renew; `run` in a thread of its own."""

    def __init__(
        self,
        transport: Transport,
        lease: LeaseName,
        *,
        now: Callable[[], datetime],
        pace: WaitContext,
        durations: LeaseDurations = LeaseDurations(),
    ) -> None:
        """Ask nothing yet.

        Args:
            transport: to the API server.
            lease: which one, and who we are.
            now: the wall clock, for people who read the lease.
            pace: how to wait, and until when.
            terms: how long a leader leads.
        """
        self._transport = transport
        self._lease = lease
        self._now = now
        self._pace = pace
        self._durations = durations
        self._observed: _ObservedLease | None = None
        self.address = ""
        """Where we answer calls, told to the others while we lead; set it before `run`."""
        self.num_renewals = 0
        """Granted ones, the first claim of each reign among them."""
        self._held_until: float | None = None
        """When leadership ends unless renewed, None while another leads."""
        self._problem = ""

    @property
    def is_leader(self) -> bool:
        """Whether we lead at this moment, even where the thread of `run` has not noticed yet."""
        held = self._held_until
        return held is not None and self._pace.clock() < held

    @property
    def left_s(self) -> float:
        """For how long we lead without another renewal, 0 where we do not."""
        held = self._held_until
        return 0.0 if held is None else max(0.0, held - self._pace.clock())

    @property
    def epoch(self) -> int:
        """How often leadership had passed when we last saw the lease."""
        return 0 if self._observed is None else self._observed.record.transitions

    @property
    def leader_address(self) -> str:
        """Where the leader answers calls, as we last saw; empty where nobody leads or tells."""
        record = None if self._observed is None else self._observed.record
        return record.address if record is not None and record.holder else ""

    def run(self, *, on_gained: Callable[[int], None], on_lost: Callable[[], None]) -> None:
        """Try until the end is wished, then release the lease if we hold it.

        Args:
            on_gained: called with the epoch when leadership begins; must return soon.
            on_lost: called when it ends, also by the end that was wished, before the release.
        """
        led: int | None = None
        while not self._pace.stop.is_set:
            self.advance()
            now = self.epoch if self.is_leader else None
            if led not in (None, now):
                log.info("leading no more", extra={"lease": self._lease.name, "epoch": led})
                on_lost()
            if now not in (None, led):
                log.info("leading", extra={"lease": self._lease.name, "epoch": now})
                on_gained(self.epoch)
            led = now
            self._wait_for_retry()
        self._held_until = None
        if led is not None:
            on_lost()
        self.release()

    def advance(self) -> None:
        """Make one attempt: to stay leader, or to become it."""
        held, now = self._held_until, self._pace.clock()
        if held is not None and now < held:
            self._attempt(self._renew, held)
        else:
            self._held_until = None
            self._attempt(self._take_over, now + self._durations.renew_s)

    def _attempt(self, attempt: Callable[[float], None], deadline: float) -> None:
        """Make one attempt; what fails is told once and tried again later."""
        try:
            attempt(deadline)
        except KubeError as error:
            if str(error) != self._problem:
                fields = {"lease": self._lease.name, "error": str(error)}
                log.warning("lease out of reach", extra=fields)
            self._problem = str(error)
        else:
            self._problem = ""

    def _take_over(self, deadline: float) -> None:
        """Read the lease, and take it where nobody holds it any more."""
        seen = self._read(deadline)
        if seen is not None and seen.record.holder not in ("", self._lease.identity):
            expires = seen.observed_at_s + max(seen.record.duration_s, self._durations.lease_s)
            if self._pace.clock() < expires:
                return
        self._claim(seen, deadline)

    def _renew(self, deadline: float) -> None:
        """Write the lease again; where it changed meanwhile, see whether it is still ours."""
        try:
            self._claim(self._observed, deadline)
        except (KubeConflict, KubeNotFound):
            seen = self._read(deadline)
            if seen is not None and seen.record.holder != self._lease.identity:
                self._held_until = None  # somebody took it: an administrator, or our clock lied
                return
            self._claim(seen, deadline)

    def _read(self, deadline: float) -> _ObservedLease | None:
        """Return the lease as it stands, None where there was none as long as we know.

        A lease that was deleted under its holder binds us like one that was renewed just now.
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
        """Write that we hold the lease, in place of what was seen and of nothing else."""
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
        self._held_until = sent + self._durations.renew_s
        self.num_renewals += 1

    def _write(self, record: LeaseRecord, version: str, deadline: float) -> _ObservedLease:
        """Write the lease in place of this version, or anew where it is empty."""
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
        """Ask for at most half of the time that is left.

        A connection that falls silent half way costs its limit twice.
        """
        limit_s = max(_MIN_WAIT_S, (deadline - self._pace.clock()) / 2)
        return parse_lease(
            decode_object(str(request), self._transport.ask(request, timeout_s=limit_s))
        )

    def release(self) -> None:
        """Let go of the lease, so that another need not wait for its expiry."""
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
