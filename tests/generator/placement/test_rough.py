"""Where the exact search is too much work, the answer is sound, and says that it is not proved."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings

from generator.placement.effort import Effort
from generator.placement.engine import place
from generator.placement.presets import Preset
from generator.placement.problem import build_problem
from generator.placement.request import parse_request
from generator.placement.solve import solve, solve_roughly
from tests.generator.placement import referee
from tests.generator.placement.documents import cluster, racks, request
from tests.generator.placement.referee import Scene
from tests.generator.placement.scenes import document_of, scenes, snapshot_of

MIXED = [{"name": f"g{size}", "count": size, "required": "rack"} for size in (2, 3, 4, 5, 6)]


class JumpingClock:
    """A clock that moves on by a second whenever it is read."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def __call__(self) -> float:
        self._now_s += 1.0
        return self._now_s


@settings(max_examples=100, deadline=None)
@given(scene=scenes())
def test_it_keeps_every_rule_without_proof(scene: Scene) -> None:
    problem = build_problem(snapshot_of(scene), parse_request(document_of(scene, Preset.OPTIMAL)))
    rough, best = solve_roughly(problem), solve(problem, Effort(10_000_000))
    if rough is None:
        return
    assert best is not None
    assert not rough.is_proved
    preset = problem.request.preset
    assert best.objective.vector(preset) <= rough.objective.vector(preset)
    pods = []
    for group, row in zip(scene.groups, rough.pods, strict=True):
        names = [problem.snapshot.specs[at].name for at in row]
        starts = [0]
        for size in referee.part_sizes(group, len(names)):
            starts.append(starts[-1] + size)
        cuts = pairwise(starts)
        pods.append([tuple(names[start:stop]) for start, stop in cuts])
    assert len(referee.holding(scene, pods)) == 1
    left = dict(scene.slots)
    for group, parts in zip(scene.groups, pods, strict=True):
        for node in (node for part in parts for node in part):
            left[node] -= group.need
    assert min(left.values()) >= 0


def test_it_answers_in_time_when_the_deadline_passes() -> None:
    snapshot = cluster(racks(6, 6, 6, 6, per_block=4))
    spec = request(groups=MIXED, deadline_s=0.5)
    found = place(snapshot, spec, clock=JumpingClock())
    assert found.is_feasible
    assert not found.is_proved
    exact = place(snapshot, request(groups=MIXED))
    assert exact.is_proved


def test_it_does_not_claim_that_nothing_fits_when_it_ran_out_of_time() -> None:
    spec = request(groups=MIXED, deadline_s=0.5)
    found = place(cluster(racks(5, 5)), spec, clock=JumpingClock())
    assert (found.is_feasible, found.is_proved) == (False, False)


def test_it_ignores_the_deadline_without_a_clock() -> None:
    assert place(
        cluster(racks(6, 6, 6, 6, per_block=4)), request(groups=MIXED, deadline_s=1e-9)
    ).is_proved


def test_it_reaches_a_hundred_groups_of_two_shapes_on_a_thousand_nodes() -> None:
    groups = [
        {"name": f"g{at}", "count": 5 + at % 3, "request": {"slots": 1}, "required": "rack"}
        for at in range(100)
    ]
    groups[0]["request"] = {"slots": 1, "gpu": 0}
    snapshot, spec = cluster(racks(*[20] * 50, per_block=50)), request(groups=groups, deadline_s=1)
    found = place(snapshot, spec, clock=JumpingClock())
    assert found.is_feasible
    assert sum(len(nodes) for nodes in found.assignment.values()) == 599
