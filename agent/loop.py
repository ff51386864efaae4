"""One round of a running agent: collect, publish, and log what changed since the last round."""

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
    find_empty_collectors,
    restore_facts,
)
from agent.collectors.probe import CollectedFacts
from agent.node.link_flaps import DownCounters, FlapTracker
from agent.node.sysfs import Sysfs
from agent.node_report import build_reports, has_observed, has_swept
from agent.publish.destination import Destination, PublishOutcome
from agent.publish.part_numbers import find_outdated_parts, number_parts
from agent.sweep_schedule import ElectionReader, SweepSchedule, find_sweep_run
from runtime.retry import RefusalStreak
from topology.model.errors import KubeError, StoreError, TopologyError
from topology.reports.neighbor_report import NeighborReport

log = logging.getLogger(__name__)

_EVENTS: Final = {
    RunOutcome.OK: (logging.INFO, "collector works"),
    RunOutcome.NO_DATA: (logging.INFO, "collector has nothing to read"),
    RunOutcome.FAILED: (logging.WARNING, "collector failed"),
}


class RoundObserver(Protocol):
    """Records the results of rounds, for probes and metrics."""

    def record_collection(self, attempts: Sequence[CollectorRun], *, is_good: bool) -> None:
        """Record the end of a collection; a good collection has observed the node."""
        ...

    def record_publishing(
        self, changes: Mapping[str, PublishOutcome], problem: TopologyError | None = None
    ) -> None:
        """Record the publishing result of each report by name, and the error if it failed."""
        ...


class ReportLoop:
    """Runs the rounds, and keeps the last good facts and outcomes from one round to the next."""

    def __init__(
        self,
        node: NodeContext,
        destination: Destination,
        elections: ElectionReader | None = None,
        observers: Sequence[RoundObserver] = (),
    ) -> None:
        """Start without facts.

        Args:
            node: the node to collect from.
            destination: takes the reports.
            elections: says whether the node is elected to sweep; None if it needs no election.
            observers: record the results of rounds.
        """
        self._node = node
        self._destination = destination
        self._sweep_schedule = SweepSchedule(node.settings, node.clock, elections)
        self._observers = observers
        self._is_restored = False
        self._known: dict[str, CollectedFacts] = {}
        self._observed_at: str | None = None
        self._unwritten: list[NeighborReport] = []
        """The parts of the last good sweeps, until all are written."""
        self._outcomes: dict[str, RunOutcome] = {}
        self._flaps = FlapTracker()
        self._counters = DownCounters(Sysfs(node.settings.sysfs_root))
        self._problem: type[TopologyError] | None = None
        self._refusals = RefusalStreak()

    def tick(self) -> None:
        """Run one round; logs every error, and the next round tries again."""
        try:
            self._run_round()
        except Exception as error:  # the named catch-all: the loop must continue
            log.exception("round failed", extra={"error": str(error)})

    def _run_round(self) -> None:
        """Collect, then publish. A publishing failure does not stop the collection.

        After a restart the last published report is read first. Nothing is published before that
        succeeds, because facts that this process could not observe yet would be lost.
        """
        problem = self._catch_failure(self._restore)
        node = replace(self._node, settings=self._sweep_schedule.update_from_election())
        attempts = collect(
            node, self._known, last_sweep=self._sweep_schedule.find_valid_sweep(node.settings)
        )
        if node.stop.is_set:
            return
        self._known = {attempt.collector: attempt.facts for attempt in attempts}
        self._log_outcomes(attempts)
        for observer in self._observers:
            observer.record_collection(attempts, is_good=has_observed(attempts))
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
        """Restore the facts that this node published before a restart; does so only once."""
        if self._is_restored:
            return
        last = self._destination.last_report()
        self._is_restored = True
        if last is not None:
            observed = {name: facts for name, facts in self._known.items() if not facts.is_empty}
            self._known = _restored_facts(last) | observed
            self._observed_at = self._observed_at or last.status.observed_at

    def _catch_failure(self, act: Callable[[], None]) -> TopologyError | None:
        """Call a function, and return the error of the destination; None if it succeeded.

        The error is logged once, and passed to the observers.
        """
        try:
            act()
        except (KubeError, StoreError) as error:
            self._log_publishing(error)
            for observer in self._observers:
                observer.record_publishing({}, error)
            return error
        return None

    def _find_flapping(self, attempts: Sequence[CollectorRun]) -> tuple[str, ...]:
        ports = (port for attempt in attempts for port in attempt.facts.ports)
        now_s, refused = self._node.clock.monotonic(), self._counters.refused
        downs = self._counters.read(ports, now_s)
        for file in self._counters.refused:
            if file not in refused:
                log.info("counter refused, not read again", extra={"file": file})
        return self._flaps.update(downs, now_s)

    def _publish(self, own: NeighborReport, sweep: CollectorRun | None) -> None:
        """Write the changed reports, and withdraw the outdated parts of sweeps.

        The parts of the last good sweep stay while sweeps fail, and until another node's sweep
        counts. A part that could not be written is tried again in the next round.
        """
        node, handed_over = self._node.settings.node_name, self._sweep_schedule.handed_over
        self._unwritten = [] if sweep is None else self._unwritten
        unwritten = [part for part in self._unwritten if _subnet(part) not in handed_over]
        is_at_rest = sweep is not None and sweep.is_repeated and not unwritten
        existing = {} if is_at_rest else self._destination.read_parts()
        parts = number_parts(unwritten, existing, node=node)
        changes = self._destination.publish([own, *parts])
        self._log_changes(changes)
        if PublishOutcome.DEFERRED in changes.values():
            return
        self._log_publishing(None)
        self._unwritten = []
        swept = {_subnet(part) for part in parts}
        if sweep is None or (self._sweep_schedule.fabric is None and has_swept(sweep)):
            swept |= {part.subnet for part in existing.values() if part}
        outdated = find_outdated_parts(
            existing,
            swept=swept,
            numbered=[part.metadata.name for part in parts],
            handed_over=handed_over,
            node=node,
        )
        self._destination.withdraw(outdated)
        for name in outdated:
            log.info("sweep part withdrawn", extra={"report": name})

    def _log_changes(self, changes: Mapping[str, PublishOutcome]) -> None:
        for observer in self._observers:
            observer.record_publishing(changes)
        for name, change in changes.items():
            level = logging.INFO if change is PublishOutcome.SPEC else logging.DEBUG
            log.log(level, "report published", extra={"report": name, "change": change.value})

    def _log_publishing(self, problem: TopologyError | None) -> None:
        """Log once that reports cannot be written, and once that they can be written again.

        The message of an outage changes from try to try, so only the error's class is compared.
        """
        is_passing = self._refusals.record(problem if isinstance(problem, KubeError) else None)
        if is_passing:
            log.info("publishing refused, trying again", extra={"error": str(problem)})
            return
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
    outcomes = {collector.name: collector.outcome for collector in last.status.collectors}
    return restore_facts(last.device, silent=find_empty_collectors(outcomes))


def _subnet(part: NeighborReport) -> str:
    return part.spec.sweep.subnet if part.spec.sweep else ""
