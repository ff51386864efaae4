"""The tree whose names are carried over to the next one: the tree that was decided last."""

from __future__ import annotations

from collections.abc import Sequence

from generator.objects.tree_record import TreeRecord
from generator.outputs.hypernode import HyperNode, build_hypernode_tree
from generator.reconcile.desired import PlannedChanges
from topology.model.tree import TopologyTree


class PreviousTree:
    """Finds the previous tree in each round; an unchanged one is the identical object.

    Names come from decided trees only: when lost data comes back, the result must be the
    HyperNodes that exist.
    """

    def __init__(self) -> None:
        """Start without a tree."""
        self._source: tuple[HyperNode, ...] = ()
        self._tree: TopologyTree | None = None

    def find(
        self,
        record: TreeRecord | None,
        observed: Sequence[HyperNode],
        *,
        planned: PlannedChanges | None = None,
        tree: TopologyTree | None = None,
    ) -> TopologyTree | None:
        """Return the previous generation's tree, None without one.

        Args:
            record: the last decision.
            observed: the HyperNodes that exist; ours count if no decision is recorded.
            planned: the last plan of this process.
            tree: the tree that it was made from. If this plan was decided, it is the previous
                tree itself, with all that HyperNodes do not show.
        """
        source = select_decided(record, observed)
        if source == self._source:
            return self._tree
        self._source = source
        if planned is not None and planned.desired == source:
            self._tree = tree
        else:
            self._tree = build_hypernode_tree(source).tree if source else None
        return self._tree


def select_decided(
    record: TreeRecord | None, observed: Sequence[HyperNode]
) -> tuple[HyperNode, ...]:
    """Return the HyperNodes that were decided last; without a record, ours that exist."""
    if record is not None and record.hypernodes is not None:
        return record.hypernodes
    return tuple(hypernode for hypernode in observed if hypernode.is_ours)
