"""Small clusters and traces for replays."""

from __future__ import annotations

from collections.abc import Sequence

from generator.jobs.cluster import SlotCluster
from generator.simulation.replay.replay import ReplayResult, build_tree_of_shape, run_replay
from generator.simulation.replay.run_names import FIRST_FIT, Backfill
from generator.simulation.replay.strategies import make_strategy
from generator.simulation.replay.trace import Job

SLOTS = 8


def cluster(shape: str = "2x2x2", slots: int = SLOTS) -> SlotCluster:
    """Return an empty cluster."""
    return SlotCluster(build_tree_of_shape(shape), slots)


def jobs(*rows: tuple[float, int, float]) -> tuple[Job, ...]:
    """Return jobs of (submitted, whole nodes, seconds)."""
    return tuple(Job(submit_s, nodes * SLOTS, duration_s) for submit_s, nodes, duration_s in rows)


def replayed(
    listed: Sequence[Job],
    *,
    name: str = FIRST_FIT,
    shape: str = "2x2x2",
    backfill: Backfill = Backfill.EASY,
) -> ReplayResult:
    """Return the replay of jobs by a strategy."""
    empty = cluster(shape)
    return run_replay(listed, empty, make_strategy(name, empty), backfill=backfill)
