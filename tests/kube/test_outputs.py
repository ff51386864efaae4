"""The outputs of `toponaut serve --kube` on a real server: named, restored, refused, in use.

One replica follows the cluster through all tests; between two tests it writes HyperNodes alone.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from generator.kube.resources import NODES
from generator.outputs.formats import DEFAULT_PREFIX
from generator.outputs.kai import POD_GROUPS as KAI_POD_GROUPS
from generator.outputs.kai import TOPOLOGIES as KAI_TOPOLOGIES
from generator.outputs.kueue import TOPOLOGIES as KUEUE_TOPOLOGIES
from tests.generator.scenes import PAIRS, Scene
from tests.kube.servers import LEAF, OFTEN, PORT_OPTIONS, OutputCluster, Ports, serving
from tests.lab.api_server import MERGE, ApiServer

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube outputs")]

HYPERNODES_ALONE = {"type": "hypernode"}
LABELS = {"type": "labels"}


@pytest.fixture(scope="module")
def served(
    spare_api: ApiServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[OutputCluster, Ports]]:
    spare_api.revive()
    folder = tmp_path_factory.mktemp("outputs")
    made = OutputCluster.of_consumers(spare_api, Scene.of(folder / "scene", PAIRS))
    with serving(made, folder, *OFTEN, *PORT_OPTIONS) as generator:
        made.await_tree()
        yield made, Ports(generator)
    made.clear()


@pytest.fixture
def cluster(served: tuple[OutputCluster, Ports]) -> Iterator[OutputCluster]:
    found, _ = served
    yield found
    found.choose(HYPERNODES_ALONE)
    found.await_written(HYPERNODES_ALONE)


@pytest.fixture
def ports(served: tuple[OutputCluster, Ports]) -> Ports:
    return served[1]


def test_an_edited_label_is_restored_and_a_foreign_one_is_named(cluster: OutputCluster) -> None:
    first, second, *_ = cluster.scene.hosts
    cluster.set_labels(first, {LEAF: "of-another-program"})
    cluster.choose(HYPERNODES_ALONE, LABELS)
    cluster.await_states({"hypernode": "Written", "labels": "Conflict"})
    cluster.await_that(
        lambda: cluster.labels().keys() == set(cluster.scene.hosts), "the rest goes on"
    )
    assert cluster.labels()[first] == "of-another-program"
    _, row = cluster.fabric()["status"]["outputs"]
    assert first in row["message"]
    assert '"other"' in row["message"]
    wanted = cluster.labels()[second]
    cluster.set_labels(second, {LEAF: "edited"})
    cluster.await_that(lambda: cluster.labels()[second] == wanted, "the label is restored")
    cluster.set_labels(first, {LEAF: None})


def test_a_label_keeps_its_value_while_a_gang_runs(cluster: OutputCluster) -> None:
    cluster.choose(LABELS)
    cluster.await_written(LABELS)
    before = cluster.labels()
    one, other = cluster.scene.hosts[0], cluster.scene.hosts[-1]
    pods = cluster.run_gang(one, other)
    cluster.report(cluster.traded(one, other))
    cluster.await_states({"labels": "Pending"})
    assert cluster.labels() == before
    cluster.end_gang(pods)
    moved = before | {one: before[other], other: before[one]}
    cluster.await_that(lambda: cluster.labels() == moved, "labels as cabled")
    cluster.report(cluster.scene)
    cluster.await_that(lambda: cluster.labels() == before, "labels as before")


def test_a_node_that_loses_all_labels_gets_ours_again(cluster: OutputCluster, ports: Ports) -> None:
    def labels_of(node: str) -> dict[str, str]:
        metadata = cluster.api.expect("GET", NODES.path(node))["metadata"]
        return dict(metadata.get("labels", {}))

    node = cluster.scene.hosts[2]
    outputs = {"type": "labels", "compat": ["topograph", "nvidia"]}, {"type": "slinky"}
    cluster.set_labels(node, {"own": "x"})
    cluster.choose(HYPERNODES_ALONE, *outputs)
    cluster.await_written(HYPERNODES_ALONE, *outputs)
    before = labels_of(node)
    prefixes = (DEFAULT_PREFIX, "fabric.topograph.run/", "network.topology.nvidia.com/")
    ours = {key: value for key, value in before.items() if key.startswith(prefixes)}
    assert len(ours) == 6
    written = cluster.num_writes()
    cluster.set_labels(node, dict.fromkeys(before))
    cluster.await_that(lambda: labels_of(node) == ours, "our labels are restored, no others")
    cluster.await_written(HYPERNODES_ALONE, *outputs)
    writes = [one for one in cluster.writes(written) if one.resource == NODES.plural]
    assert [one.name for one in writes] == [node] * 2, "one write for each of our managers"
    cluster.check_rest(ports)


def test_a_topology_of_another_owner_stays(cluster: OutputCluster) -> None:
    theirs = {"spec": {"levels": [{"nodeLabel": "rack"}]}, "metadata": {"name": "toponaut"}}
    head = {"apiVersion": KUEUE_TOPOLOGIES.api_version, "kind": KUEUE_TOPOLOGIES.kind}
    cluster.api.expect("POST", KUEUE_TOPOLOGIES.path(), {**head, **theirs})
    cluster.choose(HYPERNODES_ALONE, LABELS, {"type": "kueue"})
    cluster.await_states({"hypernode": "Written", "labels": "Written", "kueue": "Conflict"})
    found = cluster.api.expect("GET", KUEUE_TOPOLOGIES.path("toponaut"))
    assert found["spec"] == theirs["spec"]
    cluster.api.expect("DELETE", KUEUE_TOPOLOGIES.path("toponaut"))
    cluster.await_written(HYPERNODES_ALONE, LABELS, {"type": "kueue"})


def test_a_topology_in_use_stays_until_nothing_uses_it(
    cluster: OutputCluster, ports: Ports
) -> None:
    def levels() -> list[str]:
        found = cluster.api.request("GET", KAI_TOPOLOGIES.path("toponaut")).body
        return [row["nodeLabel"] for row in found.get("spec", {}).get("levels", [])]

    outputs: list[dict[str, Any]] = [dict(LABELS), {"type": "kai", "aliases": False}]
    cluster.choose(HYPERNODES_ALONE, *outputs)
    cluster.await_written(HYPERNODES_ALONE, *outputs)
    assert levels()[-2:] == [LEAF, "kubernetes.io/hostname"]
    user = {
        "apiVersion": KAI_POD_GROUPS.api_version,
        "kind": KAI_POD_GROUPS.kind,
        "metadata": {"name": "user"},
        "spec": {"minMember": 1, "topologyConstraint": {"topology": "toponaut"}},
    }
    cluster.api.expect("POST", KAI_POD_GROUPS.path(namespace=cluster.namespace), user)
    before = levels()
    outputs[0]["labelPrefix"] = "fabric.example.org"
    cluster.choose(HYPERNODES_ALONE, *outputs)
    cluster.await_states({"hypernode": "Written", "labels": "Written", "kai": "Refused"})
    (row,) = (row for row in cluster.fabric()["status"]["outputs"] if row["type"] == "kai")
    assert f"cannot change while the {KAI_POD_GROUPS.kind} user uses it" in row["message"]
    assert levels() == before
    assert "output-refused" in str(cluster.fabric()["status"]["findings"])
    cluster.check_rest(ports)
    cluster.api.expect("DELETE", KAI_POD_GROUPS.path("user", namespace=cluster.namespace))
    cluster.await_written(HYPERNODES_ALONE, *outputs)
    assert "fabric.example.org/leaf" in levels()
    assert cluster.labels() == {}


def test_one_refused_object_stops_no_other(cluster: OutputCluster, ports: Ports) -> None:
    refused = cluster.scene.hosts[3]
    path = f"{NODES.path(refused)}?dryRun=All"
    probe = {"metadata": {"labels": {"probe": "x"}}}

    def is_denied() -> bool:
        return cluster.api.request("PATCH", path, probe, content_type=MERGE).status == 422

    with cluster.denied_writes(NODES, f"request.name == '{refused}'", is_denied):
        cluster.choose(HYPERNODES_ALONE, LABELS, {"type": "slinky"})
        cluster.await_states({"hypernode": "Written", "labels": "Refused", "slinky": "Refused"})
        assert cluster.labels().keys() == set(cluster.scene.hosts) - {refused}
        _, row, _ = cluster.fabric()["status"]["outputs"]
        assert (row["objects"], row["refused"]) == (len(cluster.scene.hosts) - 1, 1)
        assert refused in row["message"]
        cluster.check_rest(ports)
