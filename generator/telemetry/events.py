"""Writes Kubernetes Events about rounds, where `kubectl describe` finds them.

Events are best effort: they wait in a short queue and are written once. An Event is dropped with
a log line if the queue is full, the API server refuses it, or the same change keeps repeating.
Events about cluster-scoped objects are in the namespace `default`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from queue import Empty, Full, Queue
from threading import Thread
from typing import Any, Final, NamedTuple

from generator.kube.lease_record import render_micro_time
from generator.kube.resources import FABRICS, NODES, Resource
from generator.kube.transport import KubeRequest, Transport, decode_object
from generator.reconcile.round_results import EventResult, RoundOutcome
from generator.telemetry.event_texts import EventSubject, EventText, build_event_texts
from runtime.clock import Monotonic
from runtime.retry import Allowance
from topology.model.errors import KubeError, KubeNotFound

log = logging.getLogger(__name__)

EVENTS: Final = Resource("events.k8s.io", "v1", "events", "Event")
NAMESPACE: Final = "default"
"""The only namespace that the API server accepts for Events about cluster-scoped objects."""
CONTROLLER: Final = "toponaut.io/generator"
QUEUE_SIZE: Final = 128
BURST: Final = 5
"""Events about one object and reason that may follow at once; then one per `REPEAT_PERIOD_S`."""
REPEAT_PERIOD_S: Final = 300.0
REQUEST_TIMEOUT_S: Final = 10.0
MAX_INSTANCE: Final = 128
_RESOURCE_BY_KIND: Final[Mapping[str, Resource]] = {
    resource.kind: resource for resource in (FABRICS, NODES)
}


class EventSource(NamedTuple):
    """The reporter of Events, and its clocks."""

    instance: str
    """Name of this replica."""
    started: datetime
    """When this process started, with a time zone."""
    now: Callable[[], datetime]
    clock: Monotonic


class EventWriter:
    """Turns the outcomes of rounds into Events and writes them in a thread."""

    def __init__(
        self,
        transport: Transport,
        reporter: EventSource,
        *,
        is_leader: Callable[[], bool],
        on_event: Callable[[EventResult], None],
    ) -> None:
        """Start the thread; send no request yet.

        Args:
            transport: sends requests to the API server.
            reporter: this replica.
            is_leader: whether this replica leads; only the leader writes Events.
            on_event: receives the result of each Event.
        """
        self._transport = transport
        self._reporter = reporter
        self._is_leader = is_leader
        self._on_event = on_event
        self._last_outcome: RoundOutcome | None = None
        self._allowances: dict[tuple[EventSubject, str], Allowance] = {}
        self._queue: Queue[EventText | None] = Queue(QUEUE_SIZE)
        self._thread = Thread(target=self._run, name="events", daemon=True)
        self._thread.start()

    def on_round(self, outcome: RoundOutcome) -> None:
        """Queue the Events of a round; return at once."""
        if outcome.is_failed:
            return
        before, self._last_outcome = self._last_outcome, outcome
        if not self._is_leader():
            return
        for text in build_event_texts(before, outcome, started_at=self._reporter.started):
            self._enqueue(text)

    def stop(self, *, deadline_s: float) -> None:
        """Write the queued Events, as far as the deadline allows."""
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

    def _enqueue(self, text: EventText) -> None:
        if self._take_allowance(text):
            try:
                self._queue.put_nowait(text)
            except Full:
                pass
            else:
                return
        self._on_event(EventResult.DROPPED)
        log.info("event dropped", extra={"reason": text.reason, "note": text.note})

    def _take_allowance(self, text: EventText) -> bool:
        """Return whether an Event about this object and reason may be written now, and count it."""
        key, now_s = (text.subject, text.reason), self._reporter.clock()
        allowance = self._allowances.setdefault(
            key, Allowance(per_second=1 / REPEAT_PERIOD_S, burst=BURST, now_s=now_s)
        )
        is_left = allowance.refill(now_s) >= 1
        allowance.tokens -= is_left
        if len(self._allowances) > 4 * QUEUE_SIZE:
            del self._allowances[next(iter(self._allowances))]
        return is_left

    def _run(self) -> None:
        while (text := self._queue.get()) is not None:
            try:
                self._write(text)
            except KubeError as error:
                self._on_event(EventResult.FAILED)
                log.warning("event not written", extra={"reason": text.reason, "error": str(error)})
            else:
                self._on_event(EventResult.WRITTEN)

    def _write(self, text: EventText) -> None:
        body = render_event(text, self._reporter, uid=self._fetch_uid(text.subject))
        request = KubeRequest("POST", EVENTS.path(namespace=NAMESPACE), body=body)
        self._transport.ask(request, timeout_s=REQUEST_TIMEOUT_S)

    def _fetch_uid(self, about: EventSubject) -> str:
        """Return the uid by which `kubectl describe` finds the Event; empty if it is deleted."""
        request = KubeRequest("GET", _RESOURCE_BY_KIND[about.kind].path(about.name))
        try:
            document = decode_object(
                str(request), self._transport.ask(request, timeout_s=REQUEST_TIMEOUT_S)
            )
        except KubeNotFound:
            return ""
        metadata = document.get("metadata")
        return str(metadata.get("uid", "")) if isinstance(metadata, Mapping) else ""


def render_event(text: EventText, reporter: EventSource, *, uid: str) -> dict[str, Any]:
    """Return the Event object for a text."""
    about = text.subject
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
        "action": text.action,
        "reason": text.reason,
        "regarding": regarding | ({"uid": uid} if uid else {}),
        "note": text.note,
        "type": "Warning" if text.is_warning else "Normal",
    }
