"""One round of a running agent: collect, publish, and log what is different from last time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from agent.collection import (
    CollectorRun,
    NodeContext,
    RunOutcome,
    collect,
    restore_facts,
    find_empty_collectors,
)
from agent.collectors.probe import CollectedFacts
from agent.node.link_flaps import FlapTracker, read_down_counts
from agent.node.sysfs import Sysfs
from agent.node_report import build_reports, has_observed, has_swept
from agent.publish.destination import PublishOutcome, Destination
from agent.publish.part_numbers import find_outdated_parts, number_parts
from agent.sweep_schedule import ElectionSource, SweepSchedule, find_sweep_run
from topology.model.errors import KubeError, StoreError, TopologyError
from topology.reports.neighbor_report import NeighborReport, extract_device

log = logging.getLogger(__name__)

_EVENTS: Final = {
    RunOutcome.OK: (logging.INFO, "collector works"),
    RunOutcome.NO_DATA: (logging.INFO, "collector has nothing to read"),
    RunOutcome.FAILED: (logging.WARNING, "collector failed"),
}


class RoundObserver(Protocol):
    """Is told how rounds go: what probes and metrics are made of."""

    def record_collection(self, attempts: Sequence[CollectorRun], *, is_good: bool) -> None:
        """Note that a collection has ended; a good one has observed something anew."""
        ...

    def record_publishing(
        self, changes: Mapping[str, PublishOutcome], problem: TopologyError | None = None
    ) -> None:
        """Note what was written, by the reports' names, and what went wrong."""
        ...


class ReportLoop:
    """The memory of an agent from one round to the next: last good facts and outcomes."""

    def __init__(
        self,
        node: NodeContext,
        destination: Destination,
        elections: ElectionSource | None = None,
        witnesses: Sequence[RoundObserver] = (),
    ) -> None:
        """Know nothing yet.

        Args:
            node: what to collect from.
            destination: where its reports go.
            elections: tell whether it is elected to sweep; None where that is no matter.
            witnesses: of how rounds go.
        """
        self._node = node
        self._destination = destination
        self._sweep_schedule = SweepSchedule(node.settings, node.clock, elections)
        self._observers = witnesses
        self._is_restored = False
        self._known: dict[str, CollectedFacts] = {}
        self._observed_at: str | None = None
        self._unwritten: list[NeighborReport] = []
        """Parts of the last good sweeps until all are written."""
        self._outcomes: dict[str, RunOutcome] = {}
        self._flaps = FlapTracker()
        self._problem: type[TopologyError] | None = None

    def tick(self) -> None:
        """Run one round; whatever goes wrong is logged and the next round tries again."""
        try:
            self._run_round()
        except Exception as error:  # the named catch-all: the loop goes on
            log.exception("round failed", extra={"error": str(error)})

    def _run_round(self) -> None:
        """Collect whatever happens to publishing; what was published before a restart goes first.

        While that is not known nothing is published: facts that this process could not observe
        yet would be lost.
        """
        problem = self._catch_failure(self._restore)
        node = replace(self._node, settings=self._sweep_schedule.current_settings())
        attempts = collect(
            node, self._known, last_sweep=self._sweep_schedule.find_valid_sweep(node.settings)
        )
        if node.stop.is_set:
            return
        self._known = {attempt.collector: attempt.facts for attempt in attempts}
        self._log_outcomes(attempts)
        for witness in self._observers:
            witness.record_collection(attempts, is_good=has_observed(attempts))
        sweep = find_sweep_run(attempts)
        own, *parts = build_reports(
            node.settings,
            attempts,
            now=node.clock.now(),
            last_observed_at=self._observed_at,
            sweeping=self._sweep_schedule.record_sweep(node.settings, sweep) if sweep else None,
            flapping=self._find_flapping(attempts),
        )
        self._observed_at = own.status.observed_at
        self._unwritten = parts or self._unwritten
        if problem is None:
            self._catch_failure(lambda: self._publish(own, sweep))

    def _restore(self) -> None:
        """Take up what this node published before a restart, unless that is done."""
        if self._is_restored:
            return
        last = self._destination.last_report()
        self._is_restored = True
        if last is not None:
            seen = {name: facts for name, facts in self._known.items() if not facts.is_empty}
            self._known = _restored_facts(last) | seen
            self._observed_at = self._observed_at or last.status.observed_at

    def _catch_failure(self, act: Callable[[], None]) -> TopologyError | None:
        """Return why a place of reports failed, which is told once; None where it did not."""
        try:
            act()
        except (KubeError, StoreError) as error:
            self._log_publishing(error)
            for witness in self._observers:
                witness.record_publishing({}, error)
            return error
        return None

    def _find_flapping(self, attempts: Sequence[CollectorRun]) -> tuple[str, ...]:
        ports = (port for attempt in attempts for port in attempt.facts.ports)
        downs = read_down_counts(Sysfs(self._node.settings.sysfs_root), ports)
        return self._flaps.update(downs, self._node.clock.monotonic())

    def _publish(self, own: NeighborReport, sweep: CollectorRun | None) -> None:
        """Write what changed, and withdraw parts of sweeps that say nothing any more.

        The parts of the last good sweep stay while sweeps fail, and until another's counts. What
        could not be written is tried again, as it then is.
        """
        node, handed_over = self._node.settings.node_name, self._sweep_schedule.handed_over
        self._unwritten = [] if sweep is None else self._unwritten
        unwritten = [one for one in self._unwritten if _subnet(one) not in handed_over]
        is_at_rest = sweep is not None and sweep.is_repeated and not unwritten
        existing = {} if is_at_rest else self._destination.read_parts()
        placed = number_parts(unwritten, existing, node=node)
        changes = self._destination.publish([own, *placed])
        self._log_changes(changes)
        if PublishOutcome.DEFERRED in changes.values():
            return
        self._log_publishing(None)
        self._unwritten = []
        swept = {_subnet(one) for one in placed}
        if sweep is None or (self._sweep_schedule.fabric is None and has_swept(sweep)):
            swept |= {part.subnet for part in existing.values() if part}
        gone = find_outdated_parts(
            existing,
            swept=swept,
            numbered=[one.metadata.name for one in placed],
            handed_over=handed_over,
            node=node,
        )
        self._destination.withdraw(gone)
        for name in gone:
            log.info("sweep part withdrawn", extra={"report": name})

    def _log_changes(self, changes: Mapping[str, PublishOutcome]) -> None:
        for witness in self._observers:
            witness.record_publishing(changes)
        for name, change in changes.items():
            level = logging.INFO if change is PublishOutcome.SPEC else logging.DEBUG
            log.log(level, "report published", extra={"report": name, "change": change.value})

    def _log_publishing(self, problem: TopologyError | None) -> None:
        """Tell once that reports cannot be written, and once that they can again.

        The words of an outage change from try to try; its kind is what counts.
        """
        kind = None if problem is None else type(problem)
        if kind is self._problem:
            return
        if problem is not None:
            log.error("publishing failed", extra={"error": str(problem)})
        else:
            log.info("publishing works again")
        self._problem = kind

    def _log_outcomes(self, attempts: Sequence[CollectorRun]) -> None:
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


def _restored_facts(last: NeighborReport) -> dict[str, CollectedFacts]:
    outcomes = {one.name: one.outcome for one in last.status.collectors}
    return restore_facts(extract_device(last), silent=find_empty_collectors(outcomes))


def _subnet(part: NeighborReport) -> str:
    return part.spec.sweep.subnet if part.spec.sweep else ""
