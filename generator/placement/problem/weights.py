"""Weights of a problem: traffic between groups, node weights, and sort columns of units."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from generator.placement.cluster.capacity import pair_weights
from generator.placement.cluster.levels import IntArray
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.presets import PRESETS, ObjectiveKey
from generator.placement.request import PlacementRequest, RoleAffinity, SortRule

NO_AFFINITY = RoleAffinity()


class NodeWeights(NamedTuple):
    """Weights of nodes; lighter nodes are preferred."""

    weights: tuple[int, ...]
    """Distinct weights, the heaviest first."""
    weight_index: IntArray
    """Per node: index of its weight."""


def find_traffic_pairs(
    request: PlacementRequest, shape_of: tuple[int, ...]
) -> tuple[tuple[int, int, int], ...]:
    """Return (shape, shape, weight) of groups that communicate with, or repel, each other."""
    if not request.traffic and request.roles == NO_AFFINITY:
        return ()
    names = [group.name for group in request.groups]
    shapes = dict(zip(names, shape_of, strict=True))
    return tuple(
        (shapes[first], shapes[second], weight) for first, second, weight in pair_weights(request)
    )


def build_node_weights(snapshot: Snapshot, request: PlacementRequest) -> NodeWeights | None:
    """Return the node weights of a request; None if it has none or the preset ignores them."""
    weight_of_node = dict(request.options.node_weights)
    if not weight_of_node or all(
        term.key is not ObjectiveKey.NODE_WEIGHTS for term in PRESETS[request.preset].order
    ):
        return None
    node_weights = [weight_of_node.get(spec.name, 0) for spec in snapshot.specs]
    weights = sorted(set(node_weights), reverse=True)
    return NodeWeights(tuple(weights), np.array([weights.index(weight) for weight in node_weights]))


def build_sort_column(snapshot: Snapshot, rule: SortRule) -> tuple[IntArray, ...]:
    """Return per tier the values by which a rule sorts its units; an unknown resource counts 0."""
    quantities = snapshot.quantities(rule.resource, counts_free=rule.counts_free)
    sign = -1 if rule.is_descending else 1
    return tuple(sign * np.add.reduceat(quantities, starts) for starts in snapshot.levels.starts)
