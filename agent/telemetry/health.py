"""Liveness, startup and readiness of the agent: the answers to a kubelet's probes.

Ready means that the published facts are fresh. In a cluster the agent writes nothing while nothing
changes, so only readiness shows that it still collects. An API server that does not answer costs
no readiness, since no other pod would do better. One that refuses does: the reports there grow old.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from agent.collection import Attempt
from agent.publish.destination import Change
from runtime.clock import Clock
from runtime.http import Render, health_page
from topology.model.errors import KubeUnavailable, TopologyError, show

STALE_PERIODS: Final = 3
"""An older collection no longer describes the node."""
HUNG_PERIODS: Final = 10
LEAST_HUNG_S: Final = 900.0
"""A shorter silence is no hang: commands have deadlines of their own."""


class Vitals:
    """Notes when rounds end, and how."""

    def __init__(self, *, period_s: float, clock: Clock, sweeping_s: float = 0.0) -> None:
        """Start to count the time.

        Args:
            period_s: the longest time from one round to the next.
            clock: of the rounds.
            sweeping_s: how much longer a round with sweeps may take.
        """
        self._stale_s = STALE_PERIODS * period_s
        self._hung_s = max(LEAST_HUNG_S, HUNG_PERIODS * period_s) + sweeping_s
        self._clock = clock
        self._ended_s = clock.monotonic()
        self._has_begun = False
        self._good_s: float | None = None
        self._refused_s: float | None = None
        self._refusal = ""

    def see_collection(self, attempts: Sequence[Attempt], *, is_good: bool) -> None:
        """Note the end of a collection."""
        del attempts
        self._has_begun = True
        self._ended_s = self._clock.monotonic()
        if is_good:
            self._good_s = self._ended_s

    def see_publishing(
        self, changes: Mapping[str, Change], problem: TopologyError | None = None
    ) -> None:
        """Note since when the API server refuses reports."""
        if isinstance(problem, KubeUnavailable) or Change.DEFERRED in changes.values():
            return
        if problem is None:
            self._refused_s, self._refusal = None, ""
            return
        self._refusal = str(problem)
        if self._refused_s is None:
            self._refused_s = self._clock.monotonic()

    def why_dead(self) -> str:
        """Return why the loop counts as hung; empty while rounds end in time."""
        silent_s = self._clock.monotonic() - self._ended_s
        return "" if silent_s <= self._hung_s else f"no collection ended for {silent_s:.0f} s"

    def why_not_started(self) -> str:
        """Return that no collection has ended yet; empty after the first."""
        return "" if self._has_begun else "the first collection has not ended"

    def why_not_ready(self) -> str:
        """Return why the published facts are not fresh; empty while they are."""
        now_s = self._clock.monotonic()
        if self._good_s is None:
            return self.why_not_started() or "no collector works"
        age_s = now_s - self._good_s
        if age_s > self._stale_s:
            return f"the last good collection is {age_s:.0f} s old"
        if self._refused_s is not None and now_s - self._refused_s > self._stale_s:
            return f"refused for {now_s - self._refused_s:.0f} s: {show(self._refusal, 400)}"
        return ""


def health_pages(vitals: Vitals) -> Mapping[str, Render]:
    """Return the pages of the probes by path."""
    return {
        "/livez": health_page(vitals.why_dead),
        "/startupz": health_page(vitals.why_not_started),
        "/readyz": health_page(vitals.why_not_ready),
    }
