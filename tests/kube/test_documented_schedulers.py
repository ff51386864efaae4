"""docs/schedulers.md as a reader follows it: each example, word for word, on a real server."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemonset.readers import Reader, written
from tests.generator.scenes import PAIRS, Scene
from tests.kube.conftest import WRITER, prepare
from tests.kube.servers import Cluster, serving
from tests.lab.api_server import ApiServer, find_assets
from tests.live.kube_cluster import GATES, GROUPS

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube serving")]

PAGE = "schedulers.md"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server with the kinds of every scheduler, and the gangs of Kubernetes."""
    options = (GATES, f"--runtime-config={GROUPS}=true")
    folder = tmp_path_factory.mktemp("schedulers")
    with ApiServer(find_assets("programs"), folder, users=[WRITER], options=options) as api:
        prepare(api)
        api.install_all(find_assets("consumers"))
        yield api


@pytest.fixture
def cluster(server: ApiServer, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(server, Scene.of(tmp_path / "scene", PAIRS))
    yield made
    made.want(outputs=[])
    made.clear()


@pytest.mark.parametrize(
    ("section", "levels"),
    [
        pytest.param("Kubernetes", "", id="Kubernetes reads the labels"),
        pytest.param("Volcano", "", id="Volcano reads HyperNodes"),
        pytest.param(
            "Kueue",
            "topology.toponaut.io/spine topology.toponaut.io/leaf kubernetes.io/hostname\n",
            id="Kueue reads a Topology, the hostname last",
        ),
        pytest.param(
            "KAI",
            "topology.toponaut.io/spine topology.toponaut.io/leaf kubernetes.io/hostname\n",
            id="KAI reads a Topology of its own",
        ),
        pytest.param(
            "Koordinator",
            "SpineLayer LeafLayer NodeTopologyLayer\n",
            id="Koordinator reads layers",
        ),
    ],
)
def test_its_lines_lead_from_the_tree_to_a_job(
    cluster: Cluster, tmp_path: Path, section: str, levels: str
) -> None:
    (block,) = written(PAGE, section)
    (job,) = {word for word in shlex.split(block) if word.endswith("job.yaml")}
    with serving(cluster, tmp_path, "--period", "1s"):
        cluster.await_tree()
        reader = Reader(tmp_path, cluster.api)
        printed = reader.type(block)
        reader.type(f"kubectl delete --wait=false -f {job}")
    assert levels in printed
    assert re.search(r"^feasible: 4 pods within one leaf", printed, re.MULTILINE), printed
    created = re.findall(r"^(\S+) created$", printed, re.MULTILINE)
    assert any(one.endswith("/train") for one in created), printed


def test_an_empty_list_takes_every_output_away(cluster: Cluster, tmp_path: Path) -> None:
    reader = Reader(tmp_path, cluster.api)
    with serving(cluster, tmp_path, "--period", "1s"):
        cluster.await_tree()
        reader.type(written(PAGE, "Remove the outputs")[0])
        cluster.await_that(lambda: not cluster.hypernodes(), "no HyperNode is left")
