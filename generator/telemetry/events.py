"""Kubernetes Events: the notices of rounds, written where `kubectl describe` finds them.

Telling is worth less than what is told of: notices wait in a short queue, are written once, and
are dropped with a line in the log where the queue is full, the API server refuses, or the same
thing keeps turning. Events about objects of the cluster live in the namespace `default`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from queue import Empty, Full, Queue
from threading import Thread
from typing import Any, Final, NamedTuple

from generator.kube.lease import render_micro_time
from generator.kube.resources import FABRICS, NODES, Resource
from generator.kube.transport import KubeRequest, Transport, decode_object
from generator.reconcile.result import EventResult, RoundOutcome
from generator.telemetry.event_texts import EventText, EventSubject, build_event_texts
from runtime.clock import Monotonic
from topology.model.errors import KubeError, KubeNotFound

log = logging.getLogger(__name__)

EVENTS: Final = Resource("events.k8s.io", "v1", "events", "Event")
NAMESPACE: Final = "default"
"""The only one that the API server takes for objects without a namespace."""
CONTROLLER: Final = "toponaut.io/generator"
QUEUE_SIZE: Final = 128
BURST: Final = 5
"""Events about one object for one reason at once; then one every `REPEAT_PERIOD_S`."""
REPEAT_PERIOD_S: Final = 300.0
REQUEST_TIMEOUT_S: Final = 10.0
MAX_INSTANCE: Final = 128
_RESOURCE_BY_KIND: Final[Mapping[str, Resource]] = {one.kind: one for one in (FABRICS, NODES)}


class EventSource(NamedTuple):
    """Who reports, and when."""

    instance: str
    """Name of this replica."""
    started: datetime
    now: Callable[[], datetime]
    clock: Monotonic


class EventWriter:
    """Tells of rounds; follows them in its context."""

    def __init__(
        self,
        transport: Transport,
        reporter: EventSource,
        *,
        is_leader: Callable[[], bool],
        on_event: Callable[[EventResult], None],
    ) -> None:
        """Ask nothing yet.

        Args:
            transport: to the API server.
            reporter: us.
            may_tell: whether this replica is the one that tells: the leader.
            on_event: takes what became of each Event.
        """
        self._transport = transport
        self._reporter = reporter
        self._is_leader = is_leader
        self._on_event = on_event
        self._last_outcome: RoundOutcome | None = None
        self._allowances: dict[tuple[EventSubject, str], tuple[float, float]] = {}
        self._queue: Queue[EventText | None] = Queue(QUEUE_SIZE)
        self._thread = Thread(target=self._run, name="events", daemon=True)
        self._thread.start()

    def on_round(self, outcome: RoundOutcome) -> None:
        """Take the outcome of a round; returns at once."""
        if outcome.is_failed:
            return
        before, self._last_outcome = self._last_outcome, outcome
        if not self._is_leader():
            return
        for notice in build_event_texts(before, outcome, started_at=self._reporter.started):
            self._enqueue(notice)

    def stop(self, *, deadline_s: float) -> None:
        """Write what waits, as far as the deadline allows."""
        while True:
            try:
                self._queue.put_nowait(None)
                break
            except Full:
                self._drop_oldest()
        self._thread.join(deadline_s)

    def _drop_oldest(self) -> None:
        try:
            self._queue.get_nowait()
        except Empty:
            return
        self._on_event(EventResult.DROPPED)

    def _enqueue(self, notice: EventText) -> None:
        if self._take_allowance(notice):
            try:
                self._queue.put_nowait(notice)
            except Full:
                pass
            else:
                return
        self._on_event(EventResult.DROPPED)
        log.info("event dropped", extra={"reason": notice.reason, "note": notice.note})

    def _take_allowance(self, notice: EventText) -> bool:
        """Return whether the allowance of an object and reason has one left, and take it."""
        key, now_s = (notice.subject, notice.reason), self._reporter.clock()
        level, at_s = self._allowances.get(key, (float(BURST), now_s))
        level = min(BURST, level + (now_s - at_s) / REPEAT_PERIOD_S)
        is_left = level >= 1
        self._allowances[key] = (level - is_left, now_s)
        if len(self._allowances) > 4 * QUEUE_SIZE:
            del self._allowances[next(iter(self._allowances))]
        return is_left

    def _run(self) -> None:
        while (notice := self._queue.get()) is not None:
            try:
                self._write(notice)
            except KubeError as error:
                self._on_event(EventResult.FAILED)
                log.warning(
                    "event not written", extra={"reason": notice.reason, "error": str(error)}
                )
            else:
                self._on_event(EventResult.WRITTEN)

    def _write(self, notice: EventText) -> None:
        body = render_event(notice, self._reporter, uid=self._fetch_uid(notice.subject))
        request = KubeRequest("POST", EVENTS.path(namespace=NAMESPACE), body=body)
        self._transport.ask(request, timeout_s=REQUEST_TIMEOUT_S)

    def _fetch_uid(self, about: EventSubject) -> str:
        """Return the uid by which `kubectl describe` finds the Event; empty where it is gone."""
        request = KubeRequest("GET", _RESOURCE_BY_KIND[about.kind].path(about.name))
        try:
            found = decode_object(
                str(request), self._transport.ask(request, timeout_s=REQUEST_TIMEOUT_S)
            )
        except KubeNotFound:
            return ""
        metadata = found.get("metadata")
        return str(metadata.get("uid", "")) if isinstance(metadata, Mapping) else ""


def render_event(notice: EventText, reporter: EventSource, *, uid: str) -> dict[str, Any]:
    """Return the Event object of a notice."""
    about = notice.subject
    regarding = {
        "apiVersion": _RESOURCE_BY_KIND[about.kind].api_version,
        "kind": about.kind,
        "name": about.name,
    }
    return {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {"namespace": NAMESPACE, "generateName": "toponaut-generator-"},
        "eventTime": render_micro_time(reporter.now()),
        "reportingController": CONTROLLER,
        "reportingInstance": reporter.instance[:MAX_INSTANCE],
        "action": notice.action,
        "reason": notice.reason,
        "regarding": regarding | ({"uid": uid} if uid else {}),
        "note": notice.note,
        "type": "Warning" if notice.is_warning else "Normal",
    }
