"""Liveness, startup and readiness of the agent: the answers to a kubelet's probes.

Alive means that rounds end, and that no folder of the node that the agent has mounted was deleted
there: the new folder is only mounted by a restart.

Ready means that the published facts are fresh. In a cluster the agent writes nothing while nothing
changes, so only readiness shows that it still collects. The agent stays ready while the API server
does not answer, since another pod would do no better. It becomes unready while the API server
refuses its reports, because the reports there go stale.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from agent.collection import CollectorRun
from agent.publish.destination import PublishOutcome
from runtime.clock import Clock
from runtime.http import PageServer, Render, health_page
from runtime.values import Address
from topology.model.errors import KubeUnavailable, TopologyError, show

log = logging.getLogger(__name__)

STALE_PERIODS: Final = 3
"""After so many periods a collection no longer describes the node."""
HUNG_PERIODS: Final = 10
MIN_HUNG_S: Final = 900.0
"""The loop does not count as hung any sooner: commands have deadlines of their own."""


class Liveness:
    """Records when rounds end, and whether they succeed."""

    def __init__(self, *, period_s: float, clock: Clock, sweeping_s: float = 0.0) -> None:
        """Start the time of the first round.

        Args:
            period_s: the longest time from one round to the next.
            clock: the clock that the rounds use.
            sweeping_s: how much longer a round with sweeps may take.
        """
        self._stale_s = STALE_PERIODS * period_s
        self._hung_s = max(MIN_HUNG_S, HUNG_PERIODS * period_s) + sweeping_s
        self._clock = clock
        self._ended_s = clock.monotonic()
        self._has_collected = False
        self._restart_problem = ""
        self._last_good_s: float | None = None
        self._refused_s: float | None = None
        self._refusal = ""

    def record_collection(self, attempts: Sequence[CollectorRun], *, is_good: bool) -> None:
        """Record the end of a collection."""
        cut_off = (attempt.message for attempt in attempts if attempt.needs_restart)
        self._restart_problem = next(cut_off, "")
        self._has_collected = True
        self._ended_s = self._clock.monotonic()
        if is_good:
            self._last_good_s = self._ended_s

    def record_publishing(
        self, changes: Mapping[str, PublishOutcome], problem: TopologyError | None = None
    ) -> None:
        """Record since when the API server refuses reports."""
        if isinstance(problem, KubeUnavailable) or PublishOutcome.DEFERRED in changes.values():
            return
        if problem is None:
            self._refused_s, self._refusal = None, ""
            return
        self._refusal = str(problem)
        if self._refused_s is None:
            self._refused_s = self._clock.monotonic()

    def liveness_problem(self) -> str:
        """Return why only a restart helps: the loop hangs, or a mount was deleted; else empty."""
        if self._restart_problem:
            return self._restart_problem
        silent_s = self._clock.monotonic() - self._ended_s
        return "" if silent_s <= self._hung_s else f"no collection ended for {silent_s:.0f} s"

    def startup_problem(self) -> str:
        """Return a message while no collection has ended; empty after the first."""
        return "" if self._has_collected else "the first collection has not ended"

    def readiness_problem(self) -> str:
        """Return why the published facts are not fresh; empty while they are."""
        now_s = self._clock.monotonic()
        if self._last_good_s is None:
            return self.startup_problem() or "no collector works"
        age_s = now_s - self._last_good_s
        if age_s > self._stale_s:
            return f"the last good collection is {age_s:.0f} s old"
        if self._refused_s is not None and now_s - self._refused_s > self._stale_s:
            refused_s = now_s - self._refused_s
            return f"reports refused for {refused_s:.0f} s: {show(self._refusal, 400)}"
        return ""


def health_pages(liveness: Liveness) -> Mapping[str, Render]:
    """Return the pages of the probes by path."""
    return {
        "/livez": health_page(liveness.liveness_problem),
        "/startupz": health_page(liveness.startup_problem),
        "/readyz": health_page(liveness.readiness_problem),
    }


@contextmanager
def serve_pages(address: Address | None, pages: Mapping[str, Render]) -> Iterator[None]:
    """Serve pages within the context; nothing without an address.

    Raises:
        ConfigError: the address cannot be bound.
    """
    if address is None:
        yield
        return
    server = PageServer(address, pages)
    fields = {"address": str(server.address), "paths": " ".join(pages)}
    log.info("pages served", extra=fields)
    try:
        yield
    finally:
        server.stop()
