"""The scheduler of Kubernetes and the engine allow the same nodes for random pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from generator.objects.inventory import Inventory, build_node_specs, parse_node
from generator.placement.cluster.snapshot import Snapshot, build_snapshot
from generator.placement.request import parse_request
from tests.effort import examples
from tests.generator.manifests.scenes import job, translated
from tests.generator.placement.documents import racks
from tests.generator.placement.selections import Node, nodes, pod_specs
from tests.live.gangs import add_ready_node
from tests.live.kube_cluster import KubeCluster, kube_cluster

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("live")]
PIN = "pin"
"""A label by which a pod is tried on one node."""
PODS_PER_CLUSTER = 12
EVERY_TAINT = {"tolerations": [{"operator": "Exists"}]}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeCluster]:
    with kube_cluster(tmp_path_factory.mktemp("live")) as found:
        yield found


def replace_nodes(cluster: KubeCluster, listed: list[Node]) -> None:
    """Give the cluster these nodes, and wait until the scheduler knows them."""
    cluster.api.expect("DELETE", "/api/v1/nodes")
    for node in listed:
        name, taints = node["metadata"]["name"], node["spec"]["taints"]
        add_ready_node(cluster.api, name, node["metadata"]["labels"] | {PIN: name}, taints)
    cluster.try_pods([EVERY_TAINT | pinned_to(node) for node in listed], waits=True)


def pinned_to(node: Node) -> dict[str, Any]:
    return {"nodeSelector": {PIN: node["metadata"]["name"]}}


def read_snapshot(cluster: KubeCluster) -> Snapshot:
    items = cluster.api.expect("GET", "/api/v1/nodes")["items"]
    listed = Inventory(tuple(parse_node(item | {"kind": "Node"}) for item in items), ())
    return build_snapshot(racks(3), build_node_specs(listed, ()))


def find_allowed(snapshot: Snapshot, spec: dict[str, Any]) -> set[str]:
    made = job(parallelism=1, template={"spec": {"containers": [{"name": "c"}], **spec}})
    (group,) = parse_request(translated(made).document).groups
    masks = snapshot.allowed_by_cause(group).values()
    return {row.name for at, row in enumerate(snapshot.specs) if all(mask[at] for mask in masks)}


@settings(
    max_examples=examples(60),
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    listed=nodes(),
    specs=st.lists(pod_specs, min_size=PODS_PER_CLUSTER, max_size=PODS_PER_CLUSTER),
)
def test_it_allows_what_kube_scheduler_allows(
    cluster: KubeCluster, listed: list[Node], specs: list[dict[str, Any]]
) -> None:
    replace_nodes(cluster, listed)
    pinned = [
        spec | {"nodeSelector": spec.get("nodeSelector", {}) | pinned_to(node)["nodeSelector"]}
        for spec in specs
        for node in listed
    ]
    judged, num = cluster.try_pods(pinned), len(listed)
    allowed = [set(judged[start : start + num]) - {""} for start in range(0, len(judged), num)]
    snapshot = read_snapshot(cluster)
    found = [(spec, find_allowed(snapshot, spec)) for spec in specs]
    assert [row for row, of_kube in zip(found, allowed, strict=True) if row[1] != of_kube] == []
