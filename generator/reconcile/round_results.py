"""The results of rounds, placement queries and Events, for metrics, Events and the log.

Each result is a frozen value. Producers do not know their listeners. A listener returns quickly
and never raises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from generator.jobs.gang_ranks import GangAudit
from generator.objects.fabric import Condition, HeldPlan
from generator.objects.outputs import OutputStatus
from generator.outputs.hypernode.model import HyperNode
from generator.placement.cluster.snapshot import Snapshot
from generator.reconcile.hypernode_plan import Action
from topology.model.errors import ParseError
from topology.model.facts import Finding
from topology.model.tree import TopologyTree


@dataclass(frozen=True, slots=True)
class RoundOutcome:
    """What one round saw, decided and wrote."""

    duration_s: float
    is_failed: bool = False
    """Whether the round read nothing: after an unexpected error, or because the cluster is not
    listed yet. Then only the duration and the snapshot are meaningful."""
    generation: int = 0
    """Grows with each new tree; 0 before the first."""
    tree: TopologyTree | None = None
    """The tree of this round; None while the fabric is unknown."""
    decided: TopologyTree | None = None
    """The tree that was decided last, before this round; without a record, that of our HyperNodes.
    None without both."""
    snapshot: Snapshot | None = None
    """The snapshot that answers placement queries."""
    num_reports: int = 0
    """Usable reports, parts of sweeps included."""
    num_refused_reports: int = 0
    """Reports that could not be used."""
    findings: tuple[Finding, ...] = ()
    """About the fabric; the status and the history have them."""
    gang_ranks: Mapping[str, GangAudit | None] = field(default_factory=dict)
    """The ring of each gang; None if it has no two nodes, or its ranks are unknown."""
    gang_findings: tuple[Finding, ...] = ()
    """About gangs. They come and go with jobs, so neither the status nor the history has them."""
    problems: tuple[ParseError, ...] = ()
    """Inputs, or parts of them, that could not be used, and writes of the status that failed."""
    why_unknown: str = ""
    """Why the fabric is unknown; empty while it is known."""
    observed_hypernodes: tuple[HyperNode, ...] = ()
    """All HyperNodes at the start of the round, foreign ones included."""
    conditions: tuple[Condition, ...] = ()
    """The conditions of the Fabric object after the round."""
    held: HeldPlan | None = None
    """The held plan after the round."""
    outputs: tuple[OutputStatus, ...] = ()
    """The result of each output."""
    completed_actions: tuple[Action, ...] = ()
    """Writes of this round, in order."""
    failed_action: Action | None = None
    """The write that failed, which ended the plan."""
    completed_plan: str = ""
    """Hash of the plan that this round wrote completely; empty if there is none."""
    is_approved: bool = False
    """Whether a person had approved the plan of this round."""

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        """The findings about the fabric, then those about gangs."""
        return self.findings + self.gang_findings


OnRound = Callable[[RoundOutcome], None]
"""Called once at the end of each round, in its thread."""


class QueryResult(StrEnum):
    """How a placement query ended."""

    PLACED = "placed"
    INFEASIBLE = "infeasible"
    REFUSED = "refused"
    """The request is malformed, or its sender has no permission."""
    UNAVAILABLE = "unavailable"
    """No tree is known yet."""
    FAILED = "failed"


OnQuery = Callable[[QueryResult, float], None]
"""Called once at the end of each query, with its duration in seconds, in its thread."""


class EventResult(StrEnum):
    """How the write of a Kubernetes Event ended."""

    WRITTEN = "written"
    FAILED = "failed"
    DROPPED = "dropped"
    """The queue was full, or the same change kept repeating."""
