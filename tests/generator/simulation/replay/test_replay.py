"""Replays: the start and the nodes of each job, and no slot is used twice."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from generator.jobs.cluster import UniformPods, split_into_pods
from generator.simulation.replay.replay import JobStart, build_tree_of_shape, is_shape, run_replay
from generator.simulation.replay.run_names import BEST_FIT, FIRST_FIT, Backfill
from generator.simulation.replay.strategies import (
    OptimalOptions,
    best_fit,
    first_fit,
    make_strategy,
)
from generator.simulation.replay.trace import Job
from tests.effort import examples
from tests.generator.simulation.replay.scenes import SLOTS, cluster, jobs, replayed
from topology.model.errors import ConfigError

OPTIMAL = "optimal"


def starts(listed: tuple[Job, ...], backfill: Backfill) -> dict[float, float]:
    """Return when each job started, by its duration, which is its name here."""
    found = replayed(listed, backfill=backfill).starts
    return {start.job.duration_s: start.start_s for start in found}


# Eight nodes: the first job takes six for 100 s, the second asks for all eight, then small ones.
QUEUE = jobs((0, 6, 100), (1, 8, 50), (2, 2, 30), (3, 1, 400))


def test_no_job_overtakes_without_backfill() -> None:
    assert starts(QUEUE, Backfill.NONE) == {100: 0, 50: 100, 30: 150, 400: 150}


def test_jobs_overtake_that_do_not_delay_the_first() -> None:
    assert starts(QUEUE, Backfill.EASY) == {100: 0, 30: 2, 50: 100, 400: 150}


def test_any_job_that_fits_can_overtake() -> None:
    assert starts(QUEUE, Backfill.ANY) == {100: 0, 30: 2, 400: 32, 50: 432}


def test_it_ends_jobs_before_it_starts_others_of_the_same_instant() -> None:
    assert starts(jobs((0, 8, 10), (10, 8, 20)), Backfill.NONE) == {10: 0, 20: 10}


def test_it_records_the_state_of_the_cluster() -> None:
    samples = replayed(jobs((0, 3, 10))).samples
    first = samples[0]
    assert (first.time_s, first.used, first.free_nodes) == (0, 3 * SLOTS, 5)
    assert first.largest == (2, 4)
    assert (samples[-1].time_s, samples[-1].used) == (10, 0)


def started(name: str, *rows: tuple[float, int, float]) -> JobStart:
    return replayed(jobs(*rows), name=name).starts[-1]


@pytest.mark.parametrize("name", [BEST_FIT, OPTIMAL])
def test_it_uses_the_leaf_that_first_fit_splits(name: str) -> None:
    rows = ((0.0, 1, 90.0), (1.0, 2, 80.0))
    blind, aware = started(FIRST_FIT, *rows), started(name, *rows)
    assert (blind.height, blind.leaves) == (2, 2)
    assert (aware.height, aware.leaves) == (1, 1)
    assert (blind.least_height, blind.least_leaves) == (1, 1)


@pytest.mark.parametrize("name", [FIRST_FIT, BEST_FIT, OPTIMAL])
def test_it_packs_small_jobs_on_a_node(name: str) -> None:
    found = replayed((Job(0, 4, 50), Job(1, 4, 60), Job(2, 8, 70)), name=name)
    assert [start.height for start in found.starts] == [0, 0, 0]
    assert found.samples[1].free_nodes == 7


def test_best_fit_uses_the_tightest_domain() -> None:
    full = cluster("2x2x4")
    full.take_slots(first_fit(full, UniformPods(5, SLOTS)), SLOTS)
    assert list(best_fit(full, UniformPods(3, SLOTS))) == [5, 6, 7]
    assert list(best_fit(full, UniformPods(6, SLOTS))) == [8, 9, 10, 11, 12, 13]


PODS = [
    pytest.param(1, UniformPods(1, 1), id="one GPU"),
    pytest.param(8, UniformPods(1, 8), id="a whole node"),
    pytest.param(12, UniformPods(2, 6), id="a node and a half"),
    pytest.param(64, UniformPods(8, 8), id="eight nodes"),
    pytest.param(13, UniformPods(13, 1), id="a prime"),
]


@pytest.mark.parametrize(("gpus", "pods"), PODS)
def test_it_splits_a_job_into_equal_pods(gpus: int, pods: UniformPods) -> None:
    assert split_into_pods(gpus, SLOTS) == pods


@settings(max_examples=examples(20))
@given(
    st.lists(
        st.tuples(st.integers(0, 60), st.sampled_from([1, 4, 8, 16, 24, 64]), st.integers(0, 40)),
        max_size=8,
    ),
    st.sampled_from([FIRST_FIT, BEST_FIT, OPTIMAL]),
    st.sampled_from(list(Backfill)),
)
def test_it_starts_every_job_once_and_never_uses_a_slot_twice(
    rows: list[tuple[int, int, int]], name: str, backfill: Backfill
) -> None:
    listed = tuple(sorted(Job(float(at), gpus, float(long)) for at, gpus, long in rows))
    found = replayed(listed, name=name, backfill=backfill)
    assert sorted(start.job for start in found.starts) == list(listed)
    assert found.num_refused == 0
    assert all(start.start_s >= start.job.submit_s for start in found.starts)
    assert all(0 <= sample.used <= 8 * SLOTS for sample in found.samples)
    assert not found.samples or found.samples[-1].used == 0
    # Jobs that start together may be moved to lower tiers than had room for them one by one.
    assert name == OPTIMAL or all(start.height >= start.least_height for start in found.starts)
    if backfill is Backfill.NONE:
        times = [start.start_s for start in found.starts]
        assert times == sorted(times)


@settings(max_examples=examples(15))
@given(st.lists(st.sampled_from([1, 2, 3, 5, 8]), min_size=1, max_size=6))
@example(sizes=[1, 5, 3, 1, 3])
def test_the_engine_reaches_the_lowest_tier_with_room_or_a_lower_one(sizes: list[int]) -> None:
    found = replayed(jobs(*((at, size, 3.5) for at, size in enumerate(sizes))), name=OPTIMAL)
    assert all(start.height <= start.least_height for start in found.starts)


def test_it_names_the_nodes_of_a_shape_by_their_positions() -> None:
    tree = build_tree_of_shape("2x3x2")
    assert (tree.tiers, len(tree.nodes)) == (("leaf", "spine"), 12)
    assert tree.nodes[:3] == ("node-1-1-1", "node-1-1-2", "node-1-2-1")


@pytest.mark.parametrize("text", ["8", "2x", "ax2", "./2x2", "tree.json"])
def test_it_treats_as_a_file(text: str) -> None:
    assert not is_shape(text)


@pytest.mark.parametrize("text", ["0x2", "0x0x0", "2x2x2x2x2x2", "1x1000000", "9" * 400 + "x2"])
def test_it_refuses_as_a_shape(text: str) -> None:
    assert is_shape(text)
    with pytest.raises(ConfigError, match="expected 2 to 5 numbers from 1 to 999999"):
        build_tree_of_shape(text)
    with pytest.raises(ConfigError, match="at most 200000 nodes"):
        build_tree_of_shape("1000x1000")


def test_it_refuses_an_unknown_strategy() -> None:
    with pytest.raises(ValueError, match="worst-fit"):
        make_strategy("worst-fit", cluster())


# One after the other the job of six nodes finds none but torn leaves in both spines.
TOGETHER = jobs((0, 2, 50), (0, 3, 60), (0, 5, 70), (0, 6, 80))


@pytest.mark.parametrize(("is_joint", "leaves"), [(True, 6), (False, 7)])
def test_it_plans_jobs_of_one_instant_jointly(is_joint: bool, leaves: int) -> None:  # noqa: FBT001 - a case
    empty = cluster("2x2x4")
    found = run_replay(
        TOGETHER, empty, make_strategy(OPTIMAL, empty, options=OptimalOptions(is_joint=is_joint))
    )
    assert sum(start.leaves for start in found.starts) == leaves
    assert all(start.start_s == 0 for start in found.starts)
    assert (empty.num_free, int(empty.free.min())) == (16 * SLOTS, SLOTS)


def test_it_gives_no_job_a_higher_tier_to_help_others() -> None:
    heights = []
    for is_joint in (True, False):
        empty = cluster("2x2x4")
        found = run_replay(
            TOGETHER,
            empty,
            make_strategy(OPTIMAL, empty, options=OptimalOptions(is_joint=is_joint)),
        )
        heights.append([start.height for start in found.starts])
    assert all(one <= other for one, other in zip(*heights, strict=True))
