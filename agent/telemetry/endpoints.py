"""What others can ask a running agent over HTTP: its health and its metrics, each where told."""

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
    """Whom to tell how it goes."""

    round_observers: tuple[RoundObserver, ...]
    on_answer: OnAnswer | None
    """Is told the code of each answer of an API server."""


@contextmanager
def serve_endpoints(
    health: Address | None,
    metrics: Address | None,
    *,
    period_s: float,
    sweeping_s: float,
    clock: Clock,
) -> Iterator[Observers]:
    """Yield whom to tell, while the pages are there.

    Args:
        health: where `/livez`, `/readyz` and `/startupz` are; None for nowhere.
        metrics: where `/metrics` is; None for nowhere.
        period_s: the longest time from one round to the next.
        sweeping_s: how much longer a round may take that sweeps.
        clock: of the rounds.

    Raises:
        ConfigError: an address cannot be had.
    """
    witnesses: list[RoundObserver] = []
    on_answer: OnAnswer | None = None
    with ExitStack() as stack:
        if health is not None:
            vitals = Liveness(period_s=period_s, clock=clock, sweeping_s=sweeping_s)
            witnesses.append(vitals)
            _serve(health, health_pages(vitals), stack)
        if metrics is not None:
            from agent.telemetry.metrics import AgentMetrics  # noqa: PLC0415 - most memory is saved without

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
