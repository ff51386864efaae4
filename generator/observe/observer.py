"""From reports to a tree and its findings, only where the facts are others than last time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from generator.ingest.claims import Intake
from generator.ingest.inputs import Inputs
from generator.objects.inventory import Inventory
from generator.objects.tree_spec import DEFAULT_SHAPE, Shape
from generator.observe.observation import FabricMemory, Observation, observe_fabric
from topology.model.errors import ParseError
from topology.model.tree import TopologyTree
from topology.reports.compact_reports import Report


class Evidence(NamedTuple):
    """All that a tree is made of."""

    reports: tuple[Report, ...]
    inventory: Inventory | None
    shape: Shape = DEFAULT_SHAPE


class Observer:
    """The memory of what was inferred last."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self.observation: Observation | None = None
        """None where nothing usable was reported."""
        self.problems: tuple[ParseError, ...] = ()
        """What of the reports could not be used."""
        self._intake = Intake()
        self._memory = FabricMemory()
        self._facts: object = None
        self._evidence: Evidence | None = None

    def update(self, evidence: Evidence, previous: TopologyTree | None) -> None:
        """Infer the tree and the findings, if the facts are others than in the last round.

        Args:
            evidence: as it is now.
            previous: whose names are carried over.
        """
        if self._is_same(evidence):
            return
        taken = self._intake.take(evidence.reports)
        inputs = Inputs(
            taken.claims,
            evidence.reports,
            evidence.inventory,
            unknown_subnets=taken.unknown_subnets,
            planes=evidence.shape.planes,
        )
        # Ages and outcomes change without a new fact, so they are judged apart.
        self.observation = observe_fabric(
            inputs,
            previous=previous,
            first_owners=self.observation.owners if self.observation else {},
            names_of_tiers=evidence.shape.tier_names,
            memory=self._memory,
        )
        self.problems = taken.problems

    def _is_same(self, evidence: Evidence) -> bool:
        last, self._evidence = self._evidence, evidence
        if last is not None and last.reports is evidence.reports and last[1:] == evidence[1:]:
            return True
        listed = evidence.inventory.nodes if evidence.inventory else None
        # What pods leave of a node says nothing of its cables.
        nodes = None if listed is None else [(node.name, node.ids) for node in listed]
        facts = (_facts_of(evidence.reports), nodes, evidence.shape)
        is_same = facts == self._facts
        self._facts = facts
        return is_same


def why_unknown(observation: Observation | None, plane: str) -> str:
    """Return why nothing is known to be anywhere."""
    if observation is None:
        return "no usable report"
    if plane not in observation.planes:
        return f"no port is in plane {plane}; planes with ports: {', '.join(observation.planes)}"
    return "no node could be placed"


def _facts_of(reports: Iterable[Report]) -> list[object]:
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
        (report.said, report.status.observed_at)
        if report.sweep is not None and len(sweeps[report.sweep.subnet]) > 1
        else (report.said, report.status.sweeping, report.status.flapping)
        for report in reports
    ]
