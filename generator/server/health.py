"""Liveness, startup and readiness of the server: the answers to a kubelet's probes.

The server is alive while its loop ends rounds; what rounds find makes no difference, since no
restart repairs a fabric or an API server. It is ready when it has the data that it answers from:
followers are, as well as the leader.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from generator.reconcile.result import RoundOutcome
from runtime.http import Render, health_page

MISSED_ROUNDS: Final = 3
"""Periods without the end of a round that make a loop hang."""
MIN_LIMIT_S: Final = 60.0
"""A loop is never given up sooner: the first rounds of a large fabric take their time."""


class Heartbeat:
    """When the loop last ended a round."""

    def __init__(self, *, period_s: float, clock: Callable[[], float]) -> None:
        """Begin to count.

        Args:
            period_s: from one round to the next.
            clock: seconds, never going back.
        """
        self._limit_s = max(MIN_LIMIT_S, MISSED_ROUNDS * period_s)
        self._clock = clock
        self._last_beat_s = clock()
        self.has_begun = False
        """Whether a round has ended at all."""

    def beat(self, _: RoundOutcome | None = None) -> None:
        """Take note that a round ended."""
        self._last_beat_s = self._clock()
        self.has_begun = True

    def liveness_problem(self) -> str:
        """Return why the loop hangs, empty while it lives."""
        silent_s = self._clock() - self._last_beat_s
        return "" if silent_s <= self._limit_s else f"no round ended for {silent_s:.0f} s"


def build_health_pages(
    heartbeat: Heartbeat,
    *,
    readiness_problem: Callable[[], str],
    liveness_problem: Callable[[], str],
) -> Mapping[str, Render]:
    """Return the pages of health by their paths.

    Args:
        heartbeat: of the loop.
        why_not_ready: returns why nothing can be answered yet, empty where it can.
        why_dead: returns what else than the loop hangs, empty where nothing does.
    """

    def why_not_started() -> str:
        return "" if heartbeat.has_begun else "the first round has not ended"

    return {
        "/livez": health_page(lambda: heartbeat.liveness_problem() or liveness_problem()),
        "/startupz": health_page(why_not_started),
        "/readyz": health_page(lambda: why_not_started() or readiness_problem()),
    }
