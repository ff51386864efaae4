"""Liveness, startup and readiness of the server: the answers to a kubelet's probes.

The server is alive while its loop completes rounds. Findings and API errors make no difference,
since no restart repairs a fabric or an API server. The server is ready when it has the data that
it answers from; followers become ready as the leader does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from generator.reconcile.result import RoundOutcome
from runtime.http import Render, health_page

MISSED_ROUNDS: Final = 3
"""A loop that completes no round for this many periods hangs."""
MIN_LIMIT_S: Final = 60.0
"""The shortest such limit: the first rounds of a large fabric take longer."""


class Heartbeat:
    """Records when the loop last completed a round."""

    def __init__(self, *, period_s: float, clock: Callable[[], float]) -> None:
        """Start the first period now.

        Args:
            period_s: from one round to the next.
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
        heartbeat: of the loop.
        readiness_problem: returns why the server cannot answer yet, empty if it can.
        liveness_problem: returns what hangs apart from the loop, empty if nothing does.
    """

    def why_not_started() -> str:
        return "" if heartbeat.has_begun else "the first round has not ended"

    return {
        "/livez": health_page(lambda: heartbeat.liveness_problem() or liveness_problem()),
        "/startupz": health_page(why_not_started),
        "/readyz": health_page(lambda: why_not_started() or readiness_problem()),
    }
