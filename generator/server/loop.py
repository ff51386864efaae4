"""The reconcile loop: reports to a tree, the tree to HyperNodes and a snapshot.

One round reads, infers, publishes the snapshot, plans and applies. No data means unknown, never
empty: without a usable tree nothing is published, planned or deleted. Unchanged facts are not
inferred again, and unchanged objects are not written. `reconcile.writer` decides what is written
and when; `reconcile.status` writes the Fabric object. A follower runs the same rounds, so that it
answers from the same tree, but writes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Protocol

from generator.ingest.inputs import Inputs
from generator.ingest.unusable_reports import derive_refused_report_findings
from generator.objects.fabric import with_label_keys
from generator.objects.inventory import ListedNode, build_node_specs
from generator.objects.plane_config import PlaneChoice
from generator.objects.pods import BoundPod
from generator.objects.tree_spec import DEFAULT_TREE_SPEC
from generator.observe.freshness import (
    Periods,
    derive_freshness_findings,
    derive_report_findings,
    derive_unready_findings,
)
from generator.observe.known_switches import KnownSwitches
from generator.observe.observation import Observation
from generator.observe.observer import FabricObserver, TreeInputs, explain_unknown
from generator.outputs.hypernode import HyperNode
from generator.placement.cluster.snapshot import Snapshot, build_snapshot
from generator.publish.outcome import OutputsOutcome
from generator.publish.request import Publisher
from generator.reconcile.desired import (
    PlannedChanges,
    compute_coverage,
    derive_terminating_findings,
    describe_unknown,
    find_decided,
    plan_removal,
    plan_tree_changes,
)
from generator.reconcile.guard import Coverage
from generator.reconcile.result import OnRound, RoundOutcome
from generator.reconcile.status import FabricStatusWriter, RoundSummary, StatusUpdate
from generator.reconcile.sweepers import SweepElection
from generator.reconcile.tree_decision import PreviousTree
from generator.reconcile.write_request import WriteRequest, WriteSettings
from generator.reconcile.writer import HyperNodeWriter
from generator.server.cluster_state import ClusterState, read_cluster_state
from generator.server.output_round import OutputInputs, OutputRound, summarise_outputs
from generator.store.base import NO_VOLCANO, FabricRead, ServedStore
from generator.switches.poller import SwitchPoller
from generator.switches.report_kind import is_switch_report
from generator.telemetry.round_log import RoundLog
from runtime.memory import freeze_gc
from topology.model.errors import KubeUnavailable, ParseError
from topology.model.facts import Finding
from topology.model.tree import TopologyTree
from topology.planes.plane import PlaneSplit, split_planes

log = logging.getLogger(__name__)

_DEFAULT_WRITE_SETTINGS: Final = WriteSettings()


@dataclass(frozen=True, slots=True)
class LoopConfig:
    """The settings of the loop."""

    period: timedelta
    """How often agents collect; decides which reports are stale."""
    now: Callable[[], datetime]
    """The wall clock, with a time zone."""
    writing: WriteSettings = _DEFAULT_WRITE_SETTINGS
    """How HyperNodes are written."""
    planes: PlaneChoice | None = None
    """The plane of the HyperNodes; None: as the Fabric object says."""
    switch_poller: SwitchPoller | None = None
    """Walks switches in another thread; reports those that never answered."""
    round_listeners: tuple[OnRound, ...] = ()
    """Called with the outcome of each round, in this order."""
    publisher: Publisher | None = None
    """Writes the outputs other than HyperNodes; None: there are none."""
    latest: Callable[[], datetime] | None = None
    """The latest time that may be right after a jump: later sweeps are ignored. None: now."""
    known_switches: KnownSwitches | None = None
    """Those of the history; None: there is none."""


class PublishSnapshot(Protocol):
    """Receives each new snapshot of the cluster."""

    def __call__(self, snapshot: Snapshot, pods: Sequence[BoundPod]) -> None:
        """Receive a snapshot, and the pods of gangs whose usage its free capacity includes."""
        ...


class ReconcileLoop:
    """Runs the rounds, and holds what one round passes to the next."""

    def __init__(self, store: ServedStore, config: LoopConfig, *, publish: PublishSnapshot) -> None:
        """Read nothing yet.

        Args:
            store: the objects to read and write.
            config: the settings of the loop.
            publish: receives each new snapshot, with the pods whose usage it includes.
        """
        self._store = store
        self._config = config
        self._publish = publish
        now, writing = config.now, config.writing
        self._status = FabricStatusWriter(store, now=now, is_leader=writing.is_leader)
        self._election = SweepElection(
            self._status.write_sweepers,
            period=config.period,
            now=now,
            has_agent_tokens=store.has_agent_tokens,
        )
        self._writer = HyperNodeWriter(store, now=now, settings=writing)
        self._observer = FabricObserver(config.known_switches)
        self._listeners = (RoundLog().on_round, *config.round_listeners)
        self._outputs = OutputRound(config.publisher)
        self._previous = PreviousTree()
        self._published: (
            tuple[TopologyTree, tuple[ListedNode, ...] | None, tuple[BoundPod, ...]] | None
        ) = None
        self._snapshot: Snapshot | None = None
        self._tree_spec = DEFAULT_TREE_SPEC
        """The requested form of the tree, with the options of the program."""
        self._last_plan: tuple[object, PlannedChanges] | None = None
        """The inputs of the last plan, and the plan."""
        self._is_in_sync = False
        """Whether the HyperNodes agree with the tree of this round."""

    def find_planes(self) -> PlaneSplit | None:
        """Return the cables of the last observation and their planes; None without one.

        Any thread may call it. Cost: O(ports + links).
        """
        fabric = self._observer.fabric
        return split_planes(fabric, self._tree_spec.planes.policies) if fabric else None

    def tick(self) -> float | None:
        """Run one round; an error is logged, and the next round tries again.

        Return the seconds until the next round if it should be sooner than usual, else None.
        """
        started_s = self._config.writing.clock()
        wait_s, outcome = None, None
        try:
            wait_s, outcome = self._run_round(started_s)
        except Exception as error:  # the named catch-all: the loop goes on
            log.exception("round failed", extra={"error": str(error)})
        if outcome is None:
            duration_s = self._config.writing.clock() - started_s
            outcome = RoundOutcome(duration_s, is_failed=True, snapshot=self._snapshot)
        for listener in self._listeners:
            listener(outcome)
        return wait_s

    def _run_round(self, started_s: float) -> tuple[float | None, RoundOutcome | None]:
        try:
            state = read_cluster_state(self._store)
        except KubeUnavailable:
            # Not every kind is listed yet (the reflectors log that): draw no conclusion.
            return None, RoundOutcome(self._config.writing.clock() - started_s, is_failed=True)
        fabric = self._status.read()
        wrong_settings = self._writer.read_policy(fabric)
        problems: list[ParseError] = []
        spec = self._writer.tree_spec
        # Without the listed sweepers, an election could choose a node that is not among them.
        is_elected = self._election.read(fabric, spec.sweepers) and not spec.unknown
        if is_elected and self._config.writing.is_leader():
            self._election.elect(state.reports.reports, state.unready_agents)
        observation = self._observe(state)
        self._election.record_reaches(self._observer.reaches)
        problems += [*state.reports.problems, *self._observer.problems, *state.hypernodes.problems]
        problems += state.record.problems
        problems += state.inventory.problems if state.inventory else ()
        self._is_in_sync = False
        wait_s, conflicts = self._publish_and_write(observation, state, fabric)
        if is_elected and self._config.writing.is_leader():
            self._election.confirm(self._observer.used_sweeps, is_in_sync=self._is_in_sync)
        published = self._publish_outputs(observation, state, fabric)
        findings = self._collect_findings(observation, state)
        wait_s = min(filter(None, (wait_s, self._writer.last_result.retry_s)), default=None)
        if published is not None:
            wait_s = min(filter(None, (wait_s, published.retry_s)), default=None)
            findings = (*findings, *published.findings)
        problems += conflicts
        tree = observation.tree if observation is not None and observation.tree.nodes else None
        num_problems = len(problems) + len(state.store_problems)
        outputs = summarise_outputs(published)
        settings = tuple(map(str, wrong_settings))
        summary = RoundSummary(tree, findings, num_problems, settings, outputs)
        status = self._status.update(summary, self._writer.state)
        outcome = self._build_outcome(state, summary, status, started_s=started_s)
        problems += [*wrong_settings, *status.problems]
        return wait_s, replace(outcome, problems=tuple(problems), why_unknown=self._why_unknown())

    def _observe(self, state: ClusterState) -> Observation | None:
        tree_spec = self._writer.tree_spec
        if self._config.planes is not None:
            tree_spec = tree_spec.with_planes(self._config.planes)
        self._observer.update(
            TreeInputs(state.reports.reports, state.inventory, tree_spec, self._election.named),
            self._find_previous(state),
            (self._config.latest or self._config.now)(),
        )
        self._tree_spec = tree_spec
        return self._observer.observation

    def _find_previous(self, state: ClusterState) -> TopologyTree | None:
        observation, planned = self._observer.observation, self._last_plan
        return self._previous.find(
            state.record.record,
            state.hypernodes.hypernodes,
            desired=planned[1].desired if planned is not None else None,
            tree=observation.tree if observation is not None else None,
        )

    def _publish_and_write(
        self, observation: Observation | None, state: ClusterState, fabric: FabricRead
    ) -> tuple[float | None, tuple[ParseError, ...]]:
        """Publish the tree, and write the plan if it is allowed.

        A tree that follows from the default of an unknown setting is not published: no answer is
        better than places in a tree that nobody asked for.

        Return the seconds until a retry, None if none is due, and the conflicts of the plan.
        """
        spec = self._writer.tree_spec
        if not spec.has_hypernodes and not spec.outputs:
            if observation is not None and observation.tree.nodes:
                self._publish_state(with_label_keys(observation.tree, fabric.document), state)
            return self._remove_hypernodes(state)
        if observation is None or not observation.tree.nodes:
            self._writer.record_not_ready(
                explain_unknown(observation, self._tree_spec.planes.plane_name)
            )
            return self._restore(state), ()
        if not self._tree_spec.unknown:
            self._publish_state(with_label_keys(observation.tree, fabric.document), state)
        if state.hypernodes.is_missing and spec.has_hypernodes:
            self._writer.record_not_ready(NO_VOLCANO, reason="NotServed")
            return None, ()
        return self._write_hypernodes(observation, state)

    def _publish_state(self, tree: TopologyTree, state: ClusterState) -> None:
        """Publish a new snapshot if the tree, the inventory or the pods of gangs changed."""
        inventory = state.inventory
        published = (tree, inventory.nodes if inventory else None, state.bound_pods)
        if published == self._published:
            return
        self._snapshot = build_snapshot(tree, build_node_specs(inventory, tree.nodes))
        self._publish(self._snapshot, state.bound_pods)
        is_known = self._published is not None and self._published[0] == tree
        if self._published is None:
            freeze_gc()
        self._published = published
        if is_known:
            return  # free capacity changes with each pod: no news for the log
        log.info("tree published", extra={"nodes": len(tree.nodes), "domains": len(tree.domains)})

    def _write_hypernodes(
        self, observation: Observation, state: ClusterState
    ) -> tuple[float | None, tuple[ParseError, ...]]:
        observed = state.hypernodes.hypernodes
        is_decision_only = not self._writer.tree_spec.has_hypernodes
        if is_decision_only:
            self._writer.remove_unwanted(observed)
            observed = find_decided(state.record.record, observation.tree)
        planned = self._plan_changes(observation, observed)
        unknown = describe_unknown(observation)
        if planned.problems and unknown:
            self._writer.record_not_ready(unknown)
            return self._restore(state), planned.problems
        coverage = self._compute_coverage(observation.tree, state)
        record = state.record.record
        gangs, doubts = state.gangs, observation.doubts
        request = WriteRequest(
            planned,
            observed,
            coverage,
            record,
            None if is_decision_only else self._find_previous(state),
            is_decision_only=is_decision_only,
            gangs=gangs,
            doubts=doubts,
        )
        wait_s = self._writer.write(request)
        self._is_in_sync = self._writer.is_in_sync
        return wait_s, planned.problems

    def _publish_outputs(
        self, observation: Observation | None, state: ClusterState, fabric: FabricRead
    ) -> OutputsOutcome | None:
        """Write the outputs other than HyperNodes, as the last decision says."""
        inputs = OutputInputs(
            self._writer.tree_spec,
            fabric.document,
            self._store.read_record().record,
            observation,
            state.inventory,
            state.gangs,
            self._writer.is_writing,
        )
        return self._outputs.run(inputs)

    def _restore(self, state: ClusterState) -> float | None:
        """Undo edits by hand although the fabric is unknown; return the seconds until a retry."""
        if not self._writer.tree_spec.has_hypernodes or state.hypernodes.is_missing:
            return None
        return self._writer.restore(state.record.record, state.hypernodes.hypernodes)

    def _remove_hypernodes(
        self, state: ClusterState
    ) -> tuple[float | None, tuple[ParseError, ...]]:
        """Remove all HyperNodes of ours, because the Fabric object asks for none."""
        observed = state.hypernodes.hypernodes
        planned = plan_removal(observed)
        record = state.record.record
        wait_s = self._writer.write(WriteRequest(planned, observed, record=record, is_removal=True))
        if self._writer.is_in_sync:
            message = "spec.outputs of the Fabric object has no entry of type hypernode"
            self._writer.record_not_ready(message, reason="NotWanted")
            self._is_in_sync = True
        return wait_s, planned.problems

    def _plan_changes(
        self, observation: Observation, observed: tuple[HyperNode, ...]
    ) -> PlannedChanges:
        """Return the plan; it is computed again only if its inputs changed."""
        unknown = (observation.unknown_subnets, observation.plan_stops)
        plan_inputs = (observation.tree, unknown, observed)
        if self._last_plan is None or self._last_plan[0] != plan_inputs:
            self._last_plan = plan_inputs, plan_tree_changes(observation, observed)
        return self._last_plan[1]

    def _compute_coverage(self, tree: TopologyTree, state: ClusterState) -> Coverage:
        reports = state.reports.reports
        stale = state.unready_agents
        if stale is None:
            agents = [report for report in reports if not is_switch_report(report)]
            now, period = self._config.now(), self._config.period
            findings = derive_freshness_findings(agents, listed=(), now=now, period=period)
            stale = frozenset(finding.device for finding in findings)
        return compute_coverage(state.inventory, reports, tree, stale=stale)

    def _collect_findings(
        self, observation: Observation | None, state: ClusterState
    ) -> tuple[Finding, ...]:
        refused = derive_refused_report_findings(
            state.reports.problems, state.reports.refused_files
        )
        refused += derive_terminating_findings(state.hypernodes.hypernodes)
        if observation is None:
            return (*refused, *self._observer.sweep_findings)
        reports, switch_poller = state.reports.reports, self._config.switch_poller
        unknown = observation.unknown_subnets
        inputs = Inputs((), reports, state.inventory, unknown_subnets=unknown)
        period = self._config.period if state.unready_agents is None else None
        # In a cluster, agents write a report only when it changes, so its age means nothing;
        # the pods show whether agents collect.
        periods = Periods(period, switch_poller.period if switch_poller and period else None)
        report_findings = derive_report_findings(inputs, now=self._config.now(), periods=periods)
        unready = derive_unready_findings(reports, state.unready_agents or ())
        silent = switch_poller.derive_findings() if switch_poller else ()
        return (*observation.findings, *refused, *report_findings, *unready, *silent)

    def _why_unknown(self) -> str:
        observation = self._observer.observation
        if observation is not None and observation.tree.nodes:
            return ""
        return explain_unknown(observation, self._tree_spec.planes.plane_name)

    def _build_outcome(
        self, state: ClusterState, summary: RoundSummary, status: StatusUpdate, *, started_s: float
    ) -> RoundOutcome:
        written = self._writer.last_result
        return RoundOutcome(
            self._config.writing.clock() - started_s,
            generation=status.generation,
            tree=summary.tree,
            decided=self._find_previous(state),
            snapshot=self._snapshot,
            num_reports=len(state.reports.reports),
            num_refused_reports=len(state.reports.problems),
            findings=summary.findings,
            observed_hypernodes=state.hypernodes.hypernodes,
            conditions=status.conditions,
            held=status.held,
            outputs=summary.outputs.rows if summary.outputs else (),
            completed_actions=written.completed_actions,
            failed_action=written.failed_action,
            completed_plan=written.completed_plan,
            is_approved=written.is_approved,
        )
