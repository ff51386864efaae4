"""From reports to a tree and its findings, only where the facts are others than last time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from generator.ingest.claims import ClaimBuilder
from generator.ingest.inputs import Inputs
from generator.objects.inventory import Inventory
from generator.objects.tree_spec import DEFAULT_TREE_SPEC, TreeSpec
from generator.observe.observation import ObservationCache, Observation, observe_fabric
from topology.model.errors import ParseError
from topology.model.tree import TopologyTree
from topology.reports.compact_reports import Report


class TreeInputs(NamedTuple):
    """All that a tree is made of."""

    reports: tuple[Report, ...]
    inventory: Inventory | None
    tree_spec: TreeSpec = DEFAULT_TREE_SPEC


class FabricObserver:
    """The memory of what was inferred last."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self.observation: Observation | None = None
        """None where nothing usable was reported."""
        self.problems: tuple[ParseError, ...] = ()
        """What of the reports could not be used."""
        self._claim_builder = ClaimBuilder()
        self._cache = ObservationCache()
        self._last_facts: object = None
        self._last_inputs: TreeInputs | None = None

    def update(self, evidence: TreeInputs, previous: TopologyTree | None) -> None:
        """Infer the tree and the findings, if the facts are others than in the last round.

        Args:
            evidence: as it is now.
            previous: whose names are carried over.
        """
        if self._is_same(evidence):
            return
        taken = self._claim_builder.build_claims(evidence.reports)
        inputs = Inputs(
            taken.claims,
            evidence.reports,
            evidence.inventory,
            unknown_subnets=taken.unknown_subnets,
            planes=evidence.tree_spec.planes,
        )
        # Ages and outcomes change without a new fact, so they are judged apart.
        self.observation = observe_fabric(
            inputs,
            previous=previous,
            first_owners=self.observation.owners if self.observation else {},
            names_of_tiers=evidence.tree_spec.tier_names,
            memory=self._cache,
        )
        self.problems = taken.problems

    def _is_same(self, evidence: TreeInputs) -> bool:
        last, self._last_inputs = self._last_inputs, evidence
        if last is not None and last.reports is evidence.reports and last[1:] == evidence[1:]:
            return True
        listed = evidence.inventory.nodes if evidence.inventory else None
        # What pods leave of a node says nothing of its cables.
        nodes = None if listed is None else [(node.name, node.ids) for node in listed]
        facts = (_extract_facts(evidence.reports), nodes, evidence.tree_spec)
        is_same = facts == self._last_facts
        self._last_facts = facts
        return is_same


def explain_unknown(observation: Observation | None, plane: str) -> str:
    """Return why nothing is known to be anywhere."""
    if observation is None:
        return "no usable report"
    if plane not in observation.planes:
        return f"no port is in plane {plane}; planes with ports: {', '.join(observation.planes)}"
    return "no node could be placed"


def _extract_facts(reports: Iterable[Report]) -> list[object]:
    """Return all that the tree and the plan depend on, of reports.

    That is specs, who takes part in sweeping and how, ports that flap, and times where they
    choose between sweeps.

    Agents renew the times of unchanged facts every period.
    """
    reports = tuple(reports)
    sweeps: dict[str, set[str]] = {}
    for report in reports:
        if report.sweep is not None:
            sweeps.setdefault(report.sweep.subnet, set()).add(report.sweep.sweep_id)
    return [
        (report.content, report.status.observed_at)
        if report.sweep is not None and len(sweeps[report.sweep.subnet]) > 1
        else (report.content, report.status.sweeping, report.status.flapping)
        for report in reports
    ]
