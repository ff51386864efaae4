"""The tree that was decided last, and the step from it to the desired one. Pure.

The change budget judges how the desired tree differs from the one that was decided last, not from
the HyperNodes that exist. So completing a plan that was interrupted, or undoing an edit by hand, is
free. The changes of the last hour (`windowSeconds` of the budget) count with those of a new plan,
so that many small plans cannot do what one plan may not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypeVar

from generator.objects.fabric import ChangeBudget
from generator.objects.tree_record import EMPTY_TREE, RecentChanges, TreeRecord
from generator.outputs.hypernode.forest import build_hypernode_tree
from generator.outputs.hypernode.model import HyperNode
from topology.model.tree import TopologyTree, Unplaced

MAX_RECENT: Final = 100_000
"""Most nodes, and most domains, that are remembered; the oldest changes are dropped. A budget that
lets more nodes move than this is no protection anyway."""
CLOCK_TOLERANCE: Final = timedelta(minutes=5)
"""Changes further ahead of our clock were recorded by a clock that was wrong."""
KeyT = TypeVar("KeyT")


def find_last_tree(record: TreeRecord | None, observed: Iterable[HyperNode]) -> TopologyTree | None:
    """Return the tree that was decided last; without a record, that of our HyperNodes.

    None if there are neither.
    """
    if record is not None and record.tree is not None:
        return record.tree if record.tree.domains else None
    ours = [hypernode for hypernode in observed if hypernode.is_ours]
    return build_hypernode_tree(ours).tree if ours else None


class PreviousTree:
    """Finds the tree whose names are carried over; an unchanged one is the identical object.

    Names come from decided trees only: when lost data comes back, the result must be the
    HyperNodes that exist.
    """

    def __init__(self) -> None:
        """Start without a tree."""
        self._source: tuple[TreeRecord | None, Sequence[HyperNode]] | None = None
        self._tree: TopologyTree | None = None

    def find(
        self,
        record: TreeRecord | None,
        observed: Sequence[HyperNode],
        *,
        desired: TopologyTree | None = None,
        tree: TopologyTree | None = None,
    ) -> TopologyTree | None:
        """Return the tree that was decided last, as `find_last_tree` does.

        Args:
            record: the last decision.
            observed: the HyperNodes that exist.
            desired: the desired tree of the last plan of this process.
            tree: the tree from which that plan was made. If the plan was decided, this tree is the
                previous tree, with its switches.
        """
        is_recorded = record is not None and record.tree is not None
        source = (record, () if is_recorded else observed)
        if source != self._source:
            self._source = source
            last = find_last_tree(record, observed)
            if last is not None and last == desired:
                last = tree
            self._tree = self._tree if last == self._tree else last
        return self._tree


NodeDomains = Mapping[str, frozenset[str]]
"""By node name the names of all domains that contain the node."""


def find_node_domains(tree: TopologyTree) -> NodeDomains:
    """Return by node the names of all domains that contain it. Cost: O(nodes times tiers)."""
    found: dict[str, frozenset[str]] = {}
    names_above: list[frozenset[str]] = [frozenset()] * len(tree.domains)
    for index in reversed(range(len(tree.domains))):
        domain = tree.domains[index]
        above = frozenset() if domain.parent is None else names_above[domain.parent]
        names_above[index] = above | {domain.name}
        found.update(dict.fromkeys(domain.nodes, names_above[index]))
    return found


class TreeStep(NamedTuple):
    """The step from the tree that was decided last to the desired one."""

    last: TopologyTree
    """Without a record, that of our HyperNodes; empty without both."""
    desired: TopologyTree
    """The desired tree, as `strip_tree` returns it."""
    recent: RecentChanges = RecentChanges()
    """Within the window of the budget."""
    is_recorded: bool = True
    """Whether the last tree is from a record."""

    @property
    def is_restoration(self) -> bool:
        """Whether nothing new is decided: the plan writes what was decided before."""
        return self.is_recorded and self.last == self.desired


def build_step(
    record: TreeRecord | None,
    desired: TopologyTree | None,
    *,
    existing: TopologyTree | None = None,
    budget: ChangeBudget,
    now: datetime,
) -> TreeStep:
    """Return the step from the record to the desired tree.

    Args:
        record: the last decision; None without one.
        desired: the tree as `strip_tree` returns it; None: unknown, the last tree stays.
        existing: the tree of our HyperNodes, which counts if no tree is recorded.
        budget: its window says how long a change counts.
        now: the current time, with a time zone.
    """
    recorded = None if record is None else record.tree
    last = recorded or existing or EMPTY_TREE
    recent = RecentChanges()
    if record is not None and budget.window_seconds:
        start_s = now.timestamp() - budget.window_seconds
        recent = RecentChanges(
            _select_since(record.recent.moved, start_s),
            _select_since(record.recent.deleted, start_s),
        )
    return TreeStep(last, desired or last, recent, is_recorded=recorded is not None)


def build_record(
    decision: TreeStep,
    *,
    moved: Iterable[str] = (),
    deleted: Iterable[tuple[int, str]] = (),
    now: datetime,
) -> TreeRecord:
    """Return the record of a decision.

    Args:
        decision: the step that is carried out.
        moved: nodes that it takes out of a domain; empty if a person approved it.
        deleted: domains that it deletes, as (tier, name); empty if a person approved it.
        now: the current time, with a time zone.
    """
    now_s = int(now.timestamp())
    recent = RecentChanges(
        _keep_newest({**decision.recent.moved, **dict.fromkeys(moved, now_s)}),
        _keep_newest({**decision.recent.deleted, **dict.fromkeys(deleted, now_s)}),
    )
    return TreeRecord(decision.desired, recent)


def add_unplaced(
    tree: TopologyTree, *, nodes: Iterable[str], unplaced: Sequence[Unplaced]
) -> TopologyTree:
    """Return a decided tree with every other node of the cluster as unplaced.

    Args:
        tree: the tree that was decided last.
        nodes: the names of the nodes of the cluster.
        unplaced: the unplaced nodes of this round's tree, with their reasons.
    """
    placed = set(tree.nodes)
    why = {row.node: row for row in unplaced}
    missing = sorted({*nodes, *why} - placed)
    rows = tuple(why.get(node, Unplaced(node, "not in the tree yet")) for node in missing)
    return replace(tree, unplaced=rows)


def with_past_times(record: TreeRecord, now: datetime) -> TreeRecord | None:
    """Return the record with the changes ahead of our clock dated now; None if there are none."""
    now_s = int(now.timestamp())
    moved, deleted = record.recent
    latest = max((*moved.values(), *deleted.values()), default=now_s)
    if latest <= now_s + CLOCK_TOLERANCE.total_seconds():
        return None
    recent = RecentChanges(
        {key: min(at_s, now_s) for key, at_s in moved.items()},
        {key: min(at_s, now_s) for key, at_s in deleted.items()},
    )
    return record._replace(recent=recent)


def _select_since(changes: Mapping[KeyT, int], start_s: float) -> dict[KeyT, int]:
    """Return the changes since a time; each was made up to a second after its recorded time."""
    return {key: at_s for key, at_s in changes.items() if at_s + 1 > start_s}


def _keep_newest(changes: Mapping[KeyT, int]) -> dict[KeyT, int]:
    if len(changes) <= MAX_RECENT:
        return dict(changes)
    return dict(sorted(changes.items(), key=lambda row: row[1])[-MAX_RECENT:])
