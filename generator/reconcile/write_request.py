"""The plan of one round, what it is judged by, and what was written of it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple

from generator.ingest.inputs import SweepDoubt
from generator.objects.pods import Gang
from generator.objects.tree_record import TreeRecord
from generator.outputs.hypernode import HyperNode
from generator.reconcile.debounce import NO_DEBOUNCE, DebounceConfig
from generator.reconcile.desired import PlannedChanges
from generator.reconcile.guard import Coverage
from generator.reconcile.plan import Action
from topology.model.errors import ParseError
from topology.model.tree import TopologyTree

_MAX_SHOWN: Final = 3


def always_leader() -> bool:
    """Return True: a folder has one writer, this process."""
    return True


class WriteSettings(NamedTuple):
    """How HyperNodes are written."""

    debounce: DebounceConfig = NO_DEBOUNCE
    clock: Callable[[], float] = lambda: 0.0
    """Monotonic, in seconds."""
    is_dry_run: bool = False
    """Whether planned changes are logged and not written."""
    is_leader: Callable[[], bool] = always_leader
    """Whether this replica is the leader, which alone writes."""


class WriteRequest(NamedTuple):
    """The planned changes of one round, and what they are judged by."""

    planned: PlannedChanges
    observed: tuple[HyperNode, ...]
    coverage: Coverage = Coverage()
    record: TreeRecord | None = None
    """The last decision."""
    existing: TopologyTree | None = None
    """The tree of our HyperNodes; it counts if no tree is recorded."""
    is_removal: bool = False
    """Whether all HyperNodes are removed because the Fabric object says so: a person decided."""
    is_decision_only: bool = False
    """Whether no HyperNode is written: other outputs follow the decision."""
    gangs: Collection[Gang] = ()
    doubts: Sequence[SweepDoubt] = ()
    """What speaks against the sweeps that the plan follows from."""

    @property
    def actions(self) -> tuple[Action, ...]:
        """The plan."""
        return self.planned.actions

    @property
    def conflicts(self) -> tuple[ParseError, ...]:
        """Conflicts with foreign HyperNodes."""
        return self.planned.problems

    @property
    def conflict_text(self) -> str:
        """The first conflicts as one line, for a condition."""
        return "; ".join(conflict.problem for conflict in self.conflicts[:_MAX_SHOWN])


class WriteResult(NamedTuple):
    """What one round has written."""

    completed_actions: tuple[Action, ...] = ()
    failed_action: Action | None = None
    completed_plan: str = ""
    """Hash of the plan if it was written completely, else empty."""
    is_approved: bool = False
    """Whether a person had approved the plan."""
    retry_s: float | None = None
    """Seconds until a write that failed may work; None if none failed, or if time alone does not
    mend it."""
