"""The scheduler of Volcano on Toponaut's HyperNodes: it keeps to them, and finds no lower tier."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.gang_days import draw_gangs, find_faults, run_day, scene_of
from tests.live.gangs import BY_SIZE, TIERS_BY_SIZE
from tests.live.volcano_cluster import VolcanoCluster, volcano_cluster

pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("live volcano"),
]
NUM_NODES = 64


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VolcanoCluster]:
    with volcano_cluster(tmp_path_factory.mktemp("volcano")) as found:
        yield found


def test_it_places_gangs_as_low_as_the_engine_and_no_lower(
    cluster: VolcanoCluster, tmp_path: Path
) -> None:
    gangs = [*BY_SIZE, *draw_gangs(8, NUM_NODES, seed=7)]
    rows = run_day(cluster, scene_of(tmp_path, NUM_NODES), gangs)
    assert find_faults(rows, is_predictable=False) == []
    assert [row.engine_tier for row in rows[: len(BY_SIZE)]] == TIERS_BY_SIZE
    assert [row.scheduler_tier for row in rows[: len(BY_SIZE)]] == TIERS_BY_SIZE
