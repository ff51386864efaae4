"""The gangs of Kueue's scheduler benchmark, each placed by a preset and by `optimal` at its place.

Both get the same snapshot, and the gang runs where the preset has put it. So single decisions are
compared: a preset does not pay for what an earlier decision of its own has cost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from generator.placement.answer import Placement
from generator.placement.cluster.nodes import NodeSpec
from generator.placement.cluster.snapshot import build_snapshot, with_running, without_running
from generator.placement.engine import as_running_gang, place
from generator.placement.presets import Preset
from generator.simulation.replay.replay import build_tree_of_shape
from tests.bench.gangs import MILLICORES, MIX, SHAPE, draw_mix, request_of

NUM_RUNNING: Final = 1080
"""Gangs that run at once: about 80 % of the CPUs."""


class MixResult(NamedTuple):
    """The decisions of one preset."""

    preset: str
    num_gangs: int
    num_placed: int
    num_lowest: int
    """Of the gangs placed: at the tier that `optimal` chooses, or lower; a node counts as a rack,
    because most of these schedulers know no smaller domain."""
    num_racks: int
    least_racks: int
    """Racks that `optimal` uses for the same gangs."""


def measure_mix(preset: Preset, num_gangs: int) -> MixResult:
    """Place so many gangs; the oldest end when too many run."""
    tree = build_tree_of_shape(SHAPE)
    snapshot = build_snapshot(
        tree, {name: NodeSpec(name, {"cpu": MILLICORES}) for name in tree.nodes}
    )
    racks = [domain for domain in tree.domains if domain.tier == 1]
    rack_of = {node: rack.name for rack in racks for node in tree.nodes_of(rack)}
    rank = {name: at for at, name in enumerate((*tree.tiers, "cluster"))} | {"node": 0}
    requests = {kind.name: request_of(kind, preset) for kind in MIX}
    optimal = {kind.name: request_of(kind, Preset.OPTIMAL) for kind in MIX}
    running: deque[str] = deque()
    num_placed = num_lowest = num_racks = least_racks = 0
    for at, kind in enumerate(draw_mix(num_gangs)):
        if len(running) >= NUM_RUNNING:
            snapshot = without_running(snapshot, running.popleft())
        request = replace(requests[kind.name], gang=str(at))
        found = place(snapshot, request)
        best = place(snapshot, replace(optimal[kind.name], gang=str(at)))
        if not found.is_feasible:
            continue
        num_placed += 1
        num_lowest += rank[found.tier or ""] <= rank[best.tier or ""]
        num_racks += _count_racks(found, rack_of)
        least_racks += _count_racks(best, rack_of)
        snapshot = with_running(snapshot, as_running_gang(request, found))
        running.append(request.gang)
    return MixResult(preset.value, num_gangs, num_placed, num_lowest, num_racks, least_racks)


def _count_racks(placement: Placement, rack_of: Mapping[str, str]) -> int:
    return len(
        {rack_of[node] for row in placement.assignment.values() for node in row if node is not None}
    )
