"""Carrying out a plan, one action after the other, up to the first failure.

Each action leaves a valid cluster, so stopping needs no undoing: the next pass plans anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from generator.outputs.hypernode import HyperNode
from generator.reconcile.plan import Action
from topology.model.errors import TopologyError


class HyperNodeStore(Protocol):
    """Where HyperNodes live. Each call is done whole or fails with a TopologyError."""

    def put(self, hypernode: HyperNode) -> bool:
        """Create or replace a HyperNode; return whether anything was written."""
        ...

    def remove(self, name: str) -> bool:
        """Delete a HyperNode; return whether it was there."""
        ...


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """How far a plan got."""

    done: tuple[Action, ...]
    """In the order of the plan."""
    pending: tuple[Action, ...] = ()
    """Not done; the first of them is the one that failed."""
    error: TopologyError | None = None

    @property
    def is_complete(self) -> bool:
        """Whether every action was done."""
        return self.error is None


def apply_plan(
    actions: Sequence[Action],
    target: HyperNodeStore,
    *,
    on_done: Callable[[Action], None] | None = None,
) -> ApplyResult:
    """Write the actions in order and stop at the first that fails.

    `on_done` is called after each action that was written.
    """
    for at, action in enumerate(actions):
        try:
            _apply_action(action, target)
        except TopologyError as error:
            return ApplyResult(tuple(actions[:at]), tuple(actions[at:]), error)
        if on_done is not None:
            on_done(action)
    return ApplyResult(tuple(actions))


def _apply_action(action: Action, target: HyperNodeStore) -> None:
    if action.object is None:
        target.remove(action.name)
    else:
        target.put(action.object)
