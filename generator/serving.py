"""The reconcile loop on a folder: reports to a tree, the tree to HyperNodes and a snapshot.

One round reads, infers, publishes the snapshot, plans and applies. No data is unknown, never
empty: without a usable tree nothing is published, planned or deleted. Nothing is written where
nothing changed, nothing is inferred anew from the same facts, and what stands is logged when it
comes and when it goes, not every round. What is written and when is `guarding`'s to say.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from generator.app import Observation, Periods, observe_fabric, report_findings
from generator.electing import Elections
from generator.guarding import Guarding, Pass, Writing
from generator.inputs import Inputs, read_inventory
from generator.intake import freshness_findings, take_reports
from generator.inventory import Inventory, capacities
from generator.outputs.hypernode import HyperNode
from generator.placement.capacity import Snapshot, build_snapshot
from generator.plane_config import DEFAULT_PLANES, PlaneChoice
from generator.planning import coverage_of, plan_towards, previous_tree, unknown_of
from generator.reconcile.guard import Coverage
from generator.standing import Standing
from generator.store.directory import DirectoryStore
from generator.switch_reports import is_walked
from generator.switch_rounds import SwitchRounds
from generator.watching import Watched, file_stamps, folder_stamps
from topology.errors import ConfigError, ParseError
from topology.facts import Finding, Severity
from topology.report import NeighborReport
from topology.tree import TopologyTree

log = logging.getLogger(__name__)

AT_ONCE: Final = Writing()


class Seen(NamedTuple):
    """Facts, and what was made of them: the same facts need not be looked at twice."""

    facts: object
    observation: Observation | None
    problems: tuple[ParseError, ...]


class Rounds:
    """The memory of the loop from one round to the next."""

    def __init__(  # noqa: PLR0913 - each is a part of the world that rounds meet
        self,
        root: Path,
        *,
        nodes: Path | None,
        period: timedelta,
        now: Callable[[], datetime],
        publish: Callable[[Snapshot], None],
        walks: SwitchRounds | None = None,
        planes: PlaneChoice = DEFAULT_PLANES,
        writing: Writing = AT_ONCE,
    ) -> None:
        """Read the inventory and what is stored.

        Args:
            root: of the store.
            nodes: the inventory; read again when it changes.
            period: how often agents collect, to judge the age of reports by.
            now: the clock.
            publish: takes each new snapshot.
            walks: who walks switches meanwhile, to tell of those that never answer.
            planes: which network the HyperNodes are made of.
            writing: how fast HyperNodes are written, if at all.

        Raises:
            ConfigError: the inventory cannot be read.
            StoreError: the folders of the store cannot be read.
        """
        self._store = DirectoryStore(root)
        self._elections = Elections(self._store, period=period, now=now)
        self._walks = walks
        self._guarding = Guarding(self._store, now=now, writing=writing)
        self._ages = Periods(period, walks.period if walks else None)
        self._now = now
        self._publish = publish
        self._planes = planes
        files = (nodes,) if nodes else ()
        self._inventory = Watched(partial(read_inventory, nodes), partial(file_stamps, *files))
        self._reports = Watched(
            self._store.read_reports, partial(folder_stamps, self._store.reports)
        )
        self._stored = Watched(
            self._store.read_hypernodes, partial(folder_stamps, self._store.hypernodes)
        )
        self._seen = Seen(None, None, ())
        self._tree: TopologyTree | None = None
        self._served: tuple[TopologyTree, Inventory | None] | None = None
        self._is_known: bool | None = None
        self._problems = Standing(log, "problem", level=logging.WARNING)
        self._notes = Standing(log, "finding")
        self._faults = Standing(log, "finding", level=logging.WARNING)

    def tick(self) -> float | None:
        """Run one round; whatever goes wrong is logged and the next round tries again.

        Return in how many seconds that should be, where it is sooner than usual.
        """
        try:
            return self._run()
        except Exception as error:  # the named catch-all: the loop goes on
            log.exception("round failed", extra={"error": str(error)})
        return None

    def _run(self) -> float | None:
        problems: list[ParseError] = [*self._guarding.begin()]
        inventory = self._read_inventory(problems)
        read, stored = self._reports.latest(), self._stored.latest()
        self._elections.hold(read.reports)
        self._look(read.reports, inventory, self._tree or previous_tree(stored.hypernodes))
        observation = self._seen.observation
        problems += [*read.problems, *self._seen.problems, *stored.problems]
        self._log_knowledge(observation)
        wait_s = None
        if observation is not None and observation.tree.nodes:
            self._serve(observation.tree, inventory)
            wait_s, conflicts = self._reconcile(observation, stored.hypernodes, inventory)
            problems += conflicts
        else:
            self._guarding.hold_back("no node is known to be anywhere")
        found: list[Finding] = []
        if observation is not None:
            unknown = observation.unknown_subnets
            inputs = Inputs((), read.reports, inventory, unknown_subnets=unknown)
            reported = report_findings(inputs, now=self._now(), ages=self._ages)
            silent = self._walks.findings() if self._walks else ()
            found = [*observation.findings, *reported, *silent]
            self._log_findings(found)
        doubts = {one.kind.value for one in found if one.severity is not Severity.INFO}
        problems += self._guarding.tell(doubts, num_problems=len(problems))
        self._problems.update({str(one): {"problem": str(one)} for one in problems})
        return wait_s

    def _look(
        self,
        reports: tuple[NeighborReport, ...],
        inventory: Inventory | None,
        previous: TopologyTree | None,
    ) -> None:
        """Infer the tree and the findings, if the facts are others than in the last round."""
        facts = (_facts_of(reports), inventory)
        if facts == self._seen.facts:
            return
        taken = take_reports(reports)
        inputs = Inputs(
            taken.claims,
            reports,
            inventory,
            unknown_subnets=taken.unknown_subnets,
            planes=self._planes,
        )
        # Ages and outcomes change without a new fact, so they are judged apart.
        last = self._seen.observation
        owners = last.owners if last else {}
        observation = observe_fabric(inputs, previous=previous, first_owners=owners)
        self._seen = Seen(facts, observation, taken.problems)

    def _read_inventory(self, problems: list[ParseError]) -> Inventory | None:
        """Return the inventory; the last good one while the file cannot be read."""
        try:
            inventory = self._inventory.latest()
        except ConfigError as error:
            problems.append(ParseError(str(error)))
            inventory = self._inventory.last
        if inventory is not None:
            problems += inventory.problems
        return inventory

    def _serve(self, tree: TopologyTree, inventory: Inventory | None) -> None:
        """Publish a new snapshot where the tree or the inventory is a new one."""
        if self._served is not None and self._served == (tree, inventory):
            return
        self._publish(build_snapshot(tree, capacities(inventory, tree.nodes)))
        self._served = (tree, inventory)
        log.info("tree published", extra={"nodes": len(tree.nodes), "domains": len(tree.domains)})

    def _reconcile(
        self,
        observation: Observation,
        observed: tuple[HyperNode, ...],
        inventory: Inventory | None,
    ) -> tuple[float | None, tuple[ParseError, ...]]:
        """Carry out the plan where it may be.

        Return in how many seconds to try again, if so, and what stood in its way.
        """
        actions, conflicts = plan_towards(observation, observed)
        unknown = unknown_of(observation)
        if conflicts and unknown:
            self._guarding.hold_back(unknown)
            return None, conflicts
        coverage = self._coverage(observation.tree, inventory)
        wait_s = self._guarding.write(Pass(actions, observed, coverage, len(conflicts)))
        if self._guarding.is_settled:
            # Of what is not written, names are not carried over: evidence that comes back must
            # lead to the HyperNodes that stand.
            self._tree = observation.tree
        return wait_s, conflicts

    def _coverage(self, tree: TopologyTree, inventory: Inventory | None) -> Coverage:
        reports = self._reports.last.reports
        agents = [one for one in reports if not is_walked(one)]
        aged = freshness_findings(agents, listed=(), now=self._now(), period=self._ages.agents)
        return coverage_of(inventory, reports, tree, stale={one.device for one in aged})

    def _log_knowledge(self, observation: Observation | None) -> None:
        is_known = observation is not None and bool(observation.tree.nodes)
        if is_known is self._is_known:
            return
        self._is_known = is_known
        if is_known:
            log.info("fabric known")
        else:
            reason = _why_unknown(observation, self._planes.name)
            log.warning("fabric unknown, nothing is changed", extra={"reason": reason})

    def _log_findings(self, findings: Iterable[Finding]) -> None:
        """Tell which came and went; a message may carry an age and makes no new finding."""
        for standing, is_note in ((self._notes, True), (self._faults, False)):
            standing.update(
                {
                    (one.kind, one.device, one.port): {
                        "kind": one.kind.value,
                        "device": one.device,
                        "port": one.port,
                        "advice": one.message,
                    }
                    for one in findings
                    if (one.severity is Severity.INFO) is is_note
                }
            )


def _why_unknown(observation: Observation | None, plane: str) -> str:
    if observation is None:
        return "no usable report"
    if plane not in observation.planes:
        return f"no port is in plane {plane}; planes with ports: {', '.join(observation.planes)}"
    return "no node could be placed"


def _facts_of(reports: Iterable[NeighborReport]) -> list[object]:
    """Return all that the tree and the plan depend on, of reports.

    That is specs, who takes part in sweeping and how, ports that flap, and times where they
    choose between sweeps.

    Agents renew the times of unchanged facts every period.
    """
    reports = tuple(reports)
    sweeps: dict[str, set[str]] = {}
    for report in reports:
        if report.spec.sweep is not None:
            sweeps.setdefault(report.spec.sweep.subnet, set()).add(report.spec.sweep.sweep_id)
    return [
        (report.metadata.name, report.spec, report.status.observed_at)
        if report.spec.sweep is not None and len(sweeps[report.spec.sweep.subnet]) > 1
        else (report.metadata.name, report.spec, report.status.sweeping, report.status.flapping)
        for report in reports
    ]
