"""Helm on a real API server: install, upgrade and uninstall, and the objects that stay."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from generator.kube.resources import FABRICS, HYPERNODES, LEASES, REPORTS
from tests.daemonset.callers import named
from tests.daemonset.cases import CASES, Renderings
from tests.daemonset.clusters import Release, inventory
from tests.daemonset.tools import NAMESPACE
from tests.kube.examples import made
from tests.lab.api_server import ApiServer
from tests.lab.wait import wait_until
from tests.repository import ROOT

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("chart")]

# Kinds of others that the lab does not have; their operators bring them.
ABSENT = {"Certificate", "PodMonitor", "PrometheusRule", "SecurityContextConstraints"}
KINDS = ("fabrics", "neighborreports", "placementreservations", "treerecords")


def path_of(document: Mapping[str, Any], api: ApiServer) -> str:
    """Return where the server keeps an object."""
    version, kind, metadata = document["apiVersion"], document["kind"], document["metadata"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    served = api.expect("GET", root)["resources"]
    plural = next(one["name"] for one in served if one["kind"] == kind and "/" not in one["name"])
    space = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    return f"{root}{space}/{plural}/{metadata['name']}"


def wait_for_kinds(api: ApiServer) -> None:
    for path in (f"/apis/toponaut.io/v1alpha1/{kind}" for kind in KINDS):
        wait_until(
            lambda path=path: api.request("GET", path).status != 200,  # type: ignore[misc]  # a default binds the loop's value
            deadline_s=30,
            what=f"{path} can be listed",
        )


def leave_traces(api: ApiServer) -> set[tuple[str, str]]:
    """Make what the programs make while they run, and return what stays of it."""
    source = {"volcano.sh/network-topology-source": "toponaut"}
    member = {"type": "Node", "selector": {"exactMatch": {"name": "n1"}}}
    lease = LEASES.path("toponaut-generator", namespace=NAMESPACE)
    objects: dict[str, dict[str, Any]] = {
        FABRICS.path("default"): {"spec": {}},
        REPORTS.path("n1"): {"spec": made(REPORTS)["spec"] | {"ports": []}},
        HYPERNODES.path("leaf-1"): {
            "metadata": {"labels": source},
            "spec": {"tier": 1, "members": [member]},
        },
        lease: {"spec": {"holderIdentity": "pod-1"}},
    }
    kinds = {one.path(): one for one in (FABRICS, REPORTS, HYPERNODES)}
    for path, body in objects.items():
        resource = kinds.get(path.rsplit("/", 1)[0], LEASES)
        head = {"apiVersion": resource.api_version, "kind": resource.kind}
        answer = api.apply(f"{path}?fieldManager=test", named(path, head | body))
        assert answer["metadata"]["name"] == path.rsplit("/", 1)[1]
    return {
        ("fabrics.toponaut.io", "default"),
        ("neighborreports.toponaut.io", "n1"),
        ("hypernodes.topology.volcano.sh", "leaf-1"),
        (f"leases.coordination.k8s.io in {NAMESPACE}", "toponaut-generator"),
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_it_passes_a_dry_run_on_the_server(
    case: Path, cluster: ApiServer, renderings: Renderings
) -> None:
    query = "dryRun=All&fieldManager=test&force=true&fieldValidation=Strict"
    for document in renderings.of(case.name):
        if document["kind"] not in ABSENT:
            # Under another name, else it would be merged with what is installed; there is but
            # one Fabric.
            ending = "" if document["kind"] == "Fabric" else "-dry"
            path = path_of(document, cluster) + ending
            cluster.apply(f"{path}?{query}", named(path, document))


def test_it_leaves_nothing_but_what_is_said_to_stay(bare: ApiServer, tmp_path: Path) -> None:
    before = inventory(bare)
    release = Release(bare, tmp_path)
    release.install()
    wait_for_kinds(bare)
    traces = leave_traces(bare)
    # Upgrading is the same command again.
    release.install("--set=sweep.enabled=true,sweep.privileged=true")
    assert ("daemonsets.apps in toponaut-system", "toponaut-sweeper") in inventory(bare)
    release.uninstall()
    kinds = {
        ("customresourcedefinitions.apiextensions.k8s.io", f"{one}.toponaut.io") for one in KINDS
    }
    kinds |= {("apiservices.apiregistration.k8s.io", "v1alpha1.toponaut.io")}
    assert inventory(bare) - before == traces | kinds | {("namespaces", NAMESPACE)}
    assert before <= inventory(bare)


def test_it_says_in_the_docs_what_stays() -> None:
    text = (ROOT / "docs" / "install.md").read_text()
    (section,) = re.findall(r"^## Uninstall\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    for word in ("CRDs", "NeighborReports", "Fabric", "HyperNodes", "Lease", "namespace"):
        assert word in section
