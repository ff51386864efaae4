"""Draws a synthetic trace with the published statistics of Microsoft's Philly clusters.

93 % of the jobs request one GPU. Jobs with 8 or more GPUs take 62 % of the GPU time, jobs with more
than 8 take 14 %. Half of the jobs run for up to 1,144 s, nine tenths for up to 11,265 s. Jobs
arrive in bursts. Source of the figures: Jeon et al., Analysis of Large-Scale Multi-Tenant GPU
Clusters for DNN Training Workloads, USENIX ATC 2019, and its public trace.
"""

from __future__ import annotations

import math
from typing import Final, Protocol

from generator.simulation.replay.trace import Job

_SIZES: Final = (1, 2, 4, 8, 12, 16, 24, 32, 64, 128)
_SHARES: Final = (0.93, 0.018, 0.014, 0.0336, 0.0002, 0.003, 0.0002, 0.0007, 0.0002, 0.0001)
"""Share of the jobs, per size."""
_MEDIAN_S: Final = 1144.0
_SIGMA: Final = math.log(11_265 / 1144) / 1.2816
"""Standard deviation of the logarithm of durations: the 90th percentile of a normal distribution is
1.2816 standard deviations above its mean."""
_NODE: Final = 8
"""GPUs of a node in these clusters."""
_LONGER_NODE: Final = 4.8
_LONGER_GANG: Final = 3.65
"""Factors on the durations of jobs with a whole node and with more; they yield the shares of GPU
time."""
_MAX_DURATION_S: Final = 30 * 86_400.0
_MEAN_GAP_S: Final = 109 * 86_400 / 82_247
_BURST_SHARE: Final = 0.5
"""Share of jobs that arrive within seconds of the previous job."""
_BURST_GAP_S: Final = 2.0


class RandomDraws(Protocol):
    """A seeded source, such as `random.Random`."""

    def random(self) -> float:
        """Return a number from 0 to 1."""

    def expovariate(self, lambd: float, /) -> float:
        """Return a gap of a Poisson process."""

    def lognormvariate(self, mu: float, sigma: float, /) -> float:
        """Return a number whose logarithm is normal."""


def draw_philly_jobs(num: int, draws: RandomDraws) -> tuple[Job, ...]:
    """Return `num` jobs in order of submission; equal sources give equal jobs."""
    submit_s, jobs = 0.0, []
    for _ in range(num):
        gpus = _find_size(draws.random())
        median_s = _MEDIAN_S * _compute_duration_factor(gpus)
        duration_s = min(draws.lognormvariate(math.log(median_s), _SIGMA), _MAX_DURATION_S)
        jobs.append(Job(round(submit_s, 1), gpus, round(max(duration_s, 1.0), 1)))
        is_burst = draws.random() < _BURST_SHARE
        mean_s = _BURST_GAP_S if is_burst else (2 * _MEAN_GAP_S - _BURST_GAP_S)
        submit_s += draws.expovariate(1 / mean_s)
    return tuple(jobs)


def _find_size(drawn: float) -> int:
    for size, share in zip(_SIZES, _SHARES, strict=True):
        drawn -= share
        if drawn < 0:
            return size
    return _SIZES[0]


def _compute_duration_factor(gpus: int) -> float:
    if gpus < _NODE:
        return 1.0
    return _LONGER_NODE if gpus == _NODE else _LONGER_GANG
