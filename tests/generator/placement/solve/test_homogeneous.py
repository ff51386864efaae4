"""Counting agrees with the search, and says if it did not finish."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from generator.placement.budget import Budget
from generator.placement.cluster.nodes import NodeSpec
from generator.placement.cluster.snapshot import build_snapshot
from generator.placement.engine import place
from generator.placement.presets import ObjectiveKey, Preset
from generator.placement.problem.objective import Objective
from generator.placement.problem.problem import Problem, build_problem
from generator.placement.problem.request_parts import assign_parts, build_parts
from generator.placement.request import parse_request
from generator.placement.solve.homogeneous import HomogeneousFinder, is_solved_by_counting
from generator.placement.solve.solver import Finder, solve
from generator.placement.solve.tree_search import TreeSearch
from tests.effort import examples
from tests.generator.placement.documents import cluster, racks, request, workers
from tests.generator.placement.referee import Layer, Leaf, Scene
from tests.generator.placement.scenes import TIERS, document_of, paths, snapshot_of, tree_of

STEPS = 10_000_000


@st.composite
def homogeneous(draw: st.DrawFn) -> Scene:
    """Draw a cluster that is too large to try every placement, and a job of equal parts."""
    found = draw(paths(most_nodes=12))
    depth = len(next(iter(found.values())))
    size, many = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    layers = (Layer(size, draw(st.sampled_from([None, None, 1, depth]))),)
    group = Leaf(
        name="g0",
        count=size * many,
        least=size * many,
        layers=draw(st.sampled_from([layers, layers, ()])),
    )
    return Scene(
        nodes=tree_of(found, TIERS[:depth]).nodes,
        paths=found,
        slots={node: draw(st.integers(0, 5)) for node in found},
        groups=(group,),
        strategies=((depth + 1, draw(st.integers(0, depth + 1))),),
    )


def both_vectors(problem: Problem) -> list[tuple[tuple[int, ...], ...]]:
    """Return the vectors per tier of both finders; empty if they find nothing."""
    counts = tuple(group.count for group in problem.request.groups)
    parts = build_parts(problem, counts, problem.strategies[0][1])
    assert is_solved_by_counting(problem, parts)
    finders: list[Finder] = [
        HomogeneousFinder(problem, parts, Budget(STEPS)),
        TreeSearch(problem, parts, Budget(STEPS)),
    ]
    rows = []
    for tier in range(problem.root + 1):
        units = problem.candidate_units(counts, tier)
        found = [finder.find_best(tier, units) if len(units) else None for finder in finders]
        rows.append(
            tuple(
                Objective(problem, assign_parts(len(counts), parts, best.parts), 0).vector(
                    problem.objective_order
                )
                if best is not None
                else ()
                for best in found
            )
        )
        if any(rows[-1]):
            break
    return rows


@pytest.mark.parametrize("preset", Preset)
@settings(max_examples=examples(40), deadline=None)
@given(scene=homogeneous())
def test_it_agrees_with_the_tree_search(preset: Preset, scene: Scene) -> None:
    problem = build_problem(snapshot_of(scene), parse_request(document_of(scene, preset)))
    counts = tuple(group.count for group in problem.request.groups)
    parts = build_parts(problem, counts, problem.strategies[0][1])
    assume(is_solved_by_counting(problem, parts))
    for counted, searched in both_vectors(problem):
        assert counted == searched


@settings(max_examples=examples(60), deadline=None)
@given(
    slots=st.lists(st.integers(1, 4), min_size=4, max_size=4),
    order=st.permutations(range(4)),
    left=st.integers(1, 6),
)
@example(slots=[2, 1, 2, 1], order=[0, 2, 1, 3], left=2)
def test_it_agrees_with_the_tree_search_on_islands_of_equal_size(
    slots: list[int], order: list[int], left: int
) -> None:
    tree = racks(2, 1, 1, 1, 1, 2, per_block=3)
    free = [*slots, *(slots[place] for place in order)]
    nodes = {f"n{at}": NodeSpec(f"n{at}", {"slots": many}) for at, many in enumerate(free)}
    asked = request(
        groups=workers(max(sum(slots) - left, 1)),
        options={"spare_islands": True},
    )
    for counted, searched in both_vectors(build_problem(build_snapshot(tree, nodes), asked)):
        assert counted == searched


@settings(max_examples=examples(60), deadline=None)
@given(scene=homogeneous())
def test_it_keeps_tiers_and_histogram_without_any_budget(scene: Scene) -> None:
    request = parse_request(document_of(scene, Preset.OPTIMAL))
    problem = build_problem(snapshot_of(scene), request)
    best, hasty = solve(problem, Budget(STEPS)), solve(problem, Budget(2))
    assert (best is None) == (hasty is None)
    if best is None or hasty is None:
        return
    assert best.is_proved
    for key in (
        ObjectiveKey.PLACED,
        ObjectiveKey.STRATEGY,
        ObjectiveKey.JOB_TIER,
        ObjectiveKey.GROUP_TIER,
        ObjectiveKey.HISTOGRAM,
    ):
        assert best.objective[key] == hasty.objective[key]
    assert best.objective.vector(problem.objective_order) <= hasty.objective.vector(
        problem.objective_order
    )


def test_it_does_not_claim_proof_when_the_budget_ends() -> None:
    snapshot = cluster(racks(*[7] * 8, per_block=8))
    problem = build_problem(snapshot, request(groups=workers(30)))
    hasty = solve(problem, Budget(3))
    assert hasty is not None
    assert not hasty.is_proved
    assert hasty.objective[ObjectiveKey.DOMAINS][1] == 5


def test_it_stays_exact_if_costs_exceed_a_machine_word() -> None:
    tree = tree_of({f"n{index}": (index // 4, index // 16, 0) for index in range(32)}, TIERS)
    nodes = {f"n{index}": NodeSpec(f"n{index}", {"slots": 40 + index % 3}) for index in range(32)}
    found = place(build_snapshot(tree, nodes), request(groups=workers(800)))
    assert found.is_proved
    assert found.objective["domains"] == {"core": 1, "spine": 2, "leaf": 5, "node": 20}
