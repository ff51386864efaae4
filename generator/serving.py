"""The reconcile loop on a folder: reports to a tree, the tree to HyperNodes and a snapshot.

One round reads, infers, publishes the snapshot, plans and applies. No data is unknown, never
empty: without a usable tree nothing is published, planned or deleted. Nothing is written where
nothing changed, nothing is inferred anew from the same facts, and what stands is logged when it
comes and when it goes, not every round.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple

from generator.app import Observation, Periods, observe_fabric, report_findings
from generator.electing import Elections
from generator.inputs import Inputs, read_inventory
from generator.intake import take_reports
from generator.inventory import Inventory, capacities
from generator.outputs.hypernode import HyperNode
from generator.placement.capacity import Snapshot, build_snapshot
from generator.plane_config import DEFAULT_PLANES, PlaneChoice
from generator.planning import plan_towards, previous_tree
from generator.reconcile.apply import apply_plan
from generator.reconcile.plan import Action
from generator.standing import Standing
from generator.store.directory import DirectoryStore
from generator.switch_rounds import SwitchRounds
from generator.watching import Watched, file_stamps, folder_stamps
from topology.errors import ConfigError, ParseError
from topology.facts import Finding, Severity
from topology.report import NeighborReport
from topology.tree import TopologyTree

log = logging.getLogger(__name__)


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

        Raises:
            ConfigError: the inventory cannot be read.
            StoreError: the folders of the store cannot be read.
        """
        self._store = DirectoryStore(root)
        self._elections = Elections(self._store, period=period, now=now)
        self._walks = walks
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

    def tick(self) -> None:
        """Run one round; whatever goes wrong is logged and the next round tries again."""
        try:
            self._run()
        except Exception as error:  # the named catch-all: the loop goes on
            log.exception("round failed", extra={"error": str(error)})

    def _run(self) -> None:
        problems: list[ParseError] = []
        inventory = self._read_inventory(problems)
        read, stored = self._reports.latest(), self._stored.latest()
        self._elections.hold(read.reports)
        self._look(read.reports, inventory, self._tree or previous_tree(stored.hypernodes))
        observation = self._seen.observation
        problems += [*read.problems, *self._seen.problems, *stored.problems]
        self._log_knowledge(observation)
        if observation is not None and observation.tree.nodes:
            self._tree = observation.tree
            self._serve(observation.tree, inventory)
            problems += self._reconcile(observation, stored.hypernodes)
        if observation is not None:
            unknown = observation.unknown_subnets
            inputs = Inputs((), read.reports, inventory, unknown_subnets=unknown)
            reported = report_findings(inputs, now=self._now(), ages=self._ages)
            silent = self._walks.findings() if self._walks else ()
            self._log_findings([*observation.findings, *reported, *silent])
        self._problems.update({str(one): {"problem": str(one)} for one in problems})

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
        self, observation: Observation, observed: tuple[HyperNode, ...]
    ) -> tuple[ParseError, ...]:
        """Carry out the plan, and return what stood in its way."""
        actions, conflicts = plan_towards(observation, observed)
        if actions:
            result = apply_plan(actions, self._store)
            log.info("hypernodes written", extra=_counts(result.done))
            if result.error is not None:
                fields = {"error": str(result.error), "pending": len(result.pending)}
                log.error("writing hypernodes failed", extra=fields)
        return conflicts

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


def _counts(done: Iterable[Action]) -> dict[str, int]:
    counts = Counter(action.op for action in done)
    return {f"num_{op.value}": num for op, num in sorted(counts.items())}
