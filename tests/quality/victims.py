"""Pods to preempt for a gang on a full cluster, against the fewest that are enough.

Each cluster is full of gangs of lower priority, half of which end when they lose a pod. The fewest
victims are those that `optimal` proves; a case without a proof does not count. The gang prefers a
leaf: `topologyFirst` may preempt more pods for a lower tier.
"""

from __future__ import annotations

import random  # noqa: TID251 - seeded: the same clusters in every run
from dataclasses import replace
from typing import Any, Final, NamedTuple

from generator.placement.answer import Placement
from generator.placement.cluster.nodes import NodeSpec
from generator.placement.cluster.snapshot import Snapshot, build_snapshot, with_running
from generator.placement.engine import as_running_gang, place
from generator.placement.presets import Preset
from generator.placement.request import PlacementRequest, parse_request
from generator.simulation.replay.replay import build_tree_of_shape
from topology.model.tree import API_VERSION

SHAPE: Final = "2x4x4"
SLOTS: Final = 8
FEWEST: Final = "fewestVictims"
NEAREST: Final = "topologyFirst"
_SIZES: Final = (1, 1, 2, 4, 8, 16, 32)


class VictimResult(NamedTuple):
    """The victims of one preset."""

    preset: str
    num_cases: int
    num_placed: int
    num_victims: int
    """With the policy `fewestVictims`."""
    num_for_topology: int
    """With the policy `topologyFirst`."""
    least_victims: int


def draw_cluster(seed: int) -> Snapshot:
    """Return a cluster that is full of gangs of priority 0 to 2."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    tree = build_tree_of_shape(SHAPE)
    snapshot = build_snapshot(tree, {name: NodeSpec(name, {"slots": SLOTS}) for name in tree.nodes})
    at = 0
    while True:
        count = rng.choice(_SIZES)
        request = replace(_parse(Preset.OPTIMAL, count, "leaf"), gang=f"old-{at}")
        found = place(snapshot, request)
        if not found.is_feasible:
            return snapshot
        gang = as_running_gang(request, found)
        at += 1
        keeps_all = count if rng.random() < 0.5 else None
        gang = replace(gang, priority=rng.randrange(3), min_pods=keeps_all)
        snapshot = with_running(snapshot, gang)


def measure_victims(preset: Preset, num_cases: int) -> VictimResult:
    """Place one gang of a higher priority on each cluster."""
    num = num_placed = num_victims = num_for_topology = least_victims = 0
    for seed in range(num_cases):
        snapshot = draw_cluster(seed)
        count = random.Random(seed).choice((2, 4, 8, 16))  # noqa: S311 - no secret
        best = place(snapshot, _parse(Preset.OPTIMAL, count, "spine", FEWEST))
        if not best.is_feasible or not best.is_proved:
            continue
        num += 1
        few = place(snapshot, _parse(preset, count, "spine", FEWEST))
        near = place(snapshot, _parse(preset, count, "spine", NEAREST))
        if few.is_feasible and near.is_feasible:
            num_placed += 1
            num_victims += _count_pods(few)
            num_for_topology += _count_pods(near)
            least_victims += _count_pods(best)
    return VictimResult(preset.value, num, num_placed, num_victims, num_for_topology, least_victims)


def _count_pods(placement: Placement) -> int:
    pods = placement.objective.get("victim_pods", 0)
    assert isinstance(pods, int)
    return pods


def _parse(preset: Preset, count: int, tier: str, policy: str = "") -> PlacementRequest:
    """Return the request of a gang that fills the cluster, or of one that preempts."""
    spec: dict[str, Any] = {
        "preset": preset.value,
        "required": tier,
        "groups": [{"name": "main", "count": count, "request": {"slots": 4 if policy else 1}}],
    }
    if policy:
        spec |= {"preferred": ["leaf"], "priority": 9, "preemption": policy}
    document = {"apiVersion": API_VERSION, "kind": "PlacementRequest", "spec": spec}
    return parse_request(document)
