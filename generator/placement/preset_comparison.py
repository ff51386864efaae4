"""One request under several presets: the answers, and what each is worth by the same measures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from generator.placement.answer import Placement, render_placement
from generator.placement.cluster.snapshot import Snapshot, seen_by
from generator.placement.engine import place
from generator.placement.presets import Key, Preset
from generator.placement.problem.objective import Objective, measure
from generator.placement.problem.preemption import evictable, freed
from generator.placement.problem.problem import build_problem
from generator.placement.request import PlacementRequest

NOTHING: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Compared:
    """The answer of one preset, measured as the others are."""

    preset: Preset
    placement: Placement
    domains: Mapping[str, int]
    """Per tier, finest first: domains that the pods use."""
    left: Mapping[str, int]
    """Per tier, finest first: slots of the largest pod left in those domains."""


def compare(
    snapshot: Snapshot,
    request: PlacementRequest,
    presets: Iterable[Preset],
    *,
    clock: Callable[[], float] | None = None,
) -> tuple[Compared, ...]:
    """Return the answers of presets in their order; each has the request's deadline to itself."""
    return tuple(_compared(snapshot, replace(request, preset=preset), clock) for preset in presets)


def _compared(
    snapshot: Snapshot, request: PlacementRequest, clock: Callable[[], float] | None
) -> Compared:
    placement = place(snapshot, request, clock=clock)
    if not placement.is_feasible:
        return Compared(request.preset, placement, NOTHING, NOTHING)
    values = _measured(snapshot, request, placement).values
    tiers = snapshot.levels.tiers[:-1]
    domains = zip(reversed(tiers), values[Key.DOMAINS], strict=True)
    return Compared(
        request.preset,
        placement,
        MappingProxyType(dict(reversed(list(domains)))),
        MappingProxyType(dict(zip(tiers, values[Key.FRAGMENTATION], strict=True))),
    )


def _measured(snapshot: Snapshot, request: PlacementRequest, placement: Placement) -> Objective:
    """Return a placement's objective under one and the same preset."""
    seen = seen_by(snapshot, request.gang, request.priority)
    victims = evictable(seen, request) if placement.victims else None
    room = seen if victims is None else freed(seen, victims)
    problem = build_problem(room, replace(request, preset=Preset.OPTIMAL), victims)
    pods = [
        [snapshot.position[node] for node in nodes if node is not None]
        for nodes in placement.assignment.values()
    ]
    return measure(problem, pods, 0)


def render_compared(rows: Iterable[Compared]) -> list[dict[str, Any]]:
    """Return the rows as documents: the measures, and the answer of `toponaut place`."""
    return [
        {
            "preset": row.preset.value,
            "tier": row.placement.tier,
            "domains": dict(row.domains),
            "left": dict(row.left),
            "victims": list(row.placement.victims),
            "placement": render_placement(row.placement),
        }
        for row in rows
    ]
