"""The order in which nodes move between leaves, and the leaves that list each node. Pure.

A node moves in two writes: its old leaf drops it, then its new leaf takes it. In between it is in
no leaf. So the nodes of one old and one new leaf move together, and the next such group starts
when the last one has arrived. A leaf that has taken a group and must give another one away does
both in one write; `order_moves` looks for long chains of such leaves. So k moved nodes take at
most 2k writes, and a swapped pair of nodes takes three.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from generator.outputs.hypernode import HyperNode
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
