"""The reconcile loop: reports to a tree, the tree to HyperNodes and a snapshot.

One round reads, infers, publishes the snapshot, plans and applies. No data is unknown, never
empty: without a usable tree nothing is published, planned or deleted. Nothing is written where
nothing changed, and nothing is inferred anew from the same facts. What is written and when is
`guarding`'s to say, and what the Fabric object tells of it `telling`'s. A replica that does not
lead goes through the same rounds, so that it answers from the same tree, and writes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Protocol

from generator.ingest.claims import freshness_findings
from generator.ingest.inputs import Inputs
from generator.objects.inventory import Inventory, ListedNode, capacities
from generator.objects.plane_config import PlaneChoice
from generator.objects.pods import BoundPod, Gang
from generator.observe.observation import Observation, Periods, report_findings
from generator.observe.observer import Evidence, Inferring
from generator.observe.sweep_election import Elections
from generator.observe.unready_agents import ailing_findings
from generator.outputs.hypernode import HyperNode
from generator.placement.cluster.snapshot import Snapshot, build_snapshot
from generator.reconcile.desired import (
    Planned,
    coverage_of,
    plan_towards,
    previous_tree,
    unknown_of,
)
from generator.reconcile.guard import Coverage
from generator.reconcile.result import OnRound, RoundOutcome
from generator.reconcile.status import Noticed, Telling, Told
from generator.reconcile.writer import Guarding, Pass, Writing
from generator.store.base import ServedStore
from generator.store.directory import ReadHyperNodes, ReadReports
from generator.switches.poller import SwitchRounds
from generator.switches.reports import is_walked
from generator.telemetry.round_log import RoundLog
from runtime.process_tuning import freeze_gc
from topology.model.errors import KubeUnavailable, ParseError
from topology.model.facts import Finding
from topology.model.tree import TopologyTree

log = logging.getLogger(__name__)


_AT_ONCE: Final = Writing()


@dataclass(frozen=True, slots=True)
class Course:
    """How rounds are held."""

    period: timedelta
    """How often agents collect, to judge the age of reports by."""
    now: Callable[[], datetime]
    writing: Writing = _AT_ONCE
    """How fast HyperNodes are written, if at all."""
    planes: PlaneChoice | None = None
    """Which network the HyperNodes are made of; None: what the Fabric object says."""
    walks: SwitchRounds | None = None
    """Who walks switches meanwhile, to tell of those that never answer."""
    on_round: tuple[OnRound, ...] = ()
    """Told how each round ended, in their order."""


class Publish(Protocol):
    """Takes each new state of the cluster."""

    def __call__(self, snapshot: Snapshot, pods: Sequence[BoundPod]) -> None:
        """Take a snapshot, and pods of gangs that its capacity was counted with."""
        ...


class World(NamedTuple):
    """All that one round reads."""

    reports: ReadReports
    stored: ReadHyperNodes
    bound: tuple[BoundPod, ...]
    inventory: Inventory | None
    gangs: tuple[Gang, ...]
    ailing: frozenset[str] | None
    """Nodes whose agent does not collect; None where ages of reports tell it."""
    troubles: tuple[str, ...]
    """Why some of it may not be current."""


class Rounds:
    """The memory of the loop from one round to the next."""

    def __init__(self, store: ServedStore, course: Course, *, publish: Publish) -> None:
        """Read nothing yet.

        Args:
            store: what is read and written.
            course: how rounds are held.
            publish: takes each new snapshot, with the pods that it was counted with.
        """
        self._store = store
        self._course = course
        self._publish = publish
        now, writing = course.now, course.writing
        self._elections = Elections(store, period=course.period, now=now)
        self._guarding = Guarding(store, now=now, writing=writing)
        self._telling = Telling(store, now=now, leads=writing.leads)
        self._inferring = Inferring()
        self._log = RoundLog()
        self._tree: TopologyTree | None = None
        """The last one that HyperNodes stood for, whose names are carried over."""
        self._served: (
            tuple[TopologyTree, tuple[ListedNode, ...] | None, tuple[BoundPod, ...]] | None
        ) = None
        self._snapshot: Snapshot | None = None
        self._planned: tuple[object, Planned] | None = None
        """The last plan, and what it was made of."""

    def tick(self) -> float | None:
        """Run one round; whatever goes wrong is logged and the next round tries again.

        Return in how many seconds that should be, where it is sooner than usual.
        """
        started_s = self._course.writing.clock()
        wait_s, outcome = None, None
        try:
            wait_s, outcome = self._run(started_s)
        except Exception as error:  # the named catch-all: the loop goes on
            log.exception("round failed", extra={"error": str(error)})
        if outcome is None:
            duration_s = self._course.writing.clock() - started_s
            outcome = RoundOutcome(duration_s, is_failed=True, snapshot=self._snapshot)
        for listener in self._course.on_round:
            listener(outcome)
        return wait_s

    def _run(self, started_s: float) -> tuple[float | None, RoundOutcome | None]:
        try:
            world = self._read()
        except KubeUnavailable:
            # Not all is listed yet, of which who lists it tells: nothing may be concluded.
            return None, RoundOutcome(self._course.writing.clock() - started_s, is_failed=True)
        problems: list[ParseError] = [*self._guarding.begin()]
        if self._course.writing.leads():
            self._elections.hold(world.reports.reports, world.ailing)
        observation = self._look(world)
        problems += [*world.reports.problems, *self._inferring.problems, *world.stored.problems]
        problems += world.inventory.problems if world.inventory else ()
        wait_s, conflicts = self._act(observation, world)
        findings = self._findings(observation, world)
        problems += conflicts
        tree = observation.tree if observation is not None and observation.tree.nodes else None
        num_problems = len(problems) + len(world.troubles)
        told = self._telling.tell(Noticed(tree, findings, num_problems), self._guarding)
        self._log.tell_problems([*problems, *told.problems])
        outcome = self._outcome(world, tree, findings=findings, told=told, started_s=started_s)
        return wait_s, outcome

    def _read(self) -> World:
        store = self._store
        return World(
            store.read_reports(),
            store.read_hypernodes(),
            store.read_bound(),
            store.read_inventory(),
            store.read_gangs(),
            store.read_ailing(),
            store.problems,
        )

    def _look(self, world: World) -> Observation | None:
        shape = self._guarding.shape
        if self._course.planes is not None:
            shape = shape._replace(planes=self._course.planes)
        previous = self._tree or previous_tree(world.stored.hypernodes)
        self._inferring.look(Evidence(world.reports.reports, world.inventory, shape), previous)
        self._log.tell_knowledge(self._inferring.observation, shape.planes.name)
        return self._inferring.observation

    def _act(
        self, observation: Observation | None, world: World
    ) -> tuple[float | None, tuple[ParseError, ...]]:
        """Publish what is known, and carry out the plan where it may be.

        Return in how many seconds to try again, if so, and what stood in the way.
        """
        if observation is None or not observation.tree.nodes:
            self._guarding.hold_back("no node is known to be anywhere")
            return None, ()
        self._serve(observation.tree, world)
        return self._reconcile(observation, world)

    def _serve(self, tree: TopologyTree, world: World) -> None:
        """Publish a new snapshot where the tree, the inventory or pods of gangs are others."""
        inventory = world.inventory
        served = (tree, inventory.nodes if inventory else None, world.bound)
        if served == self._served:
            return
        self._snapshot = build_snapshot(tree, capacities(inventory, tree.nodes))
        self._publish(self._snapshot, world.bound)
        is_known = self._served is not None and self._served[0] == tree
        if self._served is None:
            freeze_gc()
        self._served = served
        if is_known:
            return  # what is free changes with each pod
        log.info("tree published", extra={"nodes": len(tree.nodes), "domains": len(tree.domains)})

    def _reconcile(
        self, observation: Observation, world: World
    ) -> tuple[float | None, tuple[ParseError, ...]]:
        observed = world.stored.hypernodes
        if not self._guarding.shape.has_hypernodes:
            why = "spec.outputs of the Fabric object asks for no HyperNodes"
            self._guarding.hold_back(why, reason="NotWanted")
            return None, ()
        actions, conflicts = self._plan(observation, observed)
        unknown = unknown_of(observation)
        if conflicts and unknown:
            self._guarding.hold_back(unknown)
            return None, conflicts
        coverage = self._coverage(observation.tree, world)
        wait_s = self._guarding.write(Pass(actions, observed, coverage, conflicts, world.gangs))
        if self._guarding.is_settled:
            # Of what is not written, names are not carried over: evidence that comes back must
            # lead to the HyperNodes that stand.
            self._tree = observation.tree
        return wait_s, conflicts

    def _plan(self, observation: Observation, observed: tuple[HyperNode, ...]) -> Planned:
        """Return what to do, worked out anew only where what it depends on is another."""
        asked = (observation.tree, observation.unknown_subnets, observed)
        if self._planned is None or self._planned[0] != asked:
            self._planned = asked, plan_towards(observation, observed)
        return self._planned[1]

    def _coverage(self, tree: TopologyTree, world: World) -> Coverage:
        reports = world.reports.reports
        stale = world.ailing
        if stale is None:
            agents = [one for one in reports if not is_walked(one)]
            now, period = self._course.now(), self._course.period
            aged = freshness_findings(agents, listed=(), now=now, period=period)
            stale = frozenset(one.device for one in aged)
        return coverage_of(world.inventory, reports, tree, stale=stale)

    def _findings(self, observation: Observation | None, world: World) -> tuple[Finding, ...]:
        if observation is None:
            return ()
        reports, walks = world.reports.reports, self._course.walks
        unknown = observation.unknown_subnets
        inputs = Inputs((), reports, world.inventory, unknown_subnets=unknown)
        period = self._course.period if world.ailing is None else None
        # Where pods tell of agents, reports are only written when they change.
        ages = Periods(period, walks.period if walks and period else None)
        reported = report_findings(inputs, now=self._course.now(), ages=ages)
        ailing = ailing_findings(reports, world.ailing or ())
        silent = walks.findings() if walks else ()
        found = (*observation.findings, *reported, *ailing, *silent)
        self._log.tell_findings(found)
        return found

    def _outcome(
        self,
        world: World,
        tree: TopologyTree | None,
        *,
        findings: tuple[Finding, ...],
        told: Told,
        started_s: float,
    ) -> RoundOutcome:
        carried = self._guarding.carried
        return RoundOutcome(
            self._course.writing.clock() - started_s,
            generation=told.generation,
            tree=tree,
            snapshot=self._snapshot,
            num_reports=len(world.reports.reports),
            num_refused=len(world.reports.problems),
            findings=findings,
            observed=world.stored.hypernodes,
            conditions=told.conditions,
            held=told.held,
            done=carried.done,
            failed=carried.failed,
            carried_out=carried.plan,
            is_approved=carried.is_approved,
        )
