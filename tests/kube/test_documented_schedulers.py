"""docs/schedulers.md as a reader follows it: each example, word for word, on a real server."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.kube.resources import HYPERNODES
from tests.daemonset.readers import Reader, written
from tests.generator.scenes import PAIRS, Scene
from tests.kube.servers import OFTEN, OutputCluster, serving
from tests.lab.api_server import ApiServer

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube outputs")]

PAGE = "schedulers.md"


@pytest.fixture(scope="module")
def cluster(
    spare_api: ApiServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OutputCluster]:
    """A cluster that a replica follows through all tests."""
    spare_api.revive()
    folder = tmp_path_factory.mktemp("schedulers")
    made = OutputCluster.of_consumers(spare_api, Scene.of(folder / "scene", PAIRS))
    with serving(made, folder, *OFTEN):
        made.await_tree()
        yield made
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
    cluster: OutputCluster, tmp_path: Path, section: str, levels: str
) -> None:
    (block,) = written(PAGE, section)
    (job,) = {word for word in shlex.split(block) if word.endswith("job.yaml")}
    reader = Reader(tmp_path, cluster.api)
    printed = reader.type(block)
    reader.type(f"kubectl delete --wait=false -f {job}")
    assert levels in printed
    assert re.search(r"^feasible: 4 pods within one leaf", printed, re.MULTILINE), printed
    created = re.findall(r"^(\S+) created$", printed, re.MULTILINE)
    assert any(one.endswith("/train") for one in created), printed


def test_an_empty_list_takes_every_output_away(cluster: OutputCluster, tmp_path: Path) -> None:
    cluster.choose({"type": "hypernode"})
    cluster.await_tree()
    member = {"type": "Node", "selector": {"exactMatch": {"name": "of-another-cluster"}}}
    theirs = {
        "apiVersion": HYPERNODES.api_version,
        "kind": HYPERNODES.kind,
        "metadata": {"name": "theirs"},
        "spec": {"tier": 1, "members": [member]},
    }
    cluster.api.expect("POST", HYPERNODES.path(), theirs)
    Reader(tmp_path, cluster.api).type(written(PAGE, "Remove the outputs")[0])
    cluster.await_that(lambda: [*cluster.hypernodes()] == ["theirs"], "none of ours is left")
    cluster.api.expect("DELETE", HYPERNODES.path("theirs"))
    cluster.choose({"type": "hypernode"})
    cluster.await_tree()
