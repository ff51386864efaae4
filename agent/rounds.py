"""One round of a running agent: collect, publish, and log what is different from last time."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from agent.collect import (
    Attempt,
    Node,
    Outcome,
    collect,
    recall,
    silent_collectors,
)
from agent.flaps import Flaps, read_downs
from agent.parts import outdated_parts, place_parts
from agent.probing import Collected
from agent.publishing import Change, ReportFolder
from agent.reporting import build_reports, has_swept
from agent.sweeping import FabricFile, SweepTurns, sweep_attempt
from agent.sysfs import Sysfs
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

    def __init__(self, node: Node, folder: ReportFolder, fabric: FabricFile | None = None) -> None:
        """Take up what this node published before a restart.

        Args:
            node: what to collect from.
            folder: where its reports go.
            fabric: tells whether it is elected to sweep; None where that is no matter.
        """
        self._node = node
        self._folder = folder
        self._turns = SweepTurns(node.settings, node.clock, fabric)
        last = folder.last_report()
        self._known = _recalled(last) if last else {}
        self._observed_at = last.status.observed_at if last else None
        self._outcomes: dict[str, Outcome] = {}
        self._flaps = Flaps()
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
        node = replace(self._node, settings=self._turns.current())
        attempts = collect(node, self._known, last_sweep=self._turns.pending(node.settings))
        if node.stop.is_told:
            return
        self._known = {attempt.collector: attempt.facts for attempt in attempts}
        self._log_outcomes(attempts)
        sweep = sweep_attempt(attempts)
        own, *parts = build_reports(
            node.settings,
            attempts,
            now=node.clock.now(),
            last_observed_at=self._observed_at,
            sweeping=self._turns.note(node.settings, sweep) if sweep else None,
            flapping=self._flapping(attempts),
        )
        self._observed_at = own.status.observed_at
        self._publish(own, parts, sweep)

    def _flapping(self, attempts: Sequence[Attempt]) -> tuple[str, ...]:
        ports = (port for attempt in attempts for port in attempt.facts.ports)
        downs = read_downs(Sysfs(self._node.settings.sysfs_root), ports)
        return self._flaps.update(downs, self._node.clock.monotonic())

    def _publish(
        self, own: NeighborReport, parts: list[NeighborReport], sweep: Attempt | None
    ) -> None:
        """Write what changed, and remove parts of sweeps that say nothing any more.

        The parts of the last good sweep stay while sweeps fail, and until another's counts.
        """
        existing = {} if sweep and sweep.is_repeated else self._folder.parts()
        node = self._node.settings.node_name
        placed = place_parts(parts, existing, node=node)
        self._log_changes(self._folder.publish([own, *placed]))
        swept = {one.spec.sweep.subnet for one in placed if one.spec.sweep}
        if sweep is None or (self._turns.fabric is None and has_swept(sweep)):
            swept |= {part.subnet for part in existing.values() if part}
        gone = outdated_parts(
            existing,
            swept=swept,
            placed=[one.metadata.name for one in placed],
            handed_over=self._turns.handed_over,
            node=node,
        )
        self._folder.remove(gone)
        for name in gone:
            log.info("sweep part withdrawn", extra={"report": name})

    def _note_publishing(self, problem: str | None) -> None:
        """Tell once that reports cannot be written, and once that they can again."""
        if problem == self._problem:
            return
        if problem is not None:
            log.error("publishing failed", extra={"error": problem})
        else:
            log.info("publishing works again")
        self._problem = problem

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
