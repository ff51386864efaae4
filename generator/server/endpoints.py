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
from generator.rpc.server import Security
from generator.server.health import Heartbeat, health_pages
from generator.server.settings import PortSettings
from generator.telemetry.metrics import ClusterView, Metrics
from runtime.clock import utc_now
from runtime.http import PageServer, Render
from runtime.values import parse_address

log = logging.getLogger(__name__)

STOP_S: Final = 2.0
"""Longest wait for Events that are not written yet."""


class Teller(Protocol):
    """Tells the cluster of rounds."""

    def on_round(self, outcome: RoundOutcome) -> None:
        """Take the outcome of a round; returns at once."""
        ...

    def stop(self, *, deadline_s: float) -> None:
        """Tell what waits, as far as the deadline allows."""
        ...


class Membership(NamedTuple):
    """What a replica of a cluster adds."""

    view: Callable[[], ClusterView]
    why_not_ready: Callable[[], str]
    """Why it cannot answer yet, empty where it can."""
    why_dead: Callable[[], str]
    """Why it needs a restart, empty where it does not."""
    events: Teller
    tokens: TokenCheck | None
    """None: no token is asked for."""


class Ports:
    """The ports beside that of calls, from the start to the end of a server."""

    def __init__(
        self,
        settings: PortSettings,
        metrics: Metrics,
        *,
        period_s: float,
        membership: Membership | None = None,
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
        self._membership = membership
        self.show_reservations = metrics.show_reservations
        """Takes what tells how much is reserved."""
        heartbeat = Heartbeat(period_s=period_s, clock=time.monotonic)
        on_rounds: list[OnRound] = [heartbeat.beat, metrics.on_round]
        if membership is not None:
            metrics.show_cluster(membership.view)
            on_rounds.append(membership.events.on_round)
        self.on_rounds = tuple(on_rounds)
        """Told how each round ended."""
        self.on_query: OnQuery = metrics.on_query
        """Told how each call ended."""
        tokens = membership.tokens if membership else None
        credentials = ServerCertificates(settings.tls).credentials if settings.tls else None
        self.security = Security(credentials, tokens)
        """Of the port of calls."""
        self._servers: list[PageServer] = []
        try:
            self._listen(settings, metrics, heartbeat)
        except BaseException:
            self.stop()
            raise

    def _listen(self, settings: PortSettings, metrics: Metrics, heartbeat: Heartbeat) -> None:
        if settings.metrics is not None:
            self._serve("metrics", settings.metrics, {"/metrics": metrics.page})
        if settings.health is not None:
            member = self._membership
            pages = health_pages(
                heartbeat,
                why_not_ready=member.why_not_ready if member else _nothing,
                why_dead=member.why_dead if member else _nothing,
            )
            self._serve("health", settings.health, pages)

    def _serve(self, what: str, address: str, pages: Mapping[str, Render]) -> None:
        server = PageServer(parse_address(address), pages, other_methods=HTTPStatus.NOT_IMPLEMENTED)
        self._servers.append(server)
        log.info("port open", extra={"what": what, "address": str(server.address)})

    def stop(self) -> None:
        """Tell what waits, and answer no more."""
        if self._membership is not None:
            self._membership.events.stop(deadline_s=STOP_S)
        for server in self._servers:
            server.stop()


def new_metrics() -> Metrics:
    """Return the metrics of this program, all at 0."""
    return Metrics(version=version("toponaut"), now=utc_now)


def _nothing() -> str:
    return ""
