"""The real schedulers on the mixes: the tier and the leaves of each gang, against `optimal`.

Each scheduler runs on 64 nodes with Toponaut's output for it. It is asked for one domain of each
tier in turn, from the lowest, and so places each gang at the lowest tier that it finds.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from tests.live.gang_days import run_day, scene_of
from tests.live.mixes import MIXES
from tests.live.schedulers import SCHEDULERS

NUM_NODES: Final = 64
LOAD: Final = 0.8
"""Share of the cluster that gangs use at once."""


class LiveResult(NamedTuple):
    """The decisions of one scheduler on one mix."""

    scheduler: str
    mix: str
    num_gangs: int
    """Those that fit, by `optimal`."""
    num_placed: int
    num_lowest: int
    """At the lowest tier with room."""
    num_leaves: int
    """Of the gangs that the scheduler has placed."""
    least_leaves: int
    """Leaves that `optimal` uses for the same gangs."""


def measure_live(scheduler: str, mix: str, num_gangs: int) -> LiveResult:
    """Place so many gangs of a mix; the oldest end when the cluster is full.

    Skips, as a test does, if the scheduler is not built.
    """
    gangs = MIXES[mix](num_gangs)
    with (
        tempfile.TemporaryDirectory() as folder,
        SCHEDULERS[scheduler].start(Path(folder)) as cluster,
    ):
        rows = run_day(cluster, scene_of(Path(folder) / "scene", NUM_NODES), gangs, load=LOAD)
    fit = [row for row in rows if row.engine_tier is not None]
    placed = [row for row in fit if row.scheduler_tier is not None]
    return LiveResult(
        scheduler,
        mix,
        len(fit),
        len(placed),
        sum(row.scheduler_tier == row.engine_tier for row in placed),
        sum(row.num_leaves or 0 for row in placed),
        sum(row.least_leaves or 0 for row in placed),
    )
