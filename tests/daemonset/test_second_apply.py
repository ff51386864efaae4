"""A second apply on a real API server changes nothing, because no default is left to the server.

Argo CD and `kubectl diff` compare what is rendered with what the server keeps. Where they replace a
list as a whole, a default in it is a difference for ever: see
https://github.com/argoproj/argo-cd/issues/17643.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.daemonset.cases import CASES, Renderings
from tests.daemonset.clusters import bare_cluster
from tests.daemonset.test_installing import ABSENT, path_of
from tests.daemonset.test_moved_installs import plain
from tests.daemonset.test_rendering import CRDS
from tests.daemonset.tools import find_tool, run
from tests.documents import parse_documents
from tests.lab.api_server import ApiServer

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("chart")]
ASSIGNED: Final = {
    *(f"metadata.{key}" for key in ("uid", "resourceVersion", "generation", "creationTimestamp")),
    "metadata.managedFields",
    "metadata.annotations.deprecated.daemonset.template.generation",
    "status",
    # Addresses.
    *(f"spec.{key}" for key in ("clusterIP", "clusterIPs", "ipFamilies")),
    # A copy of serviceAccountName under its old name.
    "spec.template.spec.serviceAccount",
}
"""Fields that the server sets, and whose values nobody could write."""


def differences(sent: object, kept: object, at: str = "") -> Iterator[str]:
    """Yield each field that the server keeps otherwise than it was sent."""
    if at in ASSIGNED:
        return
    if isinstance(kept, dict) and isinstance(sent, dict | None):
        given: dict[str, Any] = sent or {}
        for key in kept | given:
            path = f"{at}.{key}" if at else str(key)
            yield from differences(given.get(key), kept.get(key), path)
        if sent is None and not kept:
            yield f"{at}: left out, {{}}"
    elif isinstance(kept, list) and isinstance(sent, list) and len(kept) == len(sent):
        for one, other in zip(sent, kept, strict=True):
            yield from differences(one, other, at)
    elif sent != kept:
        yield f"{at}: {sent!r}, {kept!r}"


def test_it_writes_out_what_the_server_would_add(
    cluster: ApiServer, renderings: Renderings
) -> None:
    query = "dryRun=All&fieldManager=test&force=true"
    documents = [one for case in CASES for one in renderings.of(case.name)]
    wrong = []
    # Most are the same in every case.
    for document in {json.dumps(one): one for one in documents}.values():
        if document["kind"] in ABSENT:
            continue
        # There is but one Fabric.
        ending = "" if document["kind"] == "Fabric" else "-dry"
        name = document["metadata"]["name"] + ending
        sent = {**document, "metadata": {**document["metadata"], "name": name}}
        kept = cluster.apply(f"{path_of(document, cluster)}{ending}?{query}", sent)
        wrong += [f"{document['kind']} {one}" for one in differences(sent, kept)]
    assert wrong == []


def test_its_kinds_leave_nothing_to_the_server(cluster: ApiServer) -> None:
    kinds = [yaml.safe_load(file.read_text()) for file in sorted(CRDS.iterdir())]
    kept = [cluster.expect("GET", path_of(one, cluster)) for one in kinds]
    pairs = zip(kinds, kept, strict=True)
    assert [row for one, other in pairs for row in differences(one["spec"], other["spec"])] == []


def test_it_notices_a_default_that_is_left_out() -> None:
    assert [*differences({"a": [{"b": 1}]}, {"a": [{"b": 1, "scope": "*"}], "c": {}})] == [
        "a.scope: None, '*'",
        "c: left out, {}",
    ]


@pytest.fixture
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with bare_cluster(tmp_path_factory.mktemp("twice")) as server:
        yield server


def test_the_plain_manifests_can_be_applied_twice(fresh: ApiServer, tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(plain())
    kubectl = [find_tool("kubectl"), f"--kubeconfig={fresh.kubeconfig()}"]
    for option in ("--server-side=false", "--server-side=true"):
        apply = [*kubectl, "apply", option, "-f", file]
        first = run(apply, home=tmp_path)
        assert first.returncode == 0, first.stderr
        versions = list_versions(fresh)
        diff = run([*kubectl, "diff", option, "-f", file], home=tmp_path)
        assert (diff.returncode, diff.stdout) == (0, "")
        assert run(apply, home=tmp_path).returncode == 0
        assert list_versions(fresh) == versions


def list_versions(api: ApiServer) -> dict[str, str]:
    """Return the version of each object of the plain manifests."""
    documents = parse_documents(plain())
    paths = [path_of(one, api) for one in documents]
    found = {path: api.expect("GET", path)["metadata"] for path in paths}
    # The server writes into the status of some kinds, which is no new generation.
    return {path: str(row.get("generation", row["resourceVersion"])) for path, row in found.items()}
