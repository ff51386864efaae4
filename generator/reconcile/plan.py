"""Desired and observed HyperNodes to actions that keep the cluster valid after every single one.

Volcano's scheduler crashes on a parent that lists a missing HyperNode, and stops placing every
topology job while a HyperNode has two parents. So actions come in five passes:

1. **release**: HyperNodes give up children that move, stay without parent or are missing; a list
   that would become empty holds the placeholder. An update that only shrinks is done here at once.
2. **leaves**: new HyperNodes of nodes only; nothing lists them yet.
3. **raise**: HyperNodes whose tier rises, top-down, so that no parent is at or below its child.
4. **settle**: bottom-up, every other create and update; within a tier those that add come last.
5. **delete**: top-down, when nobody lists the HyperNode any more.

After pass 1 every link between two HyperNodes that stay is a desired one, and links below a
doomed HyperNode lead to doomed ones of a lower tier. Hence later passes may add links in any
state without making a second parent or a cycle, and stopping anywhere leaves a state from which
planning anew arrives at the same end.

A HyperNode that keeps its name but changes its tier is updated in place: Volcano's cache moves it
to its new tier on the update, while delete and create would tear the tree apart around it. While
a whole tree changes its depth, a tier name is used at two tiers for some writes; only deleting
the tree first would avoid that.

In a damaged cluster a link that was missing, cyclic or doubled stays so until the action that
repairs it; pass 1 comes first for that reason, and no action adds to the damage.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from generator.outputs.hypernode import (
    PLACEHOLDER,
    HyperNode,
    Member,
    MemberType,
    render_manifest,
    find_structure_problems,
)
from generator.reconcile.conflicts import without_conflicts
from topology.model.errors import InvariantError
from topology.model.ids import natural_key

_PLACEHOLDER_MEMBERS: Final = (Member(MemberType.NODE, PLACEHOLDER),)


class Op(StrEnum):
    """What an action does to one HyperNode."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Action:
    """One write; valid only after those before it."""

    op: Op
    name: str
    tier: int
    """The tier after the write; of a deleted HyperNode the one it had."""
    reason: str
    """Short, lower-case, for people and logs."""
    object: HyperNode | None
    """The whole HyperNode after the write, None for a delete."""


def plan_changes(desired: Sequence[HyperNode], observed: Sequence[HyperNode]) -> tuple[Action, ...]:
    """Return ordered actions that turn what is observed of ours into what is desired.

    Objects without our source label are never touched; where they stand in the way,
    `conflicts.find_conflicts` tells what is left out. Equal sets give no action. The order of
    the inputs does not matter. Cost: O(n log n) in members.

    Raises:
        InvariantError: the desired set is no forest of non-empty HyperNodes.
    """
    broken = find_structure_problems(desired)
    if broken:
        raise InvariantError(f"desired HyperNodes: {broken[0]}")
    planner = _Planner(without_conflicts(desired, observed), observed)
    planner.release()
    planner.create_leaves()
    planner.raise_tiers()
    planner.write_final()
    planner.delete()
    return tuple(planner.actions)


def render_action(action: Action) -> dict[str, Any]:
    """Return the row that `toponaut plan -o json` prints for an action."""
    return {
        "op": action.op.value,
        "name": action.name,
        "tier": action.tier,
        "reason": action.reason,
        "object": None if action.object is None else render_manifest(action.object),
    }


class _Planner:
    """The state of the cluster as the actions so far leave it, and those actions."""

    def __init__(self, wanted: Mapping[str, HyperNode], observed: Iterable[HyperNode]) -> None:
        self.actions: list[Action] = []
        self._wanted = wanted
        self._parents = {child: found.name for found in wanted.values() for child in found.children}
        self._current: dict[str, HyperNode] = {}
        self._held: set[str] = set()
        """What foreign HyperNodes list: deleting it would leave them with a missing child."""
        for found in observed:
            self._current[found.name] = found
            if not found.is_ours:
                self._held.update(found.children)

    def release(self) -> None:
        for name in _top_down(found for found in self._current.values() if found.is_ours):
            old, goal = self._current[name], self._wanted.get(name)
            if goal is not None and self._only_shrinks(old, goal):
                self._put(goal, _describe_update(old, goal))
                continue
            kept = tuple(member for member in old.members if self._is_member_allowed(member, old))
            if len(kept) < len(old.members):
                reason = _describe_release(old, kept, present=self._current)
                self._put(
                    replace(old, members=kept or _PLACEHOLDER_MEMBERS, num_inexact_members=0),
                    reason,
                )

    def create_leaves(self) -> None:
        for name in _bottom_up(self._wanted.values()):
            if name not in self._current and not self._wanted[name].children:
                self._put(self._wanted[name], "new domain")

    def raise_tiers(self) -> None:
        for name in _top_down(self._wanted.values()):
            old, goal = self._current.get(name), self._wanted[name]
            if old is None or goal.tier <= old.tier:
                continue
            if not self._is_ready(goal):
                members = old.members or _PLACEHOLDER_MEMBERS
                goal = replace(goal, members=members)
            self._put(goal, _describe_update(old, goal))

    def write_final(self) -> None:
        rows = [
            (goal.tier, self._adds(goal), natural_key(goal.name), goal)
            for goal in self._wanted.values()
        ]
        for *_, goal in sorted(rows, key=lambda row: row[:3]):
            old = self._current.get(goal.name)
            self._put(goal, "new domain" if old is None else _describe_update(old, goal))

    def delete(self) -> None:
        gone = [
            found
            for found in self._current.values()
            if found.is_ours and found.name not in self._wanted and found.name not in self._held
        ]
        for name in _top_down(gone):
            old = self._current.pop(name)
            self.actions.append(Action(Op.DELETE, name, old.tier, "no longer in the tree", None))

    def _put(self, goal: HyperNode, reason: str) -> None:
        old = self._current.get(goal.name)
        if old is not None and old.matches(goal):
            return
        op = Op.CREATE if old is None else Op.UPDATE
        self.actions.append(Action(op, goal.name, goal.tier, reason, goal))
        self._current[goal.name] = goal

    def _only_shrinks(self, old: HyperNode, goal: HyperNode) -> bool:
        return (
            old.tier == goal.tier
            and set(goal.members) <= set(old.members)
            and all(child in self._current for child in goal.children)
        )

    def _is_member_allowed(self, member: Member, parent: HyperNode) -> bool:
        """Return whether a parent that is not final yet may go on listing a member."""
        if member.type is MemberType.NODE:
            return parent.name in self._wanted or parent.name not in self._held
        child = self._current.get(member.name)
        if child is None:
            return False
        if member.name in self._wanted:
            return self._parents.get(member.name) == parent.name
        # A doomed child leaves with its parent's last update or deletion, top-down by tier.
        return child.tier < parent.tier and parent.name not in self._held

    def _is_ready(self, goal: HyperNode) -> bool:
        """Return whether all children exist on lower tiers already."""
        return all(
            child in self._current and self._current[child].tier < goal.tier
            for child in goal.children
        )

    def _adds(self, goal: HyperNode) -> bool:
        old = self._current.get(goal.name)
        return old is None or not set(goal.members) <= set(old.members)


def _top_down(hypernodes: Iterable[HyperNode]) -> list[str]:
    rows = [(-found.tier, natural_key(found.name), found.name) for found in hypernodes]
    return [name for *_, name in sorted(rows)]


def _bottom_up(hypernodes: Iterable[HyperNode]) -> list[str]:
    rows = [(found.tier, natural_key(found.name), found.name) for found in hypernodes]
    return [name for *_, name in sorted(rows)]


def _describe_release(
    old: HyperNode, kept: tuple[Member, ...], *, present: Mapping[str, HyperNode]
) -> str:
    lost = [member for member in old.members if member not in set(kept)]
    missing = [member for member in lost if member.name not in present]
    if len(missing) == len(lost):
        return f"drop missing children: -{len(lost)}"
    return f"release children before they move: -{len(lost)}"


def _describe_update(old: HyperNode, new: HyperNode) -> str:
    """Return what an update changes, as `tier changed: 1 to 2, members changed: +2 -1`."""
    parts = []
    if old.tier != new.tier:
        parts.append(f"tier changed: {old.tier} to {new.tier}")
    elif old.tier_name != new.tier_name:
        parts.append("tier name changed")
    before, after = set(old.members), set(new.members)
    added, removed = len(after - before), len(before - after) + old.num_inexact_members
    if added or removed:
        parts.append(f"members changed: +{added} -{removed}")
    elif len(old.members) != len(new.members):
        parts.append("members listed twice")
    return ", ".join(parts) or "labels changed"
