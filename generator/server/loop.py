"""The reconcile loop: reports to a tree, the tree to HyperNodes and a snapshot.

One round reads, infers, publishes the snapshot, plans and applies. No data means unknown, never
empty: without a usable tree nothing is published, planned or deleted. Unchanged facts are not
inferred again, and unchanged objects are not written. `reconcile.decision` decides what is
written and when; `reconcile.status` writes the Fabric object. A follower runs the same rounds, so
that it answers from the same tree, but writes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from generator.ingest.inputs import Inputs
from generator.ingest.report_findings import derive_refused_report_findings
from generator.jobs.gang_ranks import GangRanks, derive_rank_findings
from generator.kube.cache import Listing
from generator.objects.fabric import with_label_keys
from generator.objects.inventory import Inventory, ListedNode, build_node_specs
from generator.objects.plane_config import PlaneChoice
from generator.objects.pods import BoundPod, Gang
from generator.objects.tree_record import TreeRecord
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
from generator.outputs.hypernode.model import HyperNode
from generator.placement.cluster.snapshot import Snapshot, build_snapshot
from generator.reconcile.conditions import build_ready, parse_write_status
from generator.reconcile.decided_tree import PreviousTree, add_unplaced, find_last_tree
from generator.reconcile.decision import NO_MEMORY, RoundState, decide
from generator.reconcile.desired import (
    NO_VOLCANO,
    PlannedChanges,
    compute_coverage,
    describe_unknown,
    find_decided,
    plan_removal,
    plan_tree_changes,
)
from generator.reconcile.guard import Coverage, PlanEvidence
from generator.reconcile.hypernode_output import compare_hypernodes
from generator.reconcile.output_outcomes import OutputOutcome, OutputsOutcome
from generator.reconcile.outputs import Publisher, build_request
from generator.reconcile.round_results import OnRound, RoundOutcome
from generator.reconcile.settings import FabricSettings, WriteSettings, read_settings
from generator.reconcile.status import FabricStatusWriter, RoundSummary, StatusUpdate
from generator.reconcile.writer import ApplyResult, Publish, WriteLog, WriteOutcome, carry_out
from generator.server.elected_sweepers import SweepElection
from generator.store.fabric_store import FabricStore, StoredRecord
from generator.switches.poller import SwitchPoller
from generator.telemetry.round_log import RoundLog
from runtime.process_settings import freeze_gc
from topology.findings.impact import measure_impacts
from topology.model.errors import KubeUnavailable, ParseError
from topology.model.facts import Finding, sort_findings
from topology.model.tree import TopologyTree
from topology.planes.plane_split import PlaneSplit, split_planes
from topology.reports.packed_reports import PackedReport

log = logging.getLogger(__name__)

_DEFAULT_WRITE_SETTINGS: Final = WriteSettings()


class ClusterState(NamedTuple):
    """Everything that one round reads, apart from the Fabric object."""

    reports: Listing[PackedReport]
    hypernodes: Listing[HyperNode]
    record: StoredRecord
    bound_pods: tuple[BoundPod, ...]
    inventory: Inventory | None
    gangs: tuple[Gang, ...]
    unready_agents: frozenset[str] | None
    """Nodes whose agent does not collect; None if only the ages of reports show that."""
    store_problems: tuple[str, ...]
    """Why some of this may be out of date."""


def read_cluster_state(store: FabricStore) -> ClusterState:
    """Return the state of the cluster that a round reads.

    Raises:
        KubeUnavailable: a kind was never listed.
    """
    return ClusterState(
        store.read_reports(),
        store.read_hypernodes(),
        store.read_record(),
        store.read_bound_pods(),
        store.read_inventory(),
        store.read_gangs(),
        store.read_unready_agents(),
        store.objects.problems,
    )


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
    """The known switches of the history; None: there is no history."""


PublishSnapshot: TypeAlias = Callable[[Snapshot, Sequence[BoundPod]], None]
"""Takes each new snapshot, and the pods of gangs whose usage its free capacity includes."""


class ReconcileLoop:
    """Runs the rounds, and holds what one round passes to the next."""

    def __init__(self, store: FabricStore, config: LoopConfig, *, publish: PublishSnapshot) -> None:
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
            has_agent_tokens=store.objects.has_agent_tokens,
        )
        self._settings = FabricSettings()
        self._memory = NO_MEMORY
        self._write_log = WriteLog()
        self._observer = FabricObserver(config.known_switches)
        self._listeners = (RoundLog().on_round, *config.round_listeners)
        self._shown: tuple[object, TopologyTree] | None = None
        """What the tree of the outputs follows from, and the tree."""
        self._compared: tuple[object, OutputOutcome] | None = None
        """What the result of the HyperNodes follows from, and the result."""
        self._previous = PreviousTree()
        self._published: (
            tuple[TopologyTree, tuple[ListedNode, ...] | None, tuple[BoundPod, ...]] | None
        ) = None
        self._snapshot: Snapshot | None = None
        self._gang_ranks = GangRanks()
        self._tree_spec = DEFAULT_TREE_SPEC
        """The requested form of the tree, with the options of the program."""
        self._last_plan: tuple[object, PlannedChanges] | None = None
        """The inputs of the last plan, and the plan."""

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
        self._settings = read_settings(fabric, self._settings)
        wrong_settings = self._settings.problems
        problems: list[ParseError] = []
        spec = self._settings.tree_spec
        # Without the listed sweepers, an election could choose a node that is not among them.
        is_elected = self._election.read(fabric, spec.sweepers) and not spec.unknown
        if is_elected and self._config.writing.is_leader():
            self._election.elect(state.reports.values, state.unready_agents)
        observation = self._observe(state)
        self._election.record_reaches(self._observer.reaches)
        problems += [*state.reports.all_problems, *self._observer.problems]
        problems += [*state.hypernodes.all_problems, *state.record.problems]
        if state.inventory:
            problems += state.inventory.problems
        round_state, conflicts = self._build_round(observation, state)
        publish = partial(
            self._publish_outputs, observation, state, is_writing=round_state.is_writing
        )
        written = self._write(round_state, publish)
        if is_elected and self._config.writing.is_leader():
            is_in_sync = round_state.planned is not None and written.has_no_pending_plan
            self._election.confirm(self._observer.used_sweeps, is_in_sync=is_in_sync)
        refused = () if written.outputs is None else written.outputs.findings
        findings = sort_findings([*self._collect_findings(observation, state), *refused])
        problems += conflicts
        tree = observation.tree if observation is not None and observation.tree.nodes else None
        num_problems = len(problems) + len(state.store_problems)
        settings = tuple(map(str, wrong_settings))
        summary = RoundSummary(tree, findings, num_problems, settings)
        status = self._status.update(summary, written)
        outcome = self._build_outcome(state, summary, status, written, started_s=started_s)
        problems += [*wrong_settings, *status.problems]
        return min(filter(None, (written.wait_s, status.retry_s)), default=None), replace(
            outcome, problems=tuple(problems), why_unknown=self._why_unknown()
        )

    def _observe(self, state: ClusterState) -> Observation | None:
        tree_spec = self._settings.tree_spec
        if self._config.planes is not None:
            tree_spec = tree_spec.with_planes(self._config.planes)
        self._observer.update(
            TreeInputs(state.reports.values, state.inventory, tree_spec, self._election.named),
            self._find_previous(state),
            (self._config.latest or self._config.now)(),
        )
        self._tree_spec = tree_spec
        return self._observer.observation

    def _find_previous(self, state: ClusterState) -> TopologyTree | None:
        observation, planned = self._observer.observation, self._last_plan
        return self._previous.find(
            state.record.record,
            state.hypernodes.values,
            desired=planned[1].desired if planned is not None else None,
            tree=observation.tree if observation is not None else None,
        )

    def _build_round(
        self, observation: Observation | None, state: ClusterState
    ) -> tuple[RoundState, tuple[ParseError, ...]]:
        """Publish the tree; return what this round decides on, and the conflicts of its plan.

        A tree that follows from the default of an unknown setting is not published: no answer is
        better than places in a tree that nobody asked for.
        """
        spec, observed = self._settings.tree_spec, state.hypernodes.values
        round_state = self._begin_round(state)
        is_unwanted = not spec.has_hypernodes and not spec.outputs
        is_known = observation is not None and bool(observation.tree.nodes)
        if observation is not None and is_known and (is_unwanted or not self._tree_spec.unknown):
            self._publish_state(with_label_keys(observation.tree, self._settings.document), state)
        if is_unwanted:
            planned = plan_removal(observed)
            return round_state._replace(planned=planned, is_removal=True), planned.problems
        if observation is None or not is_known:
            why = explain_unknown(observation, self._tree_spec.planes.plane_name)
            return round_state._replace(not_ready=build_ready(reason="NoData", message=why)), ()
        if state.hypernodes.is_missing and spec.has_hypernodes:
            not_ready = build_ready(reason="NotServed", message=NO_VOLCANO)
            return round_state._replace(not_ready=not_ready), ()
        return self._plan_round(round_state, observation, state)

    def _begin_round(self, state: ClusterState) -> RoundState:
        """Return the input of a round's decision, without a plan yet."""
        writing, settings = self._config.writing, self._settings
        is_served = settings.tree_spec.has_hypernodes and not state.hypernodes.is_missing
        return RoundState(
            None,
            self._config.now(),
            state.hypernodes.values,
            state.record.record,
            policy=settings.policy,
            held=parse_write_status(settings.document).held,
            is_restorable=is_served,
            is_leader=writing.is_leader(),
            is_dry_run=writing.is_dry_run,
            pace=writing.debounce,
            now_s=writing.clock(),
        )

    def _plan_round(
        self, round_state: RoundState, observation: Observation, state: ClusterState
    ) -> tuple[RoundState, tuple[ParseError, ...]]:
        """Return the input of a round's decision, with the plan towards the observed tree."""
        observed, existing = state.hypernodes.values, self._find_previous(state)
        is_decision_only = not self._settings.tree_spec.has_hypernodes
        round_state = round_state._replace(is_decision_only=is_decision_only)
        if is_decision_only:  # the plan differs from the last decision
            observed, existing = find_decided(state.record.record, observation.tree), None
        planned = self._plan_changes(observation, observed)
        unknown = describe_unknown(observation)
        if planned.problems and unknown:
            not_ready = build_ready(reason="NoData", message=unknown)
            return round_state._replace(not_ready=not_ready), planned.problems
        coverage = self._compute_coverage(observation.tree, state)
        round_state = round_state._replace(
            planned=planned,
            existing=existing,
            evidence=PlanEvidence(coverage, state.gangs, observation.doubts),
        )
        return round_state, planned.problems

    def _write(self, round_state: RoundState, publish: Publish) -> WriteOutcome:
        """Decide what this round writes, and write it."""
        decision, writing = decide(round_state, self._memory), self._config.writing
        written = carry_out(
            decision, self._store, clock=writing.clock, pace=writing.debounce, publish=publish
        )
        self._write_log.on_write(decision, round_state.actions, written)
        self._memory = written.memory
        return written

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

    def _publish_outputs(
        self,
        observation: Observation | None,
        state: ClusterState,
        record: TreeRecord | None,
        applied: ApplyResult,
        *,
        is_writing: bool,
    ) -> OutputsOutcome | None:
        """Write the outputs other than HyperNodes, as the record says; return the result of all.

        Return None while it is unknown which outputs are wanted.
        """
        request = build_request(
            self._find_shown_tree(observation, state.inventory, record),
            self._settings.tree_spec,
            fabric=self._settings.document,
            gangs=state.gangs,
            is_writing=is_writing,
        )
        publisher = self._config.publisher
        if request is None:
            return None
        others = OutputsOutcome(is_paused=not is_writing)
        if publisher is not None and not request.is_empty:
            others = publisher.update(request)
        hypernodes = self._compare_hypernodes(state, record, applied)
        return others._replace(outputs=(hypernodes, *others.outputs))

    def _compare_hypernodes(
        self, state: ClusterState, record: TreeRecord | None, applied: ApplyResult
    ) -> OutputOutcome:
        """Return the result of the HyperNodes; it is computed again only if its inputs changed."""
        observed, spec = state.hypernodes, self._settings.tree_spec
        key = (record, observed.values, applied, spec.has_hypernodes, observed.is_missing)
        if self._compared is None or self._compared[0] != key:
            outcome = compare_hypernodes(
                find_last_tree(record, observed.values),
                observed.values,
                applied,
                is_wanted=spec.has_hypernodes,
                is_served=not observed.is_missing,
            )
            self._compared = key, outcome
        return self._compared[1]

    def _find_shown_tree(
        self,
        observation: Observation | None,
        inventory: Inventory | None,
        record: TreeRecord | None,
    ) -> TopologyTree | None:
        """Return the recorded tree, with every other node of the cluster as unplaced.

        None if nothing is decided.
        """
        tree = None if record is None else record.tree
        if tree is None or not tree.domains or not self._settings.tree_spec.outputs:
            return None
        nodes = tuple(node.name for node in inventory.nodes) if inventory else ()
        unplaced = () if observation is None else observation.tree.unplaced
        key = (tree, nodes, unplaced)
        if self._shown is None or self._shown[0] != key:
            self._shown = key, add_unplaced(tree, nodes=nodes, unplaced=unplaced)
        return self._shown[1]

    def _plan_changes(
        self, observation: Observation, observed: tuple[HyperNode, ...]
    ) -> PlannedChanges:
        """Return the plan; it is computed again only if its inputs changed."""
        unknown = (observation.unknown_subnets, observation.plan_blockers)
        plan_inputs = (observation.tree, unknown, observed)
        if self._last_plan is None or self._last_plan[0] != plan_inputs:
            self._last_plan = plan_inputs, plan_tree_changes(observation, observed)
        return self._last_plan[1]

    def _compute_coverage(self, tree: TopologyTree, state: ClusterState) -> Coverage:
        reports = state.reports.values
        stale = state.unready_agents
        if stale is None:
            agents = [report for report in reports if not report.is_of_switch]
            now, period = self._config.now(), self._config.period
            findings = derive_freshness_findings(agents, listed=(), now=now, period=period)
            stale = frozenset(finding.device for finding in findings)
        return compute_coverage(state.inventory, reports, tree, stale=stale)

    def _collect_findings(
        self, observation: Observation | None, state: ClusterState
    ) -> tuple[Finding, ...]:
        refused = derive_refused_report_findings(state.reports.refused)
        if observation is None:
            return (*refused, *self._observer.sweep_findings)
        reports, switch_poller = state.reports.values, self._config.switch_poller
        unknown = observation.unknown_subnets
        inputs = Inputs((), reports, state.inventory, unknown_subnets=unknown)
        period = self._config.period if state.unready_agents is None else None
        # In a cluster, agents write a report only when it changes, so its age means nothing;
        # the pods show whether agents collect.
        periods = Periods(period, switch_poller.period if switch_poller and period else None)
        report_findings = derive_report_findings(
            inputs,
            now=self._config.now(),
            periods=periods,
            unlinked=observation.unlinked_nodes,
        )
        unready = derive_unready_findings(reports, state.unready_agents or ())
        silent = switch_poller.derive_findings() if switch_poller else ()
        of_sources = measure_impacts(
            [*refused, *report_findings, *unready, *silent], observation.tree
        )
        return (*observation.findings, *of_sources)

    def _why_unknown(self) -> str:
        observation = self._observer.observation
        if observation is not None and observation.tree.nodes:
            return ""
        return explain_unknown(observation, self._tree_spec.planes.plane_name)

    def _build_outcome(
        self,
        state: ClusterState,
        summary: RoundSummary,
        status: StatusUpdate,
        written: WriteOutcome,
        *,
        started_s: float,
    ) -> RoundOutcome:
        ranks = self._gang_ranks.update(summary.tree, state.bound_pods) if summary.tree else {}
        return RoundOutcome(
            self._config.writing.clock() - started_s,
            generation=status.generation,
            tree=summary.tree,
            decided=self._find_previous(state),
            snapshot=self._snapshot,
            num_reports=len(state.reports.values),
            num_refused_reports=len(state.reports.all_problems),
            findings=summary.findings,
            gang_ranks=ranks,
            gang_findings=tuple(derive_rank_findings(ranks, self._config.now())),
            observed_hypernodes=state.hypernodes.values,
            conditions=status.conditions,
            held=status.held,
            outputs=written.outputs.rows if written.outputs else (),
            completed_actions=written.applied.done,
            failed_action=next(iter(written.applied.pending), None),
            completed_plan=written.completed_plan,
            is_approved=written.is_approved,
        )
