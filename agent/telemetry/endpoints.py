"""Serves the health and the metrics of a running agent, each on its own address."""

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
    """What observes the agent while the ports are open."""

    round_observers: tuple[RoundObserver, ...]
    on_answer: OnAnswer | None
    """Takes the code of each answer of the API server; None without metrics."""


@contextmanager
def serve_endpoints(
    health: Address | None,
    metrics: Address | None,
    *,
    period_s: float,
    sweeping_s: float,
    clock: Clock,
) -> Iterator[Observers]:
    """Serve the pages within the context, and yield what observes the agent for them.

    Args:
        health: the address of `/livez`, `/readyz` and `/startupz`; None serves none of them.
        metrics: the address of `/metrics`; None does not serve it.
        period_s: the longest time from one round to the next.
        sweeping_s: how much longer a round with sweeps may take.
        clock: of the rounds.

    Raises:
        ConfigError: an address cannot be bound.
    """
    witnesses: list[RoundObserver] = []
    on_answer: OnAnswer | None = None
    with ExitStack() as stack:
        if health is not None:
            vitals = Liveness(period_s=period_s, clock=clock, sweeping_s=sweeping_s)
            witnesses.append(vitals)
            _serve(health, health_pages(vitals), stack)
        if metrics is not None:
            from agent.telemetry.metrics import AgentMetrics  # noqa: PLC0415 - it takes the most memory

            counted = AgentMetrics(version=version("toponaut"), clock=clock)
            witnesses.append(counted)
            on_answer = counted.record_answer
            _serve(metrics, {"/metrics": counted.render}, stack)
        yield Observers(tuple(witnesses), on_answer)


def _serve(address: Address, pages: Mapping[str, Render], stack: ExitStack) -> None:
    server = PageServer(address, pages)
    stack.callback(server.stop)
    paths = " ".join(pages)
    log.info("pages served", extra={"address": str(server.address), "paths": paths})
