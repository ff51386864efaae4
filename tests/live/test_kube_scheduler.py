"""The scheduler of Kubernetes on Toponaut's labels: it obeys them, and never finds a lower tier."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.effort import examples
from tests.live.gang_days import draw_gangs, find_faults, run_day, scene_of
from tests.live.gangs import BY_SIZE, TIERS_BY_SIZE
from tests.live.kube_cluster import KubeCluster, kube_cluster

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("live")]
NUM_NODES = 64


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeCluster]:
    with kube_cluster(tmp_path_factory.mktemp("live")) as found:
        yield found


def test_it_places_gangs_as_low_as_the_engine_and_no_lower(
    cluster: KubeCluster, tmp_path: Path
) -> None:
    gangs = [*BY_SIZE, *draw_gangs(examples(20), NUM_NODES, seed=7)]
    rows = run_day(cluster, scene_of(tmp_path, NUM_NODES), gangs)
    assert find_faults(rows) == []
    assert [row.engine_tier for row in rows[: len(BY_SIZE)]] == TIERS_BY_SIZE
    assert [row.scheduler_tier for row in rows[: len(BY_SIZE)]] == TIERS_BY_SIZE
