"""The Prometheus metrics of the server: one registry, its counters and its page.

Gauges are computed from the last round's outcome when a page is requested, so all gauges of a page
describe the same round. Counters are incremented as events happen. The metric names are a contract;
a golden file of the tests lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from generator.reconcile.round_results import EventResult, QueryResult, RoundOutcome
from generator.reservations.records import ReservedTotals
from generator.telemetry.metric_values import (
    MetricFamily,
    build_reservation_metrics,
    build_round_metrics,
)
from runtime.http import Page

PREFIX: Final = "toponaut_generator"
_ROUND_BUCKETS_S: Final = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)
_QUERY_BUCKETS_S: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10)
_WATCHES_HELP: Final = "Watches and lists started to follow objects, including the first ones."
_TRANSITIONS_HELP: Final = "How often leadership passed from one replica to another."
_LEADER_HELP: Final = "1 if this replica is the leader, else 0; absent without leader election."


class LeadershipSample(NamedTuple):
    """The leadership and the watches of this replica at one moment."""

    is_leader: bool = False
    transitions: int = 0
    """Changes of leader over the whole life of the lease."""
    watches: Mapping[str, int] = {}
    """Watches and lists started, by plural resource name."""


class GeneratorMetrics:
    """Counts calls, writes and Events, and keeps the last round. Thread-safe."""

    def __init__(self, *, version: str, now: Callable[[], datetime]) -> None:
        """Register every metric; counters start at 0.

        Args:
            version: the version of the program.
            now: the wall clock.
        """
        # Otherwise each counter has a `_created` series too, which is not used.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library's
        self._now = now
        self._registry = registry = CollectorRegistry()
        self._state = _StateCollector()
        registry.register(self._state)
        ProcessCollector(registry=registry)
        counter = partial(Counter, namespace=PREFIX, registry=registry)
        gauge = partial(Gauge, namespace=PREFIX, registry=registry)
        histogram = partial(Histogram, namespace=PREFIX, registry=registry)
        build = gauge("build_info", "Always 1; the version is a label.", ["version"])
        build.labels(version).set(1)
        self._success = gauge(
            "last_success_timestamp_seconds",
            "Unix time when the last reconcile round without an error ended; 0 before the first.",
        )
        self._rounds = histogram(
            "reconcile_duration_seconds",
            "Duration of a reconcile round.",
            buckets=_ROUND_BUCKETS_S,
        )
        self._actions = counter(
            "reconcile_actions", "Writes of HyperNodes, by result.", ["action", "result"]
        )
        self._queries = counter("placement_queries", "Placement queries, by result.", ["result"])
        self._query_times = histogram(
            "placement_query_duration_seconds",
            "Time to answer a placement query.",
            buckets=_QUERY_BUCKETS_S,
        )
        self._requests = counter(
            "api_requests",
            "Requests to the API server, by HTTP status code; none if no answer came.",
            ["code"],
        )
        self._events = counter("events", "Kubernetes Events, by result.", ["result"])
        for counted, results in ((self._queries, QueryResult), (self._events, EventResult)):
            for result in results:
                counted.labels(result.value)

    def on_round(self, outcome: RoundOutcome) -> None:
        """Record the outcome of a round."""
        self._rounds.observe(outcome.duration_s)
        for action in outcome.completed_actions:
            self._actions.labels(action.op.value, "done").inc()
        if outcome.failed_action is not None:
            self._actions.labels(outcome.failed_action.op.value, "failed").inc()
        if outcome.is_failed:
            return
        self._success.set(self._now().timestamp())
        self._state.outcome = outcome

    def on_query(self, result: QueryResult, duration_s: float) -> None:
        """Count a placement query that ended."""
        self._queries.labels(result.value).inc()
        self._query_times.observe(duration_s)

    def on_request(self, code: int) -> None:
        """Count a request to the API server by its HTTP status; 0 means no answer."""
        self._requests.labels(str(code) if code else "none").inc()

    def on_event(self, result: EventResult) -> None:
        """Count a Kubernetes Event by its result."""
        self._events.labels(result.value).inc()

    def add_cluster_metrics(self, view: Callable[[], LeadershipSample]) -> None:
        """Add the leadership and watch metrics of this replica to the page."""
        self._state.view = view

    def add_reservation_metrics(self, view: Callable[[], ReservedTotals]) -> None:
        """Add the reservation metrics to the page."""
        self._state.census = view

    def render_page(self, accept: str) -> Page:
        """Return the page in the format of the client's Accept header."""
        encode, content_type = choose_encoder(accept)
        return Page(encode(self._registry), content_type=content_type)


class _StateCollector(Collector):
    """The gauges: computed for each page."""

    def __init__(self) -> None:
        """Start without a round."""
        self.outcome = RoundOutcome(0.0)
        self.view: Callable[[], LeadershipSample] | None = None
        self.census: Callable[[], ReservedTotals] = ReservedTotals

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the last round and, in a cluster, of this replica."""
        for family in build_round_metrics(self.outcome):
            yield _build_family(family)
        for family in build_reservation_metrics(self.census()):
            yield _build_family(family)
        if self.view is not None:
            yield from _build_cluster_families(self.view())


def _build_family(metric: MetricFamily) -> Metric:
    family = GaugeMetricFamily(f"{PREFIX}_{metric.name}", metric.help_text, labels=metric.labels)
    for labels, value in metric.samples.items():
        family.add_metric(labels, value)
    return family


def _build_cluster_families(view: LeadershipSample) -> Iterator[Metric]:
    yield _build_family(MetricFamily("leader", _LEADER_HELP, (), {(): float(view.is_leader)}))
    passed = CounterMetricFamily(f"{PREFIX}_lease_transitions", _TRANSITIONS_HELP, labels=())
    passed.add_metric((), view.transitions)
    yield passed
    watches = CounterMetricFamily(f"{PREFIX}_watch_restarts", _WATCHES_HELP, labels=("resource",))
    for resource, num in view.watches.items():
        watches.add_metric((resource,), num)
    yield watches
