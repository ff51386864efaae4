"""The Prometheus metrics of the agent. Their names are a contract, which a golden file holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from agent.collection import COLLECTORS, FRAMES, CollectorRun, RunOutcome
from agent.publish.destination import PublishOutcome
from runtime.clock import Clock
from runtime.http import Page
from topology.model.errors import TopologyError

PREFIX: Final = "toponaut_agent_"
_DURATION: Final = "How long its last run took."
_SUCCESS: Final = "1 where its last run worked, be it that it found nothing, else 0."
_NEIGHBORS: Final = "Neighbors that it counts now; after a failure those of its last good run."
_LAST_SUCCESS: Final = "When a collection last observed anything anew."
_FAILED: Final = "failed"
_RESULTS: Final = (
    PublishOutcome.SPEC.value,
    PublishOutcome.STATUS.value,
    PublishOutcome.DEFERRED.value,
    _FAILED,
)


class AgentMetrics:
    """Counts what rounds and requests to the API server did."""

    def __init__(self, *, version: str, clock: Clock) -> None:
        """Register all metrics; a collector that never ran has none, all others start at 0."""
        # Without this each counter has one more series, which nothing reads.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library's
        self._clock = clock
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._duration = _add_gauge(registry, "collector_duration_seconds", _DURATION, "collector")
        self._success = _add_gauge(registry, "collector_success", _SUCCESS, "collector")
        self._neighbors = _add_gauge(registry, "neighbors", _NEIGHBORS, "collector")
        self._last_success = _add_gauge(registry, "last_success_timestamp_seconds", _LAST_SUCCESS)
        self._publishes = Counter(
            f"{PREFIX}publishes",
            "Reports written by what changed of them (spec, status), put off, or failed to be.",
            ["result"],
            registry=registry,
        )
        self._requests = Counter(
            f"{PREFIX}api_requests",
            "Requests to the API server by the code of their answer, none where none came.",
            ["code"],
            registry=registry,
        )
        build = _add_gauge(registry, "build_info", "1, with the version that runs.", "version")
        build.labels(version).set(1)
        for result in _RESULTS:
            self._publishes.labels(result)

    def record_collection(self, attempts: Sequence[CollectorRun], *, is_good: bool) -> None:
        """Note the outcome of each collector, and drop collectors that no longer run."""
        if is_good:
            self._last_success.set(self._clock.now().timestamp())
        for attempt in attempts:
            name = attempt.collector
            heard = sum(len(port.neighbors) for port in attempt.facts.ports)
            self._duration.labels(name).set(attempt.duration_s)
            self._success.labels(name).set(attempt.outcome is not RunOutcome.FAILED)
            self._neighbors.labels(name).set(heard)
        asked = {attempt.collector for attempt in attempts}
        for name in {*COLLECTORS, FRAMES} - asked:
            for gauge in (self._duration, self._success, self._neighbors):
                gauge.remove_by_labels({"collector": name})

    def record_publishing(
        self, changes: Mapping[str, PublishOutcome], problem: TopologyError | None = None
    ) -> None:
        """Count the written reports by what changed, and failures."""
        for change in changes.values():
            if change is not PublishOutcome.NONE:
                self._publishes.labels(change.value).inc()
        if problem is not None:
            self._publishes.labels(_FAILED).inc()

    def record_answer(self, code: str) -> None:
        """Count a request to the API server."""
        self._requests.labels(code).inc()

    def render(self, _accept: str) -> Page:
        """Return the page of all metrics, always in the plain text format."""
        return Page(generate_latest(self.registry), content_type=CONTENT_TYPE_PLAIN_0_0_4)


def _add_gauge(registry: CollectorRegistry, name: str, text: str, *labels: str) -> Gauge:
    return Gauge(f"{PREFIX}{name}", text, labels, registry=registry)
