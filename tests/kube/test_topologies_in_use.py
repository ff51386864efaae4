"""A Topology whose levels cannot change: it stays while it is used, and is replaced afterwards."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from generator.kube.resources import Resource
from generator.reconcile.rendered import (
    KAI_POD_GROUPS,
    KAI_TOPOLOGIES,
    KUEUE_TOPOLOGIES,
    RESOURCE_FLAVORS,
)
from tests.kube.servers import PORT_OPTIONS, Ports, serving
from tests.kube.test_outputs import MERGE, OFTEN, OutputCluster, check_rest, cluster

__all__ = ["cluster"]
pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube serving")]

FINALIZER = "example.org/in-use"
USERS: Mapping[str, tuple[Resource, dict[str, Any]]] = {
    "kueue": (RESOURCE_FLAVORS, {"nodeLabels": {"a": "b"}, "topologyName": "toponaut"}),
    "kai": (KAI_POD_GROUPS, {"minMember": 1, "topologyConstraint": {"topology": "toponaut"}}),
}
"""An object of an admin that names the Topology of each output."""


def metadata_of(cluster: OutputCluster, topologies: Resource) -> Mapping[str, Any]:
    found: Mapping[str, Any] = cluster.api.expect("GET", topologies.path("toponaut"))["metadata"]
    return found


def set_finalizers(cluster: OutputCluster, topologies: Resource, *names: str) -> None:
    """Set the finalizers of the Topology, as its scheduler does."""
    path = f"{topologies.path('toponaut')}?fieldManager=scheduler"
    change = {"metadata": {"finalizers": list(names)}}
    answer = cluster.api.request("PATCH", path, change, content_type=MERGE)
    assert answer.status == 200, answer.message


@pytest.mark.long
@pytest.mark.parametrize("kind", USERS)
def test_a_topology_in_use_stays_until_nothing_uses_it(
    cluster: OutputCluster, tmp_path: Path, kind: str
) -> None:
    topologies = {"kueue": KUEUE_TOPOLOGIES, "kai": KAI_TOPOLOGIES}[kind]
    resource, spec = USERS[kind]
    if resource == KAI_POD_GROUPS:
        resource = resource._replace(namespace=cluster.namespace)

    def levels() -> list[str]:
        found = cluster.api.request("GET", topologies.path("toponaut")).body
        return [row["nodeLabel"] for row in found.get("spec", {}).get("levels", [])]

    outputs: list[dict[str, Any]] = [{"type": "labels"}, {"type": kind}]
    if kind == "kai":
        outputs[1]["aliases"] = False
    cluster.choose(*outputs)
    with serving(cluster, tmp_path, *OFTEN, *PORT_OPTIONS) as generator:
        cluster.await_written(*outputs)
        head = {"apiVersion": resource.api_version, "kind": resource.kind}
        user = {**head, "metadata": {"name": "user"}, "spec": spec}
        cluster.api.expect("POST", resource.path(), user)
        before, started = levels(), cluster.num_writes()
        set_finalizers(cluster, topologies, FINALIZER)
        outputs[0]["labelPrefix"] = "fabric.example.org"
        cluster.choose(*outputs)
        cluster.await_that(lambda: cluster.states().get(kind) == "Refused", "it is in use")
        (row,) = (row for row in cluster.fabric()["status"]["outputs"] if row["type"] == kind)
        assert f"cannot change while the {resource.kind} user uses it" in row["message"]
        assert levels() == before
        assert "output-refused" in str(cluster.fabric()["status"]["findings"])
        cluster.await_that(lambda: len(cluster.labels("fabric.example.org/leaf")) > 1, "the rest")
        check_rest(cluster, Ports(generator))
        cluster.api.expect("DELETE", resource.path("user", namespace=resource.namespace))
        cluster.await_that(
            lambda: "deletionTimestamp" in metadata_of(cluster, topologies), "it is being deleted"
        )
        set_finalizers(cluster, topologies)
        cluster.await_written(*outputs)
        assert "fabric.example.org/leaf" in levels()
        refused = [one for one in cluster.writes(started) if one.resource == topologies.plural]
        changes = [one for one in refused if one.verb == "patch" and one.code == 422]
        assert 2 <= len(changes) <= 5, "none while it is in use, a few until it is deleted"
