"""The results of rounds, placement calls and Events, for metrics, Events and the log.

Each is one frozen value. Producers do not know their listeners; a listener returns soon and never
raises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from generator.objects.fabric import Condition, HeldPlan
from generator.outputs.hypernode import HyperNode
from generator.placement.cluster.snapshot import Snapshot
from generator.reconcile.plan import Action
from topology.model.errors import ParseError
from topology.model.facts import Finding
from topology.model.tree import TopologyTree


@dataclass(frozen=True, slots=True)
class RoundOutcome:
    """What one round saw, decided and wrote."""

    duration_s: float
    is_failed: bool = False
    """Whether it saw nothing: by an error that nobody foresaw, or since nothing is known yet. All
    else but its duration then says nothing."""
    generation: int = 0
    """Grows with each tree that is published; 0 before the first."""
    tree: TopologyTree | None = None
    """As seen now; None while the fabric is not known."""
    snapshot: Snapshot | None = None
    """That placement is answered from."""
    num_reports: int = 0
    """That could be read, parts of sweeps among them."""
    num_refused_reports: int = 0
    """That could not."""
    findings: tuple[Finding, ...] = ()
    problems: tuple[ParseError, ...] = ()
    """Inputs, or parts of them, that could not be used, and writes of the status that failed."""
    why_unknown: str = ""
    """Why the fabric is unknown; empty while it is known."""
    observed_hypernodes: tuple[HyperNode, ...] = ()
    """As they stood when the round began, foreign ones among them."""
    conditions: tuple[Condition, ...] = ()
    """Of the Fabric object, after the round."""
    held: HeldPlan | None = None
    completed_actions: tuple[Action, ...] = ()
    """Writes of this round, in their order."""
    failed_action: Action | None = None
    """The write that failed, which ended the plan."""
    completed_plan: str = ""
    """Hash of the plan that this round carried out whole; empty where it wrote none."""
    is_approved: bool = False
    """Whether a person had approved the plan that was carried out."""


OnRound = Callable[[RoundOutcome], None]
"""Called once at the end of each round, in its thread."""


class QueryResult(StrEnum):
    """How a call for a placement ended."""

    PLACED = "placed"
    INFEASIBLE = "infeasible"
    REFUSED = "refused"
    """The request makes no sense, or its sender may not ask."""
    UNAVAILABLE = "unavailable"
    """No tree was known."""
    FAILED = "failed"


OnQuery = Callable[[QueryResult, float], None]
"""Called once at the end of each call, with the seconds that it took, in its thread."""


class EventResult(StrEnum):
    """What became of a Kubernetes Event."""

    WRITTEN = "written"
    FAILED = "failed"
    DROPPED = "dropped"
    """The queue was full, or the same thing kept turning."""
