"""One round of a running agent: collect, publish, and log what is different from last time."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from agent.collect import (
    SWEEP,
    Attempt,
    Node,
    Outcome,
    collect,
    recall,
    silent_collectors,
)
from agent.probing import Collected
from agent.publishing import Change, ReportFolder
from agent.reporting import build_reports
from topology.errors import StoreError
from topology.report import NeighborReport, device_of

log = logging.getLogger(__name__)

_EVENTS: Final = {
    Outcome.OK: (logging.INFO, "collector works"),
    Outcome.NO_DATA: (logging.INFO, "collector has nothing to read"),
    Outcome.FAILED: (logging.WARNING, "collector failed"),
}


class Rounds:
    """The memory of an agent from one round to the next: last good facts and outcomes."""

    def __init__(self, node: Node, folder: ReportFolder) -> None:
        """Take up what this node published before a restart."""
        self._node = node
        self._folder = folder
        last = folder.last_report()
        self._known = _recalled(last) if last else {}
        self._observed_at = last.status.observed_at if last else None
        self._outcomes: dict[str, Outcome] = {}
        self._problem: str | None = None

    def tick(self) -> None:
        """Run one round; whatever goes wrong is logged and the next round tries again."""
        try:
            self._collect_and_publish()
            self._note_publishing(None)
        except StoreError as error:
            self._note_publishing(str(error))
        except Exception as error:  # the named catch-all: the loop goes on
            log.exception("round failed", extra={"error": str(error)})

    def _collect_and_publish(self) -> None:
        attempts = collect(self._node, self._known)
        if self._node.stop.is_told:
            return
        self._known = {attempt.collector: attempt.facts for attempt in attempts}
        self._log_outcomes(attempts)
        reports = build_reports(
            self._node.settings,
            attempts,
            now=self._node.clock.now(),
            last_observed_at=self._observed_at,
        )
        self._observed_at = reports[0].status.observed_at
        self._log_changes(self._folder.publish(reports))
        self._withdraw(reports, attempts)

    def _note_publishing(self, problem: str | None) -> None:
        """Tell once that reports cannot be written, and once that they can again."""
        if problem == self._problem:
            return
        if problem is not None:
            log.error("publishing failed", extra={"error": problem})
        else:
            log.info("publishing works again")
        self._problem = problem

    def _withdraw(self, reports: Sequence[NeighborReport], attempts: Sequence[Attempt]) -> None:
        """Remove parts that a newer sweep no longer has, or all when sweeping was turned off.

        The parts of the last good sweep stay while sweeps fail.
        """
        sweeps = [attempt for attempt in attempts if attempt.collector == SWEEP]
        if all(attempt.outcome is Outcome.OK for attempt in sweeps):
            names = [report.metadata.name for report in reports]
            for name in self._folder.withdraw_parts(keep=names):
                log.info("sweep part withdrawn", extra={"report": name})

    def _log_outcomes(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            before = self._outcomes.get(attempt.collector)
            self._outcomes[attempt.collector] = attempt.outcome
            if attempt.outcome is before:
                continue
            level, event = _EVENTS[attempt.outcome]
            log.log(
                level,
                event,
                extra={
                    "collector": attempt.collector,
                    "reason": attempt.message,
                    "duration_s": attempt.duration_s,
                },
            )

    def _log_changes(self, changes: dict[str, Change]) -> None:
        for name, change in changes.items():
            level = logging.INFO if change is Change.SPEC else logging.DEBUG
            log.log(level, "report published", extra={"report": name, "change": change.value})


def _recalled(last: NeighborReport) -> dict[str, Collected]:
    outcomes = {one.name: one.outcome for one in last.status.collectors}
    return recall(device_of(last), silent=silent_collectors(outcomes))
