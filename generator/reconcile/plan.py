"""Plans the ordered actions from observed to desired HyperNodes. Pure.

The cluster is valid after every single action. Volcano's scheduler crashes on a parent that lists
a missing HyperNode, and places no topology job while a HyperNode has two parents. So the actions
come in five passes:

1. **release**: HyperNodes drop children that move, stay without a parent or are missing; a member
   list that would become empty gets the placeholder. An update that only removes is done here.
2. **leaves**: create HyperNodes that contain only nodes; no parent lists them yet.
3. **raise**: update HyperNodes whose tier rises, top-down, so no parent is at or below its child.
4. **final writes**: bottom-up, all other creates and updates; within a tier, updates that add
   members come last.
5. **delete**: top-down, once no parent lists the HyperNode.

After pass 1, every parent-child link between two HyperNodes that stay is a desired one, and the
links below a HyperNode that will be deleted lead to HyperNodes of lower tiers that will be deleted
too. So later passes can add links in any state without creating a second parent or a cycle. After
a stop at any point, a new plan arrives at the same result.

A HyperNode that keeps its name but changes its tier is updated in place: Volcano's cache moves it
to its new tier on the update, while delete and create would break the tree around it. While a
whole tree changes its depth, two tiers have the same tier name for a few writes; only deleting
the tree first would avoid that.

In a damaged cluster, a missing, cyclic or doubled link remains until the action that repairs it.
That is why pass 1 comes first. No action adds damage.
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
    find_structure_problems,
    render_manifest,
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
    """One write; valid only after the actions before it."""

    op: Op
    name: str
    tier: int
    """The tier after the write; for a delete, the tier before it."""
    reason: str
    """Short, lower-case, for people and logs."""
    object: HyperNode | None
    """The whole HyperNode after the write, None for a delete."""


def plan_changes(desired: Sequence[HyperNode], observed: Sequence[HyperNode]) -> tuple[Action, ...]:
    """Return ordered actions that turn our observed HyperNodes into the desired ones.

    Objects without our source label are never changed; `conflicts.find_conflicts` returns what
    is left out because of them. Equal sets give no action. The order of the inputs does not
    matter. Cost: O(n log n) in members.

    Raises:
        InvariantError: the desired set is not a forest of non-empty HyperNodes.
    """
    problems = find_structure_problems(desired)
    if problems:
        raise InvariantError(f"desired HyperNodes: {problems[0]}")
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
    """The actions so far, and the state of the cluster after them."""

    def __init__(self, desired: Mapping[str, HyperNode], observed: Iterable[HyperNode]) -> None:
        self.actions: list[Action] = []
        self._desired = desired
        self._parents = {
            child: hypernode.name for hypernode in desired.values() for child in hypernode.children
        }
        self._current: dict[str, HyperNode] = {}
        self._listed_by_foreign: set[str] = set()
        """Children of foreign HyperNodes, which are not deleted: a child would be missing there."""
        for hypernode in observed:
            self._current[hypernode.name] = hypernode
            if not hypernode.is_ours:
                self._listed_by_foreign.update(hypernode.children)

    def release(self) -> None:
        for name in _top_down(
            hypernode for hypernode in self._current.values() if hypernode.is_ours
        ):
            old, goal = self._current[name], self._desired.get(name)
            if goal is not None and self._only_shrinks(old, goal):
                self._put(goal, _describe_update(old, goal))
                continue
            remaining = tuple(
                member for member in old.members if self._is_member_allowed(member, old)
            )
            if len(remaining) < len(old.members):
                reason = _describe_release(old, remaining, present=self._current)
                self._put(
                    replace(old, members=remaining or _PLACEHOLDER_MEMBERS, num_inexact_members=0),
                    reason,
                )

    def create_leaves(self) -> None:
        for name in _bottom_up(self._desired.values()):
            if name not in self._current and not self._desired[name].children:
                self._put(self._desired[name], "new domain")

    def raise_tiers(self) -> None:
        for name in _top_down(self._desired.values()):
            old, goal = self._current.get(name), self._desired[name]
            if old is None or goal.tier <= old.tier:
                continue
            if not self._is_ready(goal):
                members = old.members or _PLACEHOLDER_MEMBERS
                goal = replace(goal, members=members)
            self._put(goal, _describe_update(old, goal))

    def write_final(self) -> None:
        rows = [
            (goal.tier, self._adds(goal), natural_key(goal.name), goal)
            for goal in self._desired.values()
        ]
        for *_, goal in sorted(rows, key=lambda row: row[:3]):
            old = self._current.get(goal.name)
            self._put(goal, "new domain" if old is None else _describe_update(old, goal))

    def delete(self) -> None:
        obsolete = [
            hypernode
            for hypernode in self._current.values()
            if hypernode.is_ours
            and hypernode.name not in self._desired
            and hypernode.name not in self._listed_by_foreign
        ]
        for name in _top_down(obsolete):
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
        """Return whether a parent that is not final yet may still list a member."""
        if member.type is MemberType.NODE:
            return parent.name in self._desired or parent.name not in self._listed_by_foreign
        child = self._current.get(member.name)
        if child is None:
            return False
        if member.name in self._desired:
            return self._parents.get(member.name) == parent.name
        # A child that will be deleted leaves with its parent's last update or delete, top-down.
        return child.tier < parent.tier and parent.name not in self._listed_by_foreign

    def _is_ready(self, goal: HyperNode) -> bool:
        """Return whether all children already exist on lower tiers."""
        return all(
            child in self._current and self._current[child].tier < goal.tier
            for child in goal.children
        )

    def _adds(self, goal: HyperNode) -> bool:
        old = self._current.get(goal.name)
        return old is None or not set(goal.members) <= set(old.members)


def _top_down(hypernodes: Iterable[HyperNode]) -> list[str]:
    rows = [
        (-hypernode.tier, natural_key(hypernode.name), hypernode.name) for hypernode in hypernodes
    ]
    return [name for *_, name in sorted(rows)]


def _bottom_up(hypernodes: Iterable[HyperNode]) -> list[str]:
    rows = [
        (hypernode.tier, natural_key(hypernode.name), hypernode.name) for hypernode in hypernodes
    ]
    return [name for *_, name in sorted(rows)]


def _describe_release(
    old: HyperNode, remaining: tuple[Member, ...], *, present: Mapping[str, HyperNode]
) -> str:
    dropped = [member for member in old.members if member not in set(remaining)]
    missing = [member for member in dropped if member.name not in present]
    if len(missing) == len(dropped):
        return f"drop missing children: -{len(dropped)}"
    return f"release children before they move: -{len(dropped)}"


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
