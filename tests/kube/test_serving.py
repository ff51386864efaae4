"""`toponaut serve --kube` on a real server: HyperNodes as cabled, calm at rest, careful always."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.generator.scenes import PAIRS, Scene
from tests.kube.serving import Cluster, Generator, serving
from tests.lab.api_server import ApiServer
from tests.topology.synthetic.fabrics import swap

pytestmark = [pytest.mark.lab, pytest.mark.timeout(240), pytest.mark.xdist_group("kube")]


@pytest.fixture
def cluster(other_api: ApiServer, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(other_api, Scene.of(tmp_path / "scene", PAIRS))
    yield made
    other_api.revive()
    made.clear()


@pytest.fixture
def generator(cluster: Cluster, tmp_path: Path) -> Iterator[Generator]:
    """One replica, whose HyperNodes stand."""
    with serving(cluster, tmp_path) as running:
        cluster.await_tree()
        yield running


def test_it_writes_what_is_cabled_and_then_rests(cluster: Cluster, generator: Generator) -> None:
    status = cluster.fabric()["status"]
    assert [(one["tier"], one["nodes"]) for one in status["tiers"]] == [(1, 16), (2, 16)]
    assert status["generation"] == 1
    before = cluster.num_writes()
    node = cluster.scene.hosts[0]
