"""Answer one request under several presets, and measure every answer by the same keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from generator.placement.answer import Placement
from generator.placement.budget import Budget
from generator.placement.cluster.gang_view import view_for
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.engine import place
from generator.placement.presets import ObjectiveKey, Preset
from generator.placement.problem.objective import Objective
from generator.placement.problem.preemption import find_evictable, without_evictable
from generator.placement.problem.problem import build_problem
from generator.placement.request import PlacementRequest

NO_COUNTS: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PresetResult:
    """The answer of one preset, measured by the keys of `optimal`."""

    preset: Preset
    placement: Placement
    domains_used: Mapping[str, int]
    """Per tier, finest first: domains that the pods use."""
    slots_left: Mapping[str, int]
    """Per tier, finest first: slots of the scarcest shape that stay free in those domains."""


def compare_presets(
    snapshot: Snapshot,
    request: PlacementRequest,
    presets: Iterable[Preset],
    *,
    clock: Callable[[], float] | None = None,
) -> tuple[PresetResult, ...]:
    """Return one answer per preset, in order; each has the request's full deadline."""
    return tuple(
        _place_with_preset(snapshot, replace(request, preset=preset), clock) for preset in presets
    )


def _place_with_preset(
    snapshot: Snapshot, request: PlacementRequest, clock: Callable[[], float] | None
) -> PresetResult:
    placement = place(snapshot, request, clock=clock)
    if not placement.is_feasible:
        return PresetResult(request.preset, placement, NO_COUNTS, NO_COUNTS)
    values = _measure_as_optimal(snapshot, request, placement)
    tiers = snapshot.levels.tiers[:-1]
    domains = zip(reversed(tiers), values[ObjectiveKey.DOMAINS], strict=True)
    return PresetResult(
        request.preset,
        placement,
        MappingProxyType(dict(reversed(list(domains)))),
        MappingProxyType(dict(zip(tiers, values[ObjectiveKey.FRAGMENTATION], strict=True))),
    )


def _measure_as_optimal(
    snapshot: Snapshot, request: PlacementRequest, placement: Placement
) -> Objective:
    """Return the objective of a placement under the preset `optimal`."""
    view = view_for(snapshot, request.gang, request.priority, exclusive=request.exclusive)
    evictable = find_evictable(view, request, Budget()) if placement.victims else None
    cluster = view if evictable is None else without_evictable(view, evictable)
    problem = build_problem(cluster, replace(request, preset=Preset.OPTIMAL), evictable)
    pods = [
        [snapshot.position_of[node] for node in nodes if node is not None]
        for nodes in placement.assignment.values()
    ]
    return Objective(problem, pods, 0)


def render_comparison(results: Iterable[PresetResult]) -> list[dict[str, Any]]:
    """Return the results as JSON documents: the measures, and the answer of `toponaut place`."""
    return [
        {
            "preset": result.preset.value,
            "tier": result.placement.tier,
            "domains": dict(result.domains_used),
            "left": dict(result.slots_left),
            "victims": list(result.placement.victims),
            "placement": result.placement.render(),
        }
        for result in results
    ]
