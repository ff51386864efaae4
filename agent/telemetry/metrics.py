"""The Prometheus metrics of the agent. Users rely on their names, so a golden file lists them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
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

PREFIX: Final = "toponaut_agent"
_DURATION: Final = "Duration of the collector's last run."
_SUCCESS: Final = "1 if the collector's last run worked, even if it found nothing; 0 if it failed."
_NEIGHBORS: Final = "Neighbors that the collector found in its last good run."
_LAST_SUCCESS: Final = "Unix time of the last successful collection."
_FAILED: Final = "failed"
_RESULTS: Final = (
    PublishOutcome.SPEC.value,
    PublishOutcome.STATUS.value,
    PublishOutcome.DEFERRED.value,
    _FAILED,
)


class AgentMetrics:
    """The metrics of rounds and of requests to the API server."""

    def __init__(self, *, version: str, clock: Clock) -> None:
        """Register all metrics.

        Those of a collector appear after its first run, and all others start at 0.
        """
        # Without this call each counter has a second series, `_created`, that has no use here.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library's
        self._clock = clock
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        gauge = partial(Gauge, namespace=PREFIX, registry=registry)
        self._duration = gauge("collector_duration_seconds", _DURATION, ["collector"])
        self._success = gauge("collector_success", _SUCCESS, ["collector"])
        self._neighbors = gauge("neighbors", _NEIGHBORS, ["collector"])
        self._last_success = gauge("last_success_timestamp_seconds", _LAST_SUCCESS)
        self._publishes = Counter(
            f"{PREFIX}_publishes",
            "Reports by result: written because the spec or only the status changed, deferred, "
            "or failed.",
            ["result"],
            registry=registry,
        )
        self._requests = Counter(
            f"{PREFIX}_api_requests",
            "Requests to the API server, by HTTP status code; none if no answer came.",
            ["code"],
            registry=registry,
        )
        build = gauge(
            "build_info", "Always 1; the label shows the version of the agent.", ["version"]
        )
        build.labels(version).set(1)
        for result in _RESULTS:
            self._publishes.labels(result)

    def record_collection(self, attempts: Sequence[CollectorRun], *, is_good: bool) -> None:
        """Record the outcome of each collector, and drop collectors that no longer run."""
        if is_good:
            self._last_success.set(self._clock.now().timestamp())
        for attempt in attempts:
            name = attempt.collector
            num_neighbors = sum(len(port.neighbors) for port in attempt.facts.ports)
            self._duration.labels(name).set(attempt.duration_s)
            self._success.labels(name).set(attempt.outcome is not RunOutcome.FAILED)
            self._neighbors.labels(name).set(num_neighbors)
        active = {attempt.collector for attempt in attempts}
        for name in {*COLLECTORS, FRAMES} - active:
            for gauge in (self._duration, self._success, self._neighbors):
                gauge.remove_by_labels({"collector": name})

    def record_publishing(
        self, changes: Mapping[str, PublishOutcome], problem: TopologyError | None = None
    ) -> None:
        """Count the written and deferred reports by result, and the failures."""
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
