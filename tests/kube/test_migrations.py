"""The ways from an existing set-up in docs/consumers.md, step by step on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from generator.kube.resources import CONFIG_MAPS, HYPERNODES, NODES
from generator.reconcile.rendered import KUEUE_TOPOLOGIES
from tests.generator.scenes import PAIRS, Scene
from tests.kube.servers import serving
from tests.kube.test_adoption import by_pattern
from tests.kube.test_outputs import MERGE, OFTEN, OutputCluster
from tests.kube.test_serving import toponaut
from tests.lab.api_server import ApiServer, find_assets
from topology.model.tree import TopologyTree, parse_tree

pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("kube serving"),
]
RACK, ROW = "example.com/rack", "example.com/row"


@pytest.fixture
def cluster(other_api: ApiServer, tmp_path: Path) -> Iterator[OutputCluster]:
    other_api.install_all(find_assets("consumers"))
    made = OutputCluster(other_api, Scene.of(tmp_path / "scene", PAIRS))
    made.choose()
    yield made
    for name in ("toponaut", "theirs"):
        other_api.request("DELETE", KUEUE_TOPOLOGIES.path(name))
    made.clear()


def tree_of(cluster: OutputCluster) -> TopologyTree:
    return parse_tree(toponaut(cluster, "tree", "-o", "json").document)


def test_labels_and_a_topology_of_kueue(cluster: OutputCluster, tmp_path: Path) -> None:
    tree = tree_of(cluster)
    for domain in tree.domains:
        for node in domain.nodes:
            labels = {RACK: f"rack-{domain.name[-1]}", ROW: "row"}
            change = {"metadata": {"labels": labels}}
            path = f"{NODES.path(node)}?fieldManager=admin"
            cluster.api.request("PATCH", path, change, content_type=MERGE)
    levels = [{"nodeLabel": key} for key in (ROW, RACK, "kubernetes.io/hostname")]
    head = {"apiVersion": KUEUE_TOPOLOGIES.api_version, "kind": KUEUE_TOPOLOGIES.kind}
    theirs = {**head, "metadata": {"name": "theirs"}, "spec": {"levels": levels}}
    cluster.api.expect("POST", KUEUE_TOPOLOGIES.path(), theirs)

    keys = f"{ROW},{RACK}"
    compared = toponaut(cluster, "diff", "--against", "labels", "--node-labels", keys, "--check")
    assert compared.code == ExitCode.OK, compared.out
    outputs: list[dict[str, object]] = [
        {"type": "labels", "labelPrefix": "example.com", "padded": False}
    ]
    cluster.want(outputs=outputs, tierNames=["rack", "row"])
    options = ("--namespace", cluster.namespace)
    planned = toponaut(cluster, "plan", *options)
    assert "output labels Pending: 0 written, 16 to write" in planned.err
    before = cluster.labels(RACK)
    held = toponaut(cluster, "adopt", "--labels", keys, *options)
    assert held.code == ExitCode.CHECK_FAILED
    assert f"{RACK}  16          0" in held.out, held.out
    plan = toponaut(cluster, "adopt", "--labels", keys, *options, "-o", "json").document["hash"]
    done = toponaut(cluster, "adopt", "--labels", keys, *options, "--approve", plan)
    assert done.code == ExitCode.OK, done.err
    assert cluster.labels(RACK) == before
    outputs.append({"type": "kueue"})
    cluster.want(outputs=outputs, tierNames=["rack", "row"])
    with serving(cluster, tmp_path, *OFTEN):
        cluster.await_written(*outputs)
    ours = cluster.api.expect("GET", KUEUE_TOPOLOGIES.path("toponaut"))
    assert ours["spec"]["levels"] == levels
    assert cluster.api.expect("GET", KUEUE_TOPOLOGIES.path("theirs"))["spec"]["levels"] == levels


def test_a_topology_conf_of_slurm(cluster: OutputCluster, tmp_path: Path) -> None:
    printed = toponaut(cluster, "export", "slurm-tree")
    assert printed.code == ExitCode.OK
    assert "SwitchName=" in printed.out
    cluster.want(outputs=[{"type": "slurm-tree"}])
    with serving(cluster, tmp_path, *OFTEN):
        cluster.await_written({"type": "slurm-tree"})
    path = CONFIG_MAPS.path("toponaut-slurm-tree", namespace=cluster.namespace)
    assert cluster.api.expect("GET", path)["data"]["topology.conf"] == printed.out


def test_hypernodes_of_an_admin(cluster: OutputCluster, tmp_path: Path) -> None:
    for domain in tree_of(cluster).domains:
        if domain.nodes:
            name = f"hall-{domain.name[-1]}"
            document = by_pattern(name, 1, f"^({'|'.join(domain.nodes)})$")
            cluster.api.apply(f"{HYPERNODES.path(name)}?fieldManager=admin", document)
    assert toponaut(cluster, "lint").code == ExitCode.OK
    assert toponaut(cluster, "diff", "--against", "hypernodes").code == ExitCode.OK
    cluster.want(outputs=[{"type": "hypernode"}])
    plan = toponaut(cluster, "adopt", "-o", "json").document["hash"]
    options = ("--namespace", cluster.namespace, "--approve", plan)
    assert toponaut(cluster, "adopt", *options).code == ExitCode.OK
    with serving(cluster, tmp_path, *OFTEN):
        cluster.await_tree()
    names = {name for name, row in cluster.hypernodes().items() if row.tier == 1}
    assert names == {f"hall-{at}" for at in range(1, len(names) + 1)}
