"""Plans the ordered actions from observed to desired HyperNodes. Pure.

The cluster is valid after every single action. Volcano's scheduler crashes on a parent that lists
a missing HyperNode, places no topology job while a HyperNode has two parents, and merges leaves
that share a node. So the actions come in five passes:

1. **release**: HyperNodes drop children that move, stay without a parent or are missing, and nodes
   that another HyperNode of ours rightly has; a member list that would become empty gets the
   placeholder. An update that only removes is done here, unless a node of it moves.
2. **nodes**: nodes move from leaf to leaf, and leaves that contain only nodes are created; no
   parent lists them yet. `order_moves` has the order.
3. **raise**: update HyperNodes whose tier rises, top-down, so no parent is at or below its child.
4. **final writes**: bottom-up, all other creates and updates; within a tier, updates that add
   members come last.
5. **delete**: top-down, once no parent lists the HyperNode.

After pass 1, every parent-child link between two HyperNodes that stay is a desired one, and the
links below a HyperNode that will be deleted lead to HyperNodes of lower tiers that will be deleted
too. So later passes can add links in any state without creating a second parent or a cycle. A
leaf takes nodes only after the leaf that had them dropped them, in all passes. After a stop at any
point, a new plan arrives at the same result.

A HyperNode that keeps its name but changes its tier is updated in place: Volcano's cache moves it
to its new tier on the update, while delete and create would break the tree around it. While a
whole tree changes its depth, two tiers have the same tier name for a few writes; only deleting
the tree first would avoid that.

In a damaged cluster, a missing, cyclic or doubled link remains until the action that repairs it.
That is why pass 1 comes first. No action adds damage.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from generator.outputs.hypernode.lint import find_structure_problems
from generator.outputs.hypernode.model import (
    PLACEHOLDER,
    HyperNode,
    Member,
    MemberType,
    render_manifest,
    sort_members,
)
from generator.reconcile.conflicts import without_conflicts
from topology.model.errors import InvariantError
from topology.model.ids import natural_key


class NodeMove(NamedTuple):
    """Nodes that move from one leaf to another."""

    source: str
    target: str
    nodes: frozenset[str]


class NodeParents:
    """Our HyperNodes that list each node, kept up to date with each write."""

    def __init__(self, hypernodes: Iterable[HyperNode]) -> None:
        """Index the nodes of our HyperNodes; nodes stay in foreign ones."""
        self._by_node: dict[str, set[str]] = {}
        for hypernode in hypernodes:
            if hypernode.is_ours:
                self._add(hypernode)

    def replace(self, old: HyperNode | None, new: HyperNode | None) -> None:
        """Record that a HyperNode was written; None: it did not exist before, or does not now."""
        if old is not None and old.is_ours:
            for node in old.nodes:
                self._by_node.get(node, set()).discard(old.name)
        if new is not None:
            self._add(new)

    def of(self, node: str) -> list[str]:
        """Return the HyperNodes that list a node, in natural order."""
        return sorted(self._by_node.get(node, ()), key=natural_key)

    def has_parent(self, node: str) -> bool:
        """Return whether a HyperNode of ours lists the node."""
        return bool(self._by_node.get(node))

    def _add(self, hypernode: HyperNode) -> None:
        for node in hypernode.nodes:
            self._by_node.setdefault(node, set()).add(hypernode.name)


def group_moves(moves: Mapping[tuple[str, str], Iterable[str]]) -> list[NodeMove]:
    """Return the moves by (source, target) as values, in natural order of both."""
    order = sorted(moves, key=lambda pair: (natural_key(pair[0]), natural_key(pair[1])))
    return [NodeMove(*pair, frozenset(moves[pair])) for pair in order]


def order_moves(moves: Iterable[NodeMove]) -> list[list[NodeMove]]:
    """Return chains in which the target of each move is the source of the next.

    A chain of n moves takes n + 1 writes. Chains start at leaves that give more groups away than
    they take, as far as there are any. Cost: O(moves log moves).
    """
    waiting: dict[str, list[NodeMove]] = {}
    surplus: dict[str, int] = {}
    for move in sorted(moves, key=lambda move: natural_key(move.target), reverse=True):
        waiting.setdefault(move.source, []).append(move)
        surplus[move.source] = surplus.get(move.source, 0) + 1
        surplus[move.target] = surplus.get(move.target, 0) - 1
    starts = sorted(waiting, key=lambda name: (surplus[name] <= 0, natural_key(name)))
    chains = []
    for start in starts:
        while waiting[start]:
            chain = [waiting[start].pop()]
            while waiting.get(chain[-1].target):
                chain.append(waiting[chain[-1].target].pop())
            chains.append(chain)
    return chains


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
    taken: HyperNode | None = None
    """The HyperNode of another owner that the write takes over, as it was when that was planned."""


def plan_changes(desired: Sequence[HyperNode], observed: Sequence[HyperNode]) -> tuple[Action, ...]:
    """Return ordered actions that turn our observed HyperNodes into the desired ones.

    Objects without our source label are never changed, and those that were deleted are only
    emptied; `conflicts.find_conflicts` returns what is left out because of them. Equal sets give no
    action. The order of the inputs does not matter. Cost: O(n log n) in members.

    Raises:
        InvariantError: the desired set is not a forest of non-empty HyperNodes.
    """
    problems = find_structure_problems(desired)
    if problems:
        raise InvariantError(f"desired HyperNodes: {problems[0]}")
    planner = _Planner(without_conflicts(desired, observed), observed)
    planner.release()
    planner.move_nodes()
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


def find_moves(actions: Sequence[Action], observed: Iterable[HyperNode]) -> list[NodeMove]:
    """Return the moves of nodes from leaf to leaf; an empty name is outside of every leaf.

    The moves are in natural order of both leaves. Cost: O(nodes).

    Args:
        actions: the whole plan.
        observed: the HyperNodes that exist before the plan.
    """
    state = {row.name: row for row in observed if row.is_ours}
    state |= {action.name: action.taken for action in actions if action.taken is not None}
    before = _locate_nodes(state.values())
    for action in actions:
        state.pop(action.name, None)
        if action.object is not None:
            state[action.name] = action.object
    after = _locate_nodes(state.values())
    moves: dict[tuple[str, str], list[str]] = {}
    for node in sorted({**before, **after}):
        places = before.get(node, ""), after.get(node, "")
        if places[0] != places[1]:
            moves.setdefault(places, []).append(node)
    return group_moves(moves)


def _locate_nodes(hypernodes: Iterable[HyperNode]) -> dict[str, str]:
    """Return the HyperNode that lists each node."""
    return {node: row.name for row in hypernodes for node in row.nodes if node != PLACEHOLDER}


class _Planner:
    """The actions so far, and the state of the cluster after them."""

    def __init__(self, desired: Mapping[str, HyperNode], observed: Iterable[HyperNode]) -> None:
        self.actions: list[Action] = []
        self._desired = desired
        self._parents = {
            child: hypernode.name for hypernode in desired.values() for child in hypernode.children
        }
        self._goal_nodes = {name: frozenset(goal.nodes) for name, goal in desired.items()}
        self._goals_of_node: dict[str, list[str]] = {}
        """By node the desired HyperNodes that list it: one, or none for a node that is gone."""
        for name, nodes in self._goal_nodes.items():
            for node in nodes:
                self._goals_of_node.setdefault(node, []).append(name)
        self._current: dict[str, HyperNode] = {}
        self._listed_by_foreign: set[str] = set()
        """Children of foreign HyperNodes, which are not deleted: a child would be missing there."""
        for hypernode in observed:
            self._current[hypernode.name] = hypernode
            if not hypernode.is_ours:
                self._listed_by_foreign.update(hypernode.children)
        self._node_parents = NodeParents(self._current.values())

    def release(self) -> None:
        """Pass 1: drop the members that HyperNodes may no longer list, top down."""
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
                self._put(_with_members(old, remaining), reason)

    def move_nodes(self) -> None:
        """Pass 2: move nodes from leaf to leaf, and create the leaves that are still absent."""
        targets = (name for name in self._desired if self._is_plain_leaf(name))
        for chain in order_moves(move for name in targets for move in self._find_moves(name)):
            self._drop_nodes(chain[0])
            for move, onward in zip_longest(chain, chain[1:]):
                self._put_leaf(move.target, move.nodes, onward.nodes if onward else frozenset())
        for name in _bottom_up(self._desired.values()):
            if name not in self._current and not self._desired[name].children:
                self._put(self._desired[name], "new domain")

    def raise_tiers(self) -> None:
        """Pass 3: raise the tiers of existing HyperNodes, top down.

        A HyperNode whose children do not all exist on lower tiers keeps its old members for now.
        """
        for name in _top_down(self._desired.values()):
            old, goal = self._current.get(name), self._desired[name]
            if old is None or goal.tier <= old.tier:
                continue
            if self._is_ready(goal):
                self._fill(goal)
            else:
                interim = replace(goal, members=old.members or _PLACEHOLDER_MEMBERS)
                self._fill(interim)

    def write_final(self) -> None:
        """Pass 4: write every HyperNode that is not yet as desired, bottom up."""
        # A leaf that takes nodes comes first: the leaf that has them drops them just before.
        rows = [
            (
                goal.tier,
                not self._find_moves(goal.name),
                self._adds(goal),
                natural_key(goal.name),
                goal,
            )
            for goal in self._desired.values()
        ]
        for *_, goal in sorted(rows, key=lambda row: row[:4]):
            self._fill(goal)

    def delete(self) -> None:
        """Pass 5: delete our HyperNodes that are no longer in the tree, top down."""
        obsolete = [
            hypernode
            for hypernode in self._current.values()
            if hypernode.is_ours
            and hypernode.name not in self._desired
            and not hypernode.is_terminating
            and hypernode.name not in self._listed_by_foreign
        ]
        for name in _top_down(obsolete):
            old = self._current.pop(name)
            self._node_parents.replace(old, None)
            self.actions.append(Action(Op.DELETE, name, old.tier, "no longer in the tree", None))

    def _put(self, goal: HyperNode, reason: str) -> None:
        old = self._current.get(goal.name)
        if old is not None and old.matches(goal):
            return
        op = Op.CREATE if old is None else Op.UPDATE
        self.actions.append(Action(op, goal.name, goal.tier, reason, goal))
        self._current[goal.name] = goal
        self._node_parents.replace(old, goal)

    def _fill(self, goal: HyperNode) -> None:
        """Write a HyperNode; the leaves that still list its nodes drop them group by group."""
        moves = self._find_moves(goal.name, goal)
        if goal.children:
            for move in moves:
                self._drop_nodes(move)
            moves = []
        awaited = frozenset(node for move in moves for node in move.nodes)
        for move in moves:
            self._drop_nodes(move)
            awaited -= move.nodes
            self._write(_without_nodes(goal, awaited))
        if not moves:
            self._write(goal)

    def _write(self, goal: HyperNode) -> None:
        old = self._current.get(goal.name)
        self._put(goal, "new domain" if old is None else _describe_update(old, goal))

    def _find_moves(self, name: str, goal: HyperNode | None = None) -> list[NodeMove]:
        """Return the nodes that a desired HyperNode must take from others, a move per source."""
        moves: dict[tuple[str, str], list[str]] = {}
        for node in self._goal_nodes[name] if goal is None else goal.nodes:
            for parent in self._node_parents.of(node):
                if parent != name and not self._is_goal(node, parent):
                    moves.setdefault((parent, name), []).append(node)
        return group_moves(moves)

    def _drop_nodes(self, move: NodeMove) -> None:
        """Take nodes out of the leaf that lists them, before another leaf takes them."""
        reason = f"release nodes before they move: -{len(move.nodes)}"
        if self._is_plain_leaf(move.source):
            self._put_leaf(move.source, frozenset(), move.nodes, reason)
        else:
            self._put(_without_nodes(self._current[move.source], move.nodes), reason)

    def _put_leaf(
        self, name: str, taken: frozenset[str], dropped: frozenset[str], reason: str = ""
    ) -> None:
        """Write a leaf that does not rise, or create it; nodes on their way out may stay in it.

        New nodes join at once, and nodes without a place in the tree leave at once.

        Args:
            name: the leaf.
            taken: the nodes that join the leaf now, and that no other leaf lists any more.
            dropped: the nodes that leave the leaf now, before another leaf takes them.
            reason: the reason of an update; empty: it follows from what changes.
        """
        old, goal = self._current.get(name), self._desired[name]
        held = frozenset(old.nodes) if old else frozenset()
        fresh = {node for node in self._goal_nodes[name] if not self._node_parents.has_parent(node)}
        kept = {node for node in held - dropped if node in self._goals_of_node}
        nodes = kept | fresh | taken
        if nodes != self._goal_nodes[name]:
            members = sort_members(Member(MemberType.NODE, node) for node in nodes)
            goal = _with_members(goal, members)
        if old is None:
            reason = "new domain"
        elif not reason:
            reason = _describe_update(old, goal)
        self._put(goal, reason)

    def _is_plain_leaf(self, name: str) -> bool:
        """Return whether a desired leaf can be written at once: it is new, or does not rise.

        After pass 1 its parent stays above it, and all that it may still list will be deleted.
        """
        old, goal = self._current.get(name), self._desired.get(name)
        if goal is None or goal.children:
            return False
        return old is None or old.tier >= goal.tier

    def _is_goal(self, node: str, name: str) -> bool:
        return node in self._goal_nodes.get(name, ())

    def _only_shrinks(self, old: HyperNode, goal: HyperNode) -> bool:
        moving = (node for node in old.nodes if not self._is_goal(node, old.name))
        return (
            old.tier == goal.tier
            and set(goal.members) <= set(old.members)
            and all(child in self._current for child in goal.children)
            and not any(self._is_moving(node) for node in moving)
        )

    def _is_moving(self, node: str) -> bool:
        """Return whether a node has a place in the tree, and is in no right leaf yet."""
        goals = self._goals_of_node.get(node)
        return goals is not None and not set(goals).intersection(self._node_parents.of(node))

    def _is_member_allowed(self, member: Member, parent: HyperNode) -> bool:
        """Return whether a parent that is not final yet may still list a member."""
        if member.type is MemberType.NODE:
            return self._is_node_allowed(member.name, parent)
        child = self._current.get(member.name)
        if child is None:
            return False
        if member.name in self._desired:
            return self._parents.get(member.name) == parent.name
        # A child that will be deleted leaves with its parent's last update or delete, top-down.
        # If one of them was deleted already, there is no such write, or it may be too late.
        is_kept = not (
            parent.name in self._listed_by_foreign or parent.is_terminating or child.is_terminating
        )
        return child.tier < parent.tier and is_kept

    def _is_node_allowed(self, node: str, parent: HyperNode) -> bool:
        """Return whether a node may stay for now: where it is right, or until it moves."""
        if self._is_goal(node, parent.name):
            return True
        if self._is_moving(node):
            return self._node_parents.of(node)[0] == parent.name
        is_elsewhere = node in self._goals_of_node or self._node_parents.of(node)[:1] not in (
            [],
            [parent.name],
        )
        is_kept = parent.name in self._desired or parent.name not in self._listed_by_foreign
        return is_kept and not is_elsewhere

    def _is_ready(self, goal: HyperNode) -> bool:
        """Return whether all children already exist on lower tiers."""
        return all(
            child in self._current and self._current[child].tier < goal.tier
            for child in goal.children
        )

    def _adds(self, goal: HyperNode) -> bool:
        old = self._current.get(goal.name)
        return old is None or not set(goal.members) <= set(old.members)


def _with_members(hypernode: HyperNode, members: tuple[Member, ...]) -> HyperNode:
    """Return a HyperNode with other members; an empty list becomes the placeholder."""
    return replace(
        hypernode, members=members or _PLACEHOLDER_MEMBERS, num_inexact_members=0, selectors=()
    )


def _without_nodes(hypernode: HyperNode, nodes: Collection[str]) -> HyperNode:
    dropped = {Member(MemberType.NODE, node) for node in nodes}
    return _with_members(
        hypernode, tuple(member for member in hypernode.members if member not in dropped)
    )


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
