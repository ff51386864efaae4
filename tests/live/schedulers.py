"""The real schedulers that run here, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, NamedTuple

from tests.live.gangs import GangCluster
from tests.live.kube_cluster import kube_cluster
from tests.live.kueue_cluster import kueue_cluster
from tests.live.volcano_cluster import volcano_cluster


class Scheduler(NamedTuple):
    """How a scheduler is started, and which gangs it takes."""

    start: Callable[[Path], AbstractContextManager[GangCluster]]
    """Starts it with an API server; the folder is for their files."""
    num_kinds: Sequence[int]
    """How many sizes of pods a gang may have: Kueue places each size on its own."""
    is_predictable: bool = True
    """Whether its preset must predict every choice."""


SCHEDULERS: Final[Mapping[str, Scheduler]] = {
    "kube-scheduler": Scheduler(kube_cluster, (1, 1, 2, 3)),
    "kueue": Scheduler(kueue_cluster, (1,)),
    "volcano": Scheduler(volcano_cluster, (1, 1, 2, 3), is_predictable=False),
}
