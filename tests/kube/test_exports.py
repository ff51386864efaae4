"""Exported objects on a real API server, with the CRDs of the schedulers that read them."""

from typing import Any

import pytest

from generator.outputs.catalog import render_export
from generator.outputs.formats import ExportFormat, ExportSettings, FlavorSpec, LabelFamily
from tests.lab.api_server import APPLY, ApiServer, find_assets
from topology.model.tree import DomainSpec, TopologyTree, Unplaced, build_tree

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube")]

TREE = build_tree(
    [
        DomainSpec("spine-1", 2, None),
        DomainSpec("leaf-1", 1, "spine-1", ("export-a", "export-b")),
        DomainSpec("leaf-2", 1, "spine-1", ("export-c",)),
    ],
    tiers=("leaf", "spine"),
    unplaced=[Unplaced("export-d", "no report")],
)
PATHS = {
    "Node": "/api/v1/nodes",
    "ConfigMap": "/api/v1/namespaces/{namespace}/configmaps",
    "Topology": "/apis/{version}/topologies",
    "ResourceFlavor": "/apis/{version}/resourceflavors",
    "ClusterNetworkTopology": "/apis/{version}/clusternetworktopologies",
    "NodeFeature": "/apis/{version}/namespaces/{namespace}/nodefeatures",
}
FORMATS = (
    ExportFormat.LABELS,
    ExportFormat.KUEUE,
    ExportFormat.KAI,
    ExportFormat.KOORDINATOR,
    ExportFormat.SLINKY,
    ExportFormat.NFD,
    ExportFormat.CONFIG_MAP,
)


@pytest.fixture(scope="module")
def nodes(api: ApiServer) -> TopologyTree:
    """The tree of nodes that exist, with the kinds of all consumers installed."""
    api.install_all(find_assets("consumers"))
    for name in (*TREE.nodes, "export-d"):
        api.expect("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": {"own": "x"}}})
    return TREE


@pytest.mark.parametrize("chosen", FORMATS)
def test_the_server_takes_every_field(
    api: ApiServer, nodes: TopologyTree, namespace: str, chosen: ExportFormat
) -> None:
    settings = ExportSettings(
        namespace=namespace,
        label_families=tuple(LabelFamily),
        flavor=FlavorSpec("gpu", {"node-role": "gpu"}),
        has_aliases=False,
    )
    export = render_export(nodes, chosen, settings)
    assert export.documents
    assert export.left_out == ()
    versions = [apply(api, document, namespace) for document in export.documents]
    again = [apply(api, document, namespace) for document in export.documents]
    assert again == versions, "the second time nothing is written"


def apply(api: ApiServer, document: dict[str, Any], namespace: str) -> str:
    """Apply one object as kubectl does, with strict fields; return its version."""
    path = PATHS[document["kind"]].format(version=document["apiVersion"], namespace=namespace)
    name = document["metadata"]["name"]
    answer = api.request(
        "PATCH",
        f"{path}/{name}?fieldManager=toponaut-export&fieldValidation=Strict",
        document,
        content_type=APPLY,
    )
    assert answer.status in {200, 201}, answer.message
    for part in ("labels", "annotations"):
        wanted = document["metadata"].get(part, {})
        found = answer.body["metadata"].get(part, {})
        assert wanted.items() <= found.items()
    for field in document.keys() - {"apiVersion", "kind", "metadata"}:
        assert answer.body[field] == document[field]
    return str(answer.body["metadata"]["resourceVersion"])


def test_labels_of_others_stay(api: ApiServer, nodes: TopologyTree) -> None:
    for document in render_export(nodes, ExportFormat.LABELS, ExportSettings()).documents:
        apply(api, document, "")
        found = api.expect("GET", f"/api/v1/nodes/{document['metadata']['name']}")
        assert found["metadata"]["labels"]["own"] == "x"
