"""Serves the probes and the metrics of a running agent, each on its own address."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from typing import NamedTuple

from agent.loop import RoundObserver
from agent.publish.kube.https_client import OnAnswer
from agent.telemetry.health import Liveness, health_pages
from runtime.clock import Clock
from runtime.http import PageServer, Render
from runtime.values import Address

log = logging.getLogger(__name__)


class Observers(NamedTuple):
    """The observers that feed the pages."""

    round_observers: tuple[RoundObserver, ...]
    on_answer: OnAnswer | None
    """Records the code of each answer of the API server; None without metrics."""


@contextmanager
def serve_endpoints(
    health: Address | None,
    metrics: Address | None,
    *,
    period_s: float,
    sweeping_s: float,
    clock: Clock,
) -> Iterator[Observers]:
    """Serve the pages within the context, and yield the observers that feed them.

    Args:
        health: the address of `/livez`, `/readyz` and `/startupz`; None does not serve them.
        metrics: the address of `/metrics`; None does not serve it.
        period_s: the longest time from one round to the next.
        sweeping_s: how much longer a round with sweeps may take.
        clock: of the rounds.

    Raises:
        ConfigError: an address cannot be bound.
    """
    round_observers: list[RoundObserver] = []
    on_answer: OnAnswer | None = None
    with ExitStack() as stack:
        if health is not None:
            liveness = Liveness(period_s=period_s, clock=clock, sweeping_s=sweeping_s)
            round_observers.append(liveness)
            _serve(health, health_pages(liveness), stack)
        if metrics is not None:
            from agent.telemetry.metrics import AgentMetrics  # noqa: PLC0415 - it takes the most memory

            agent_metrics = AgentMetrics(version=version("toponaut"), clock=clock)
            round_observers.append(agent_metrics)
            on_answer = agent_metrics.record_answer
            _serve(metrics, {"/metrics": agent_metrics.render}, stack)
        yield Observers(tuple(round_observers), on_answer)


def _serve(address: Address, pages: Mapping[str, Render], stack: ExitStack) -> None:
    server = PageServer(address, pages)
    stack.callback(server.stop)
    paths = " ".join(pages)
    log.info("pages served", extra={"address": str(server.address), "paths": paths})
