"""Find the running pods of a gang, and slices that they make impossible."""

from __future__ import annotations

from collections.abc import Sequence

from generator.placement.cluster.snapshot import Snapshot
from generator.placement.cluster.tiers import tier_index
from generator.placement.presets import PRESETS
from generator.placement.problem.slices import IndexedPods
from generator.placement.request import PlacementRequest


def find_running_positions(
    snapshot: Snapshot, request: PlacementRequest
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...], tuple[IndexedPods, ...]]:
    """Return the positions of running pods: of the gang, per group, and with indices per group."""
    num_groups = len(request.groups)
    nothing: tuple[tuple[()], ...] = ((),) * num_groups
    ignores = PRESETS[request.preset].ignores_running_without_tiers and not request.uses_tiers
    gang = snapshot.running.get(request.gang)
    if gang is None or (ignores and request.across_islands):
        return (), nothing, nothing
    known = [pods for pods in gang.pods if pods.node in snapshot.position_of]
    positions_by_group, indexed_by_group = [], []
    for group in request.groups:
        group_pods = [pods for pods in known if num_groups == 1 or pods.group == group.name]
        positions = [(snapshot.position_of[pods.node], pods) for pods in group_pods]
        positions_by_group.append(
            tuple(sorted(node for node, pods in positions for _ in range(pods.count)))
        )
        indexed_by_group.append(
            tuple(sorted((index, node) for node, pods in positions for index in pods.indices))
        )
    all_positions = (snapshot.position_of[pods.node] for pods in known for _ in range(pods.count))
    return tuple(sorted(all_positions)), tuple(positions_by_group), tuple(indexed_by_group)


def find_stray_tier(
    snapshot: Snapshot, request: PlacementRequest, positions_by_group: Sequence[Sequence[int]]
) -> str | None:
    """Return a required tier of slices, if a running pod is outside of all domains of this tier."""
    levels = snapshot.levels
    for group, positions in zip(request.groups, positions_by_group, strict=True):
        for layer in group.slices:
            tier = 0 if layer.tier is None else tier_index(snapshot, layer.tier)
            if layer.is_indexed or not 0 < tier < levels.root:
                continue
            if any(
                levels.domain_of_unit[tier][levels.unit_of_node[tier][node]] < 0
                for node in positions
            ):
                return layer.tier
    return None
