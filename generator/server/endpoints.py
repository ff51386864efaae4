"""The ports of a server besides the gRPC port: metrics and health; also its Events and security.

It opens and closes these ports, and passes rounds and queries on to metrics and Events. The gRPC
port is not opened here.

The server is alive while its loop completes rounds. Findings and API errors make no difference,
since no restart repairs a fabric or an API server. The server is ready when it has the data that
it answers from; followers become ready as the leader does.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Final

from generator.reconcile.round_results import OnQuery, OnRound, RoundOutcome
from generator.rpc.auth.tls import OVERLAP_S, ServerCertificates
from generator.rpc.auth.tokens import TokenReviews
from generator.rpc.server import ServerSecurity
from generator.server.replica import Replica
from generator.server.settings import EndpointSettings
from generator.telemetry.events import EventSource, EventWriter
from generator.telemetry.metrics import GeneratorMetrics
from runtime.clock import utc_now
from runtime.http import PageServer, Render, health_page
from runtime.values import parse_address

log = logging.getLogger(__name__)

EVENT_FLUSH_S: Final = 2.0
"""Longest wait at the end for queued Events."""
_METRICS: Final = "/metrics"
_READY: Final = "/readyz"
MISSED_ROUNDS: Final = 3
"""A loop that completes no round for this many periods hangs."""
MIN_LIMIT_S: Final = 60.0
"""The shortest such limit: the first rounds of a large fabric take longer."""


class Heartbeat:
    """Records when the loop last completed a round."""

    def __init__(self, *, period_s: float, clock: Callable[[], float]) -> None:
        """Start the first period now.

        Args:
            period_s: the time from one round to the next.
            clock: monotonic, in seconds.
        """
        self._limit_s = max(MIN_LIMIT_S, MISSED_ROUNDS * period_s)
        self._clock = clock
        self._last_beat_s = clock()
        self.has_begun = False
        """Whether a first round has ended."""

    def beat(self, _: RoundOutcome | None = None) -> None:
        """Record that a round ended."""
        self._last_beat_s = self._clock()
        self.has_begun = True

    def liveness_problem(self) -> str:
        """Return why the loop counts as hung, empty if it does not."""
        elapsed_s = self._clock() - self._last_beat_s
        return "" if elapsed_s <= self._limit_s else f"no round ended for {elapsed_s:.0f} s"


def build_health_pages(
    heartbeat: Heartbeat,
    *,
    readiness_problem: Callable[[], str],
    liveness_problem: Callable[[], str],
) -> Mapping[str, Render]:
    """Return the health pages by path.

    Args:
        heartbeat: the heartbeat of the loop.
        readiness_problem: returns why the server cannot answer yet, empty if it can.
        liveness_problem: returns what hangs apart from the loop, empty if nothing does.
    """

    def why_not_started() -> str:
        return "" if heartbeat.has_begun else "the first round has not ended"

    return {
        "/livez": health_page(lambda: heartbeat.liveness_problem() or liveness_problem()),
        "/startupz": health_page(why_not_started),
        _READY: health_page(lambda: why_not_started() or readiness_problem()),
    }


class Endpoints:
    """The metrics and health ports and the Events of a running server."""

    def __init__(
        self,
        settings: EndpointSettings,
        metrics: GeneratorMetrics,
        *,
        period_s: float,
        replica: Replica | None = None,
    ) -> None:
        """Bind the ports and start.

        Args:
            settings: addresses, certificates and audience.
            metrics: the metrics to show.
            period_s: the time from one round to the next.
            replica: the replica, which writes Events to the cluster; None: a folder is served.

        Raises:
            ConfigError: an address cannot be bound, or a file cannot be used.
        """
        self._replica = replica
        self._events: EventWriter | None = None
        self.web = settings.web
        """Where the page is served; None: nowhere."""
        self.tls = settings.tls
        self.add_reservation_metrics = metrics.add_reservation_metrics
        """Adds the reservation metrics to the page."""
        heartbeat = Heartbeat(period_s=period_s, clock=time.monotonic)
        listeners: list[OnRound] = [heartbeat.beat, metrics.on_round]
        if replica is not None:
            metrics.add_cluster_metrics(replica.read_leadership)
            self._events = EventWriter(
                replica.transport,
                EventSource(replica.identity, utc_now(), utc_now, time.monotonic),
                is_leader=replica.is_leader,
                on_event=metrics.on_event,
            )
            listeners.append(self._events.on_round)
        self.round_listeners = tuple(listeners)
        """Called with the outcome of each round."""
        self.on_query: OnQuery = metrics.on_query
        """Called with the result of each placement query."""
        tokens = (
            TokenReviews(replica.transport, settings.audience, clock=time.monotonic)
            if replica and settings.audience
            else None
        )
        overlap_s = OVERLAP_S if replica else 0.0
        certificates = (
            ServerCertificates(settings.tls, overlap_s=overlap_s) if settings.tls else None
        )
        self.security = ServerSecurity(certificates, tokens)
        """Certificates and token check of the gRPC port."""
        self.urls: dict[str, str] = {}
        """The URLs that a browser opens, by the name of the port."""
        self._servers: list[PageServer] = []
        try:
            self._open_servers(settings, metrics, heartbeat)
        except BaseException:
            self.stop()
            raise

    def _open_servers(
        self, settings: EndpointSettings, metrics: GeneratorMetrics, heartbeat: Heartbeat
    ) -> None:
        if settings.metrics is not None:
            self._open_server(
                "metrics", settings.metrics, {_METRICS: metrics.render_page}, _METRICS
            )
        if settings.health is not None:
            replica = self._replica
            pages = build_health_pages(
                heartbeat,
                readiness_problem=replica.readiness_problem if replica else _no_problem,
                liveness_problem=replica.liveness_problem if replica else _no_problem,
            )
            self._open_server("health", settings.health, pages, _READY)

    def _open_server(
        self, endpoint_name: str, address: str, pages: Mapping[str, Render], path: str
    ) -> None:
        """Open a port; `path` is the page that a person opens first."""
        server = PageServer(parse_address(address), pages)
        self._servers.append(server)
        self.urls[endpoint_name] = server.address.url(path)
        log.info("port open", extra={"what": endpoint_name, "address": str(server.address)})

    def stop(self) -> None:
        """Write queued Events, then close the ports."""
        if self._events is not None:
            self._events.stop(deadline_s=EVENT_FLUSH_S)
        for server in self._servers:
            server.stop()


def build_metrics() -> GeneratorMetrics:
    """Return the metrics of this program, with all counters at 0."""
    return GeneratorMetrics(version=version("toponaut"), now=utc_now)


def _no_problem() -> str:
    return ""
