"""The engine finds the best vector of all placements, and measures it correctly."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from generator.placement.budget import Budget
from generator.placement.presets import Preset
from generator.placement.problem.problem import build_problem
from generator.placement.request import parse_request
from generator.placement.solve.solver import solve
from tests.effort import examples
from tests.generator.placement import referee
from tests.generator.placement.referee import Scene
from tests.generator.placement.scenes import document_of, scenes, snapshot_of

STEPS = 10_000_000


def vector_of(scene: Scene, preset: Preset) -> tuple[int, ...] | None:
    """Return the vector that the engine reaches, checked against the referee's measure."""
    snapshot, request = snapshot_of(scene), parse_request(document_of(scene, preset))
    problem = build_problem(snapshot, request)
    found = solve(problem, Budget(STEPS))
    if found is None:
        return None
    assert found.is_proved
    pods = [
        _cut(
            referee.part_sizes(scene, group, len(row)), [snapshot.specs[node].name for node in row]
        )
        for group, row in zip(scene.groups, found.positions, strict=True)
    ]
    held = referee.holding(scene, pods)
    assert len(held) == 1
    measured = found.objective.vector(problem.objective_order)
    assert measured == referee.vector(scene, preset, pods, held[0])
    return measured


def _cut(sizes: list[int], nodes: list[str]) -> list[tuple[str, ...]]:
    parts = []
    for size in sizes:
        parts.append(tuple(nodes[:size]))
        nodes = nodes[size:]
    return parts


def check(scene: Scene, preset: Preset) -> None:
    if preset is Preset.KOORDINATOR and not scene.strategies:
        scene = replace(scene, strategies=((scene.root, scene.root),))
    assert vector_of(scene, preset) == referee.best_vector(scene, preset)


@pytest.mark.parametrize("preset", [Preset.OPTIMAL, Preset.KOORDINATOR])
@settings(max_examples=examples(200), deadline=None)
@given(scene=scenes(most_nodes=4))
def test_it_reaches_the_best_vector_of_all_placements(preset: Preset, scene: Scene) -> None:
    check(scene, preset)
