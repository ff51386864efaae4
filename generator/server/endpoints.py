"""What a server tells the world beside its answers: metrics, health, Events, and to whom."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from importlib.metadata import version
from typing import Final, NamedTuple, Protocol

from generator.reconcile.result import OnQuery, OnRound, RoundOutcome
from generator.rpc.auth.authentication import TokenCheck
from generator.rpc.auth.tls import ServerCertificates
from generator.rpc.server import ServerSecurity
from generator.server.health import Heartbeat, build_health_pages
from generator.server.settings import EndpointSettings
from generator.telemetry.metrics import LeadershipSample, GeneratorMetrics
from runtime.clock import utc_now
from runtime.http import PageServer, Render
from runtime.values import parse_address

log = logging.getLogger(__name__)

EVENT_FLUSH_S: Final = 2.0
"""Longest wait for Events that are not written yet."""


class RoundListener(Protocol):
    """Tells the cluster of rounds."""

    def on_round(self, outcome: RoundOutcome) -> None:
        """Take the outcome of a round; returns at once."""
        ...

    def stop(self, *, deadline_s: float) -> None:
        """Tell what waits, as far as the deadline allows."""
        ...


class ReplicaEndpoints(NamedTuple):
    """What a replica of a cluster adds."""

    cluster_view: Callable[[], LeadershipSample]
    readiness_problem: Callable[[], str]
    """Why it cannot answer yet, empty where it can."""
    liveness_problem: Callable[[], str]
    """Why it needs a restart, empty where it does not."""
    events: RoundListener
    token_check: TokenCheck | None
    """None: no token is asked for."""


class Endpoints:
    """The ports beside that of calls, from the start to the end of a server."""

    def __init__(
        self,
        settings: EndpointSettings,
        metrics: GeneratorMetrics,
        *,
        period_s: float,
        replica: ReplicaEndpoints | None = None,
    ) -> None:
        """Bind and start.

        Args:
            settings: where, and to whom.
            metrics: what is shown.
            period_s: from one round to the next.
            membership: of the cluster that is served; None: a folder is.

        Raises:
            ConfigError: an address cannot be had, or a file cannot be used.
        """
        self._replica_endpoints = replica
        self.add_reservation_metrics = metrics.add_reservation_metrics
        """Takes what tells how much is reserved."""
        heartbeat = Heartbeat(period_s=period_s, clock=time.monotonic)
        on_rounds: list[OnRound] = [heartbeat.beat, metrics.on_round]
        if replica is not None:
            metrics.add_cluster_metrics(replica.cluster_view)
            on_rounds.append(replica.events.on_round)
        self.round_listeners = tuple(on_rounds)
        """Told how each round ended."""
        self.on_query: OnQuery = metrics.on_query
        """Told how each call ended."""
        tokens = replica.token_check if replica else None
        credentials = ServerCertificates(settings.tls).credentials if settings.tls else None
        self.security = ServerSecurity(credentials, tokens)
        """Of the port of calls."""
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
            self._open_server("metrics", settings.metrics, {"/metrics": metrics.render_page})
        if settings.health is not None:
            member = self._replica_endpoints
            pages = build_health_pages(
                heartbeat,
                readiness_problem=member.readiness_problem if member else _no_problem,
                liveness_problem=member.liveness_problem if member else _no_problem,
            )
            self._open_server("health", settings.health, pages)

    def _open_server(self, what: str, address: str, pages: Mapping[str, Render]) -> None:
        server = PageServer(parse_address(address), pages, other_methods=HTTPStatus.NOT_IMPLEMENTED)
        self._servers.append(server)
        log.info("port open", extra={"what": what, "address": str(server.address)})

    def stop(self) -> None:
        """Tell what waits, and answer no more."""
        if self._replica_endpoints is not None:
            self._replica_endpoints.events.stop(deadline_s=EVENT_FLUSH_S)
        for server in self._servers:
            server.stop()


def build_metrics() -> GeneratorMetrics:
    """Return the metrics of this program, all at 0."""
    return GeneratorMetrics(version=version("toponaut"), now=utc_now)


def _no_problem() -> str:
    return ""
