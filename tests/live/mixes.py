"""Gangs in the proportions of published workloads, for the live schedulers.

Pods of a gang are equal: that is what a job of either workload has, and what Kueue places as one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from generator.simulation.replay.trace import draw_philly_jobs
from tests.bench.gangs import draw_mix
from tests.live.gangs import NODE_MILLICORES, Gang

_GPUS_OF_NODE: Final = 8
_SCALE: Final = 8
"""The jobs are as large for this cluster as for those of Microsoft."""
_MAX_PODS: Final = 192


def draw_philly_gangs(num: int, seed: int = 0) -> Sequence[Gang]:
    """Return gangs with a pod for each GPU; a pod has an eighth of a node."""
    draws = random.Random(seed)  # noqa: S311 - the same gangs each time
    sizes = (job.gpus * _SCALE for job in draw_philly_jobs(2 * num, draws))
    gangs = [
        Gang((NODE_MILLICORES // _GPUS_OF_NODE,) * size) for size in sizes if size <= _MAX_PODS
    ]
    return gangs[:num]


def draw_kueue_gangs(num: int, seed: int = 0) -> Sequence[Gang]:
    """Return the gangs of the scheduler benchmark of Kueue."""
    return [Gang((kind.cpus * 1000,) * kind.pods) for kind in draw_mix(num, seed)]


MIXES: Final[Mapping[str, Callable[[int], Sequence[Gang]]]] = {
    "Philly": draw_philly_gangs,
    "Kueue": draw_kueue_gangs,
}
