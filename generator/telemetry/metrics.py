"""What Prometheus is told of the server: one registry of its own, and the page of it.

What stands is made of the last round's outcome when the page is asked for, so all of a page is of
one moment; what happens is counted. The names are a contract, kept by a golden file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
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

from generator.reconcile.result import EventResult, QueryResult, RoundOutcome
from generator.reservations.records import ReservedTotals
from generator.telemetry.metric_values import (
    MetricFamily,
    build_round_metrics,
    build_reservation_metrics,
)
from runtime.http import Page

PREFIX: Final = "toponaut_generator_"
_ROUND_BUCKETS_S: Final = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)
_QUERY_BUCKETS_S: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10)
_WATCHES_HELP: Final = "Watches and lists begun to follow objects; the first of each kind, too."
_TRANSITIONS_HELP: Final = "How often leadership passed from one replica to another."
_LEADER_HELP: Final = "1 where this replica leads, else 0; absent where it stands for no election."


class LeadershipSample(NamedTuple):
    """How this replica stands in its cluster at a moment."""

    is_leader: bool = False
    transitions: int = 0
    """Of the lease, in its whole life."""
    watches: Mapping[str, int] = {}
    """Watches and lists begun, by the plural of their kind."""


class GeneratorMetrics:
    """Counts what happens, and remembers the last round; any thread may call it."""

    def __init__(self, *, version: str, now: Callable[[], datetime]) -> None:
        """Register everything; what was never counted is 0.

        Args:
            version: of the program.
            now: the wall clock.
        """
        # Else each counter has a series more, which nobody reads.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library's
        self._now = now
        self._registry = registry = CollectorRegistry()
        self._state = _StateCollector()
        registry.register(self._state)
        ProcessCollector(registry=registry)
        build = _register_gauge(
            registry, "build_info", "Always 1; the version is a label.", "version"
        )
        build.labels(version).set(1)
        self._success = _register_gauge(
            registry,
            "last_success_timestamp_seconds",
            "Unix time at which a round last ended without an error; 0 before the first.",
        )
        self._rounds = _register_histogram(
            registry, "reconcile_duration_seconds", "Time that a round takes.", _ROUND_BUCKETS_S
        )
        self._actions = _register_counter(
            registry, "reconcile_actions", "Writes of HyperNodes.", "action", "result"
        )
        self._queries = _register_counter(
            registry, "placement_queries", "Calls for a placement.", "result"
        )
        self._query_times = _register_histogram(
            registry,
            "placement_query_duration_seconds",
            "Time from a call for a placement to its answer.",
            _QUERY_BUCKETS_S,
        )
        self._requests = _register_counter(
            registry, "api_requests", "Requests to the API server; code none: no answer.", "code"
        )
        self._events = _register_counter(registry, "events", "Kubernetes Events.", "result")
        for counter, results in ((self._queries, QueryResult), (self._events, EventResult)):
            for result in results:
                counter.labels(result.value)

    def on_round(self, outcome: RoundOutcome) -> None:
        """Take the outcome of a round."""
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
        """Take the end of a call for a placement."""
        self._queries.labels(result.value).inc()
        self._query_times.observe(duration_s)

    def on_request(self, code: int) -> None:
        """Take the end of a request to the API server; 0 where there was no answer."""
        self._requests.labels(str(code) if code else "none").inc()

    def on_event(self, result: EventResult) -> None:
        """Take what became of a Kubernetes Event."""
        self._events.labels(result.value).inc()

    def add_cluster_metrics(self, view: Callable[[], LeadershipSample]) -> None:
        """Show from now on how this replica stands in its cluster."""
        self._state.view = view

    def add_reservation_metrics(self, view: Callable[[], ReservedTotals]) -> None:
        """Show from now on how much is reserved."""
        self._state.census = view

    def render_page(self, accept: str) -> Page:
        """Return the page in the form that the client understands."""
        encode, content_type = choose_encoder(accept)
        return Page(encode(self._registry), content_type=content_type)


class _StateCollector(Collector):
    """What stands: made anew for each page."""

    def __init__(self) -> None:
        """Nothing is known."""
        self.outcome = RoundOutcome(0.0)
        self.view: Callable[[], LeadershipSample] | None = None
        self.census: Callable[[], ReservedTotals] = ReservedTotals

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the last round, and of the cluster where there is one."""
        for figure in build_round_metrics(self.outcome):
            yield _build_family(figure)
        for figure in build_reservation_metrics(self.census()):
            yield _build_family(figure)
        if self.view is not None:
            yield from _build_cluster_families(self.view())


def _build_family(figure: MetricFamily) -> Metric:
    family = GaugeMetricFamily(PREFIX + figure.name, figure.help_text, labels=figure.labels)
    for labels, value in figure.samples.items():
        family.add_metric(labels, value)
    return family


def _build_cluster_families(view: LeadershipSample) -> Iterator[Metric]:
    yield _build_family(MetricFamily("leader", _LEADER_HELP, (), {(): float(view.is_leader)}))
    passed = CounterMetricFamily(PREFIX + "lease_transitions", _TRANSITIONS_HELP, labels=())
    passed.add_metric((), view.transitions)
    yield passed
    watches = CounterMetricFamily(PREFIX + "watch_restarts", _WATCHES_HELP, labels=("resource",))
    for resource, num in view.watches.items():
        watches.add_metric((resource,), num)
    yield watches


def _register_counter(
    registry: CollectorRegistry, name: str, meaning: str, *labels: str
) -> Counter:
    return Counter(PREFIX + name, meaning, labels, registry=registry)


def _register_gauge(registry: CollectorRegistry, name: str, meaning: str, *labels: str) -> Gauge:
    return Gauge(PREFIX + name, meaning, labels, registry=registry)


def _register_histogram(
    registry: CollectorRegistry, name: str, meaning: str, buckets: tuple[float, ...]
) -> Histogram:
    return Histogram(PREFIX + name, meaning, registry=registry, buckets=buckets)
