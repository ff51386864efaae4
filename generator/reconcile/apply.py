"""Applies a plan: one action after the other, up to the first failure.

Each action leaves a valid cluster, so a stop needs no rollback: the next round plans again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from generator.outputs.hypernode import HyperNode
from generator.reconcile.plan import Action
from runtime.retry import Backoff
from topology.model.errors import KubeUnavailable, TopologyError

_RETRIES: Final = Backoff(first_s=5.0, limit_s=60.0)
"""Waits after a failure: a server that starts refuses writes for some seconds."""


class HyperNodeStore(Protocol):
    """Stores HyperNodes. Each call takes effect completely, or fails with a TopologyError."""

    def put(self, hypernode: HyperNode) -> bool:
        """Create or replace a HyperNode; return whether anything was written."""
        ...

    def remove(self, name: str) -> bool:
        """Delete a HyperNode; return whether it existed."""
        ...


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """The done and pending actions of a plan."""

    done: tuple[Action, ...]
    """Written actions, in the order of the plan."""
    pending: tuple[Action, ...] = ()
    """Actions that were not written; the first of them failed."""
    error: TopologyError | None = None

    @property
    def is_complete(self) -> bool:
        """Whether every action was done."""
        return self.error is None

    @property
    def num_by_op(self) -> Mapping[str, int]:
        """Return the number of done actions by operation, as fields of the log."""
        counts = Counter(action.op for action in self.done)
        return {f"num_{op.value}": num for op, num in sorted(counts.items())}


def apply_plan(
    actions: Sequence[Action],
    target: HyperNodeStore,
    *,
    on_done: Callable[[Action], None] | None = None,
) -> ApplyResult:
    """Write the actions in order and stop at the first failure.

    `on_done` is called after each written action.
    """
    for index, action in enumerate(actions):
        try:
            _apply_action(action, target)
        except TopologyError as error:
            return ApplyResult(tuple(actions[:index]), tuple(actions[index:]), error)
        if on_done is not None:
            on_done(action)
    return ApplyResult(tuple(actions))


def compute_retry_s(error: Exception, failures: int) -> float | None:
    """Return the seconds until a failed write may work; None if time alone does not mend it.

    Args:
        error: why the write failed.
        failures: failed writes in a row, with this one.
    """
    if not isinstance(error, KubeUnavailable):
        return None
    return max(error.retry_after_s or 0.0, _RETRIES.ceiling_s(failures))


def _apply_action(action: Action, target: HyperNodeStore) -> None:
    if action.object is None:
        target.remove(action.name)
    else:
        target.put(action.object)
