"""The outputs of `toponaut serve --kube` on a real server: written, held, restored and removed."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from generator.cli.exit_codes import ExitCode
from generator.kube.resources import CONFIG_MAPS, NODES, Resource
from generator.outputs.node_labels import DEFAULT_PREFIX
from generator.reconcile.rendered import (
    KAI_TOPOLOGIES,
    KUEUE_TOPOLOGIES,
    NODE_FEATURES,
)
from tests.generator.scenes import PAIRS, Scene
from tests.kube.servers import PORT_OPTIONS, Cluster, Ports, serving
from tests.kube.test_serving import toponaut, traded
from tests.lab.api_server import ApiServer, find_assets

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube serving")]

LEAF = f"{DEFAULT_PREFIX}/leaf"
MERGE = "application/merge-patch+json"
EVERY: tuple[Mapping[str, object], ...] = (
    {"type": "hypernode"},
    {"type": "labels", "compat": ["nvidia"]},
    {"type": "kueue", "flavor": {"name": "gpu", "nodeLabels": {"kubernetes.io/os": "linux"}}},
    {"type": "kai", "aliases": False},
    *({"type": name} for name in ("koordinator", "slinky", "nfd", "configmap", "slurm-tree")),
)
OFTEN = ("--period", "1s")


class OutputCluster(Cluster):
    """A cluster with the kinds of other schedulers."""

    def choose(self, *outputs: Mapping[str, object]) -> None:
        """Set the outputs of the Fabric."""
        self.want(outputs=list(outputs))

    def states(self) -> dict[str, str]:
        """Return the state of each output in the status."""
        rows = self.fabric().get("status", {}).get("outputs", [])
        return {str(row["type"]): str(row["state"]) for row in rows}

    def await_written(self, *outputs: Mapping[str, object]) -> None:
        """Wait until the status says that just these outputs are written."""
        wanted = {str(row["type"]): "Written" for row in outputs if row["type"] != "hypernode"}
        self.await_that(lambda: self.states() == wanted, "the outputs are written")

    def labels(self, key: str = LEAF) -> dict[str, str]:
        """Return the value of a label by node, without nodes that lack it."""
        found = {
            node["metadata"]["name"]: node["metadata"].get("labels", {}).get(key)
            for node in self.items(NODES)
        }
        return {node: value for node, value in found.items() if value is not None}

    def set_label(self, node: str, key: str, value: str) -> None:
        """Set a label as another program does."""
        change = {"metadata": {"labels": {key: value}}}
        path = f"{NODES.path(node)}?fieldManager=other"
        answer = self.api.request("PATCH", path, change, content_type=MERGE)
        assert answer.status == 200, answer.message

    def named(self, resource: Resource) -> set[str]:
        """Return the names of our objects of a kind."""
        return {
            one["metadata"]["name"]
            for one in self.items(resource)
            if any(
                row["manager"].startswith("toponaut-")
                for row in one["metadata"].get("managedFields", [])
            )
        }


@pytest.fixture
def cluster(other_api: ApiServer, tmp_path: Path) -> Iterator[OutputCluster]:
    other_api.install_all(find_assets("consumers"))
    made = OutputCluster(other_api, Scene.of(tmp_path / "scene", PAIRS))
    yield made
    for kind in (KUEUE_TOPOLOGIES, KAI_TOPOLOGIES):
        for name in made.named(kind):
            other_api.request("DELETE", kind.path(name))
    made.clear()


def test_every_output_is_written_once_and_removed(cluster: OutputCluster, tmp_path: Path) -> None:
    cluster.choose(*EVERY)
    with serving(cluster, tmp_path, *OFTEN, *PORT_OPTIONS) as generator:
        cluster.await_tree()
        cluster.await_written(*EVERY)
        labels = cluster.labels()
        assert labels.keys() == set(cluster.scene.hosts)
        assert len({*labels.values()}) == num_leaves(cluster)
        assert cluster.labels("network.topology.nvidia.com/leaf") == labels
        assert cluster.fabric()["status"]["labelKeys"][0] == {"tier": 1, "key": LEAF}
        assert cluster.conditions()["OutputsWritten"] == "AllWritten"
        assert cluster.named(KUEUE_TOPOLOGIES) == {"toponaut"}
        assert len(cluster.named(NODE_FEATURES)) == len(labels)
        assert cluster.named(CONFIG_MAPS) >= {"toponaut", "toponaut-slurm-tree"}
        check_rest(cluster, Ports(generator))
        cluster.choose({"type": "hypernode"})
        cluster.await_that(lambda: not cluster.states(), "nothing is left to remove")
        assert cluster.labels() == cluster.labels("network.topology.nvidia.com/leaf") == {}
        kinds = (KUEUE_TOPOLOGIES, KAI_TOPOLOGIES, NODE_FEATURES, CONFIG_MAPS)
        assert [cluster.named(kind) for kind in kinds] == [set()] * len(kinds)
        assert "OutputsWritten" not in cluster.conditions()
        assert len([one for one in cluster.hypernodes().values() if one.is_ours]) > 1


def num_leaves(cluster: Cluster) -> int:
    return sum(one.tier == 1 for one in cluster.hypernodes().values())


def check_rest(cluster: OutputCluster, ports: Ports) -> None:
    """Check that several rounds after the last change write nothing."""

    def num_rounds() -> float:
        return sum(ports.metric("reconcile_duration_seconds_count").values())

    done, before = num_rounds(), cluster.num_writes()
    cluster.await_that(lambda: num_rounds() >= done + 3, "three more rounds")
    assert cluster.writes(before) == []


def test_labels_alone_follow_a_decided_tree(cluster: OutputCluster, tmp_path: Path) -> None:
    cluster.choose({"type": "labels"})
    with serving(cluster, tmp_path, *OFTEN, *PORT_OPTIONS) as generator:
        cluster.await_written({"type": "labels"})
        assert cluster.conditions()["Ready"] == "TreeDecided"
        assert cluster.hypernodes() == {}
        before = cluster.labels()
        check_rest(cluster, Ports(generator))
        cluster.want(outputs=[{"type": "labels"}], changeBudget={"nodesPercent": 0})
        one, other = cluster.scene.hosts[0], cluster.scene.hosts[-1]
        cluster.report(traded(cluster, one, other))
        cluster.await_that(cluster.held, "the move is held")
        assert cluster.labels() == before, "a held plan changes no label"
        assert toponaut(cluster, "approve", cluster.held()).code == ExitCode.OK
        moved = before | {one: before[other], other: before[one]}
        cluster.await_that(lambda: cluster.labels() == moved, "labels as approved")


def test_a_label_keeps_its_value_while_a_gang_runs(cluster: OutputCluster, tmp_path: Path) -> None:
    cluster.choose({"type": "labels"})
    with serving(cluster, tmp_path, *OFTEN):
        cluster.await_written({"type": "labels"})
        before = cluster.labels()
        one, other, *_ = (cluster.scene.hosts[0], cluster.scene.hosts[-1])
        pods = cluster.run_gang(one, other)
        cluster.report(traded(cluster, one, other))
        cluster.await_that(lambda: cluster.states() == {"labels": "Pending"}, "labels wait")
        assert cluster.labels() == before
        cluster.end_gang(pods)
        moved = before | {one: before[other], other: before[one]}
        cluster.await_that(lambda: cluster.labels() == moved, "labels as cabled")


def test_an_edited_label_is_restored_and_a_foreign_one_is_named(
    cluster: OutputCluster, tmp_path: Path
) -> None:
    first, second, *_ = cluster.scene.hosts
    cluster.set_label(first, LEAF, "of-another-program")
    cluster.choose({"type": "labels"})
    with serving(cluster, tmp_path, *OFTEN):
        cluster.await_that(lambda: cluster.states() == {"labels": "Conflict"}, "a conflict")
        cluster.await_that(
            lambda: cluster.labels().keys() == set(cluster.scene.hosts), "the rest goes on"
        )
        assert cluster.labels()[first] == "of-another-program"
        (row,) = cluster.fabric()["status"]["outputs"]
        assert first in row["message"]
        assert '"other"' in row["message"]
        wanted = cluster.labels()[second]
        cluster.set_label(second, LEAF, "edited")
        cluster.await_that(lambda: cluster.labels()[second] == wanted, "the label is restored")


def test_a_node_that_loses_all_labels_gets_ours_again(
    cluster: OutputCluster, tmp_path: Path
) -> None:
    def labels_of(node: str) -> dict[str, str]:
        metadata = cluster.api.expect("GET", NODES.path(node))["metadata"]
        return dict(metadata.get("labels", {}))

    node = cluster.scene.hosts[0]
    outputs = {"type": "labels", "compat": ["topograph", "nvidia"]}, {"type": "slinky"}
    cluster.set_label(node, "own", "x")
    cluster.choose(*outputs)
    with serving(cluster, tmp_path, *OFTEN, *PORT_OPTIONS) as generator:
        cluster.await_written(*outputs)
        before = labels_of(node)
        prefixes = (DEFAULT_PREFIX, "fabric.topograph.run/", "network.topology.nvidia.com/")
        ours = {key: value for key, value in before.items() if key.startswith(prefixes)}
        assert len(ours) == 6
        lost = {"metadata": {"labels": dict.fromkeys(before)}}
        path = f"{NODES.path(node)}?fieldManager=other"
        assert cluster.api.request("PATCH", path, lost, content_type=MERGE).status == 200
        written = cluster.num_writes()
        cluster.await_that(lambda: labels_of(node) == ours, "our labels are restored, no others")
        cluster.await_written(*outputs)
        writes = [one for one in cluster.writes(written) if one.resource == NODES.plural]
        assert [one.name for one in writes] == [node] * 2, "one write for each of our managers"
        check_rest(cluster, Ports(generator))


def test_a_kind_that_is_missing_stops_no_other_output(
    cluster: OutputCluster, tmp_path: Path
) -> None:
    cluster.choose({"type": "labels"}, {"type": "kai"}, {"type": "grove"})
    with serving(cluster, tmp_path, *OFTEN):
        wanted = {"labels": "Written", "kai": "Refused", "grove": "NotServed"}
        cluster.await_that(lambda: cluster.states() == wanted, f"{wanted}")
        assert cluster.conditions()["OutputsWritten"] == "-Refused"
        assert "output-refused" in str(cluster.fabric()["status"]["findings"])


def test_a_topology_of_another_owner_stays(cluster: OutputCluster, tmp_path: Path) -> None:
    theirs = {"spec": {"levels": [{"nodeLabel": "rack"}]}, "metadata": {"name": "toponaut"}}
    head = {"apiVersion": KUEUE_TOPOLOGIES.api_version, "kind": KUEUE_TOPOLOGIES.kind}
    cluster.api.expect("POST", KUEUE_TOPOLOGIES.path(), {**head, **theirs})
    cluster.choose({"type": "labels"}, {"type": "kueue"})
    with serving(cluster, tmp_path, *OFTEN):
        wanted = {"labels": "Written", "kueue": "Conflict"}
        cluster.await_that(lambda: cluster.states() == wanted, f"{wanted}")
        found = cluster.api.expect("GET", KUEUE_TOPOLOGIES.path("toponaut"))
        assert found["spec"] == theirs["spec"]
        cluster.api.expect("DELETE", KUEUE_TOPOLOGIES.path("toponaut"))
        cluster.await_written({"type": "labels"}, {"type": "kueue"})


def test_a_topology_of_kai_changes_only_while_nothing_uses_it(
    cluster: OutputCluster, tmp_path: Path
) -> None:
    def levels() -> list[str]:
        found = cluster.api.request("GET", KAI_TOPOLOGIES.path("toponaut")).body
        return [row["nodeLabel"] for row in found.get("spec", {}).get("levels", [])]

    outputs: list[dict[str, Any]] = [{"type": "labels"}, {"type": "kai", "aliases": False}]
    cluster.choose(*outputs)
    with serving(cluster, tmp_path, *OFTEN):
        cluster.await_written(*outputs)
        assert levels()[-2:] == [LEAF, "kubernetes.io/hostname"]
        outputs[0]["labelPrefix"] = "fabric.example.org"
        cluster.choose(*outputs)
        cluster.await_that(
            lambda: "fabric.example.org/leaf" in levels(), "the Topology is replaced"
        )
        cluster.await_written(*outputs)
        assert cluster.labels() == {}


def test_one_refused_object_stops_no_other(cluster: OutputCluster, tmp_path: Path) -> None:
    refused = cluster.scene.hosts[3]
    cluster.choose({"type": "labels"}, {"type": "slinky"})
    with (
        refused_updates(cluster, refused),
        serving(cluster, tmp_path, *OFTEN, *PORT_OPTIONS) as one,
    ):
        wanted = {"labels": "Refused", "slinky": "Refused"}
        cluster.await_that(lambda: cluster.states() == wanted, f"{wanted}")
        assert cluster.labels().keys() == set(cluster.scene.hosts) - {refused}
        row, _ = cluster.fabric()["status"]["outputs"]
        assert (row["objects"], row["refused"]) == (len(cluster.scene.hosts) - 1, 1)
        assert refused in row["message"]
        check_rest(cluster, Ports(one))


@contextmanager
def refused_updates(cluster: OutputCluster, node: str) -> Iterator[None]:
    """Let an admission policy refuse all updates of one node.

    The API server follows its policies with a delay, so both ends wait until it does.
    """
    api, name = "/apis/admissionregistration.k8s.io/v1", "refuse-one-node"
    rule = {
        "apiGroups": [""],
        "apiVersions": ["*"],
        "operations": ["UPDATE"],
        "resources": ["nodes"],
    }
    policy = {
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": f"object.metadata.name != '{node}'"}],
        },
    }
    binding = {
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    kinds = ("validatingadmissionpolicies", "validatingadmissionpolicybindings")

    def is_refused() -> bool:
        path, change = f"{NODES.path(node)}?dryRun=All", {"metadata": {"labels": {"probe": "x"}}}
        return cluster.api.request("PATCH", path, change, content_type=MERGE).status == 422

    try:
        for kind, document in zip(kinds, (policy, binding), strict=True):
            cluster.api.expect("POST", f"{api}/{kind}", document)
        cluster.await_that(is_refused, "the policy is in force")
        yield
    finally:
        for kind in kinds:
            cluster.api.request("DELETE", f"{api}/{kind}/{name}")
        cluster.await_that(lambda: not is_refused(), "the policy is gone")


def test_apply_writes_and_removes_outputs_without_a_server(cluster: OutputCluster) -> None:
    outputs = [{"type": "hypernode"}, {"type": "labels"}, {"type": "kueue"}]
    cluster.choose(*outputs)
    options = ("--namespace", cluster.namespace)
    planned = toponaut(cluster, "plan", "--check", *options)
    assert planned.code == ExitCode.CHECK_FAILED
    num_hosts = len(cluster.scene.hosts)
    assert f"output labels Pending: 0 written, {num_hosts} to write" in planned.err
    assert cluster.labels() == {}
    applied = toponaut(cluster, "apply", *options)
    assert applied.code == ExitCode.OK, applied.err
    assert cluster.labels().keys() == set(cluster.scene.hosts)
    assert toponaut(cluster, "plan", "--check", *options).code == ExitCode.OK
    before = cluster.num_writes()
    assert toponaut(cluster, "apply", *options).code == ExitCode.OK
    assert cluster.writes(before) == [], "a second apply writes nothing"
