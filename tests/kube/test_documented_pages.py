"""The lines of the pages that read a cluster, on a real server where a generator runs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.kube.resources import NODES
from tests.daemonset.readers import Reader
from tests.docs.pages import KUBE, PAGES, read_blocks
from tests.docs.scene import label_node, make_scene
from tests.generator.scenes import PAIRS, Scene
from tests.kube.servers import Cluster, serving
from tests.lab.api_server import ApiServer, find_assets

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube outputs")]

BEGINS = (
    "kubectl patch fabric default --type merge -p",
    "kubectl get fabrics",
    "kubectl get pods",
    "kubectl wait fabric",
    "toponaut ",
)
OTHERS = ("toponaut serve", "toponaut adopt", "toponaut approve")
"""Lines that other tests run: they last, or need the hash of a plan."""


def read_lines() -> list[tuple[str, str]]:
    """Return page and line of each line that reads or changes a cluster, once."""
    found = {
        (block.page, line.split("   #")[0].strip())
        for page in PAGES
        for block in read_blocks(page)
        if block.language == "sh" and "--patch-file" not in block.text
        for line in block.text.splitlines()
        if KUBE.search(line) or "doctor" in line
    }
    return sorted(
        (page, line)
        for page, line in found
        if line.startswith(BEGINS) and not line.startswith((*OTHERS, "toponaut-agent"))
    )


@pytest.fixture
def cluster(other_api: ApiServer, tmp_path: Path) -> Iterator[Cluster]:
    other_api.install_all(find_assets("consumers"))
    made = Cluster(other_api, Scene.of(tmp_path / "scene", PAIRS))
    for number, name in enumerate(made.scene.hosts):
        change = {"metadata": {"labels": dict(label_node(number))}}
        made.api.merge(f"{NODES.path(name)}?fieldManager=cloud", change)
    yield made
    made.clear()


def run_gang(api: ApiServer, namespace: str, name: str) -> None:
    """Run two pods of a gang."""
    space = f"/api/v1/namespaces/{namespace}"
    api.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    api.request("POST", f"{space}/serviceaccounts", {"metadata": {"name": "default"}})
    for number in range(2):
        marks = {"scheduling.k8s.io/group-name": name}
        metadata = {"name": f"{name}-{number}", "annotations": marks}
        spec = {"nodeName": f"node-{number + 1:04}", "containers": [{"name": "c", "image": "i"}]}
        made = api.expect("POST", f"{space}/pods", {"metadata": metadata, "spec": spec})
        path = f"{space}/pods/{name}-{number}/status"
        api.expect("PUT", path, made | {"status": {"phase": "Running"}})


def test_they_answer(cluster: Cluster, tmp_path: Path) -> None:
    lines = read_lines()
    assert len(lines) >= 8
    folder = tmp_path / "pages"
    folder.mkdir()
    make_scene(folder)
    run_gang(cluster.api, "ml", "llama")
    run_gang(cluster.api, "default", "train")
    reader = Reader(tmp_path, cluster.api, folder=folder)
    with serving(cluster, tmp_path, "--period", "1s"):
        cluster.await_tree()
        for _, line in lines:
            reader.type(line)
