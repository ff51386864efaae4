"""From reports to a tree and its findings; infers again only when the facts changed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from generator.ingest.claims import ClaimBuilder
from generator.ingest.host_evidence import SweepReach
from generator.ingest.inputs import Inputs
from generator.ingest.named_sweepers import EVERY_SWEEPER, NamedSweepers
from generator.ingest.sweep_choice import UsedSweep
from generator.objects.inventory import Inventory
from generator.objects.tree_spec import DEFAULT_TREE_SPEC, TreeSpec
from generator.observe.known_switches import KnownSwitches
from generator.observe.observation import Observation, observe_fabric
from topology.identity.id_owners import index_id_owners
from topology.model.claims import PreviousOwners
from topology.model.errors import ParseError
from topology.model.fabric import Fabric
from topology.model.facts import Finding, FindingKind
from topology.model.tree import TopologyTree
from topology.reports.observed_time import is_ahead
from topology.reports.packed_reports import PackedReport


class TreeInputs(NamedTuple):
    """All inputs of a tree."""

    reports: tuple[PackedReport, ...]
    inventory: Inventory | None
    tree_spec: TreeSpec = DEFAULT_TREE_SPEC
    named: NamedSweepers = EVERY_SWEEPER
    """The nodes whose sweeps count."""


class FabricObserver:
    """Holds the last observation and renews it when the inputs change."""

    def __init__(self, known_switches: KnownSwitches | None = None) -> None:
        """Start without an observation, but with the switches that a history knows."""
        self.observation: Observation | None = None
        """None if no report is usable."""
        self.problems: tuple[ParseError, ...] = ()
        """Parts of the reports that could not be used."""
        self.fabric: Fabric | None = None
        """The cables of the last observation; None without one."""
        self.used_sweeps: tuple[UsedSweep, ...] = ()
        """The sweep of each subnet that is used."""
        self.reaches: tuple[SweepReach, ...] = ()
        """How far the sweeps of named nodes reach."""
        self.sweep_findings: tuple[Finding, ...] = ()
        """The findings about sweeps, also if there is no observation."""
        self._claim_builder = ClaimBuilder()
        self._known_switches = known_switches or KnownSwitches()
        self._owners: PreviousOwners = {}
        """The node that owns each id. It keeps the id when another node claims it."""
        self._last_facts: object = None
        self._num_ahead = 0
        """The number of sweeps that are dated ahead of our clock."""
        self._previous: TopologyTree | None = None
        """The tree that gave its names to the last observation."""
        self._last_inputs: TreeInputs | None = None

    def update(
        self, evidence: TreeInputs, previous: TopologyTree | None, now: datetime | None = None
    ) -> None:
        """Infer the tree and the findings if the facts or the previous names changed.

        Args:
            evidence: the inputs of this round.
            previous: the tree whose names are carried over.
            now: the current time, with a time zone; sweeps with a later date are ignored.
        """
        if self._is_same(evidence, now) and self._is_same_previous(previous):
            return
        known = self._last_inputs, self._last_facts
        # A round that fails is not the last one: the same inputs are evaluated again.
        self._last_inputs, self._last_facts = None, None
        self._observe(evidence, previous, now)
        self._previous = previous
        self._last_inputs, self._last_facts = known

    def _observe(
        self, evidence: TreeInputs, previous: TopologyTree | None, now: datetime | None
    ) -> None:
        listed = evidence.inventory.nodes if evidence.inventory else ()
        report_claims = self._claim_builder.build_claims(
            evidence.reports,
            frozenset(node.name for node in listed),
            named=evidence.named,
            now=now,
        )
        inputs = Inputs(
            report_claims.claims,
            evidence.reports,
            evidence.inventory,
            unknown_subnets=report_claims.unknown_subnets,
            planes=evidence.tree_spec.planes,
            findings=report_claims.findings,
            doubts=report_claims.doubts,
            unknown_settings=evidence.tree_spec.unknown,
        )
        # Ages of reports and outcomes of collectors change without a new fact; the loop adds
        # their findings itself.
        self.fabric = None  # two would need twice the memory
        observed = observe_fabric(
            inputs,
            previous=previous,
            first_owners=self._owners,
            names_of_tiers=evidence.tree_spec.tier_names,
            known_switches=self._known_switches,
        )
        self.observation, self._owners = None, {}
        if observed is not None:
            self.observation, self.fabric = observed.observation, observed.split.fabric
            self._owners = index_id_owners(self.fabric)
        self.problems = report_claims.problems
        self.used_sweeps = report_claims.used_sweeps
        self.reaches = report_claims.reaches
        self.sweep_findings = report_claims.findings

    def _is_same_previous(self, previous: TopologyTree | None) -> bool:
        """Return whether `previous` changes no name.

        It is the previous tree of the last update, or the last observed tree itself.
        """
        last = self.observation.tree if self.observation is not None else None
        return previous is self._previous or (previous is not None and previous is last)

    def _is_same(self, evidence: TreeInputs, now: datetime | None) -> bool:
        last, self._last_inputs = self._last_inputs, evidence
        num_ahead, self._num_ahead = self._num_ahead, _count_ahead(evidence.reports, now)
        is_same_time = num_ahead == self._num_ahead
        if (
            is_same_time
            and last is not None
            and last.reports is evidence.reports
            and last[1:] == evidence[1:]
        ):
            return True
        listed = evidence.inventory
        # The free capacity of a node has no effect on its cables.
        nodes = (
            None
            if listed is None
            else (listed.lost, [(node.name, node.ids) for node in listed.nodes])
        )
        facts = (_extract_facts(evidence.reports), nodes, evidence.tree_spec, evidence.named)
        is_same = is_same_time and facts == self._last_facts
        self._last_facts = facts
        return is_same


def explain_unknown(observation: Observation | None, plane: str) -> str:
    """Return why no node has a place in the tree.

    Args:
        observation: the observation of this round; None if no report is usable.
        plane: the plane of the tree.
    """
    if observation is None:
        return "no usable report"
    if plane not in observation.planes:
        return f"no port is in plane {plane}; planes with ports: {', '.join(observation.planes)}"
    unknown = (row for row in observation.findings if row.kind is FindingKind.PLANE_UNKNOWN)
    return next((row.message for row in unknown), "no node could be placed")


def _count_ahead(reports: Iterable[PackedReport], now: datetime | None) -> int:
    """Return how many parts of sweeps are dated ahead of our clock: they count later."""
    return sum(
        report.sweep is not None and is_ahead(report.status.observed_at, now) for report in reports
    )


def _extract_facts(reports: Iterable[PackedReport]) -> list[object]:
    """Return the parts of reports that the tree and the plan depend on.

    These are the specs, the sweep state of agents, flapping ports, and, if a subnet has several
    sweeps, their times. Other times do not count: agents renew them every period.
    """
    reports = tuple(reports)
    sweeps: dict[str, set[str]] = {}
    for report in reports:
        if report.sweep is not None:
            sweeps.setdefault(report.sweep.subnet, set()).add(report.sweep.sweep_id)
    facts: list[object] = []
    for report in reports:
        status = report.status
        if report.sweep is not None and len(sweeps[report.sweep.subnet]) > 1:
            facts.append((report.content, status.observed_at))
        else:
            facts.append((report.content, status.sweeping, status.flapping))
    return facts
