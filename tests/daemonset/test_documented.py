"""docs/install.md as a reader follows it: its lines, word for word, by Helm and kubectl."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from generator.kube.resources import HYPERNODES, NODES
from tests.daemonset.clusters import bare_cluster, inventory
from tests.daemonset.readers import Reader, written
from tests.daemonset.test_installing import KINDS, leave_traces, wait_for_kinds
from tests.daemonset.tools import NAMESPACE
from tests.lab.api_server import MERGE, ApiServer
from tests.repository import ROOT

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("chart")]

PAGE = "install.md"
SPACE = "kubectl delete namespace toponaut-system"


@pytest.fixture
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A cluster with Volcano's kinds, as it is before Toponaut."""
    with bare_cluster(tmp_path_factory.mktemp("fresh")) as server:
        yield server


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
STUCK = "storage is (re)initializing"


@contextmanager
def waking_finalizer(api: ApiServer) -> Iterator[None]:
    """Touch kinds that the API server stopped deleting, because they had just been installed.

    kube-apiserver 1.36.3 under load: the first try to list the objects of such a kind fails, the
    condition Terminating says so, and no further try follows for minutes unless the kind changes.
    """
    done = Event()

    def wake() -> None:
        number = 0
        while not done.wait(timeout=1):
            for row in api.expect("GET", CRDS)["items"]:
                if any(STUCK in one["message"] for one in row["status"]["conditions"]):
                    number += 1
                    touch = {"metadata": {"annotations": {"touched": str(number)}}}
                    path = f"{CRDS}/{row['metadata']['name']}"
                    api.request("PATCH", path, touch, content_type=MERGE)

    thread = Thread(target=wake)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_the_page_for_a_first_cluster_installs_by_the_same_lines() -> None:
    assert written("first-cluster.md", "Install")[0] == written(PAGE, "Install")[0]


def test_its_lines_install_show_and_remove_everything(fresh: ApiServer, tmp_path: Path) -> None:
    before = inventory(fresh)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    fresh.expect("POST", NODES.path(), node)
    reader = Reader(tmp_path, fresh)
    install, look = written(PAGE, "Install")
    reader.type(install)
    leave_traces(fresh)
    shown = reader.type(look)
    assert re.search(r"fabric\.toponaut\.io/default", shown), shown
    assert re.search(r"neighborreport\.toponaut\.io/n1", shown), shown
    uninstall, _, remove = written(PAGE, "Uninstall")
    reader.type(uninstall)
    assert fresh.request("GET", HYPERNODES.path("leaf-1")).status == 200
    # Nothing here finalizes namespaces: that is the controller manager's.
    with waking_finalizer(fresh):
        reader.type(remove.replace(SPACE, f"{SPACE} --wait=false"))
    left = {
        (kind, name)
        for kind, name in inventory(fresh) - before
        if not kind.endswith(" in toponaut-system") and kind not in {"namespaces", "nodes"}
    }
    assert left == set()
    assert fresh.request("GET", HYPERNODES.path("leaf-1")).status == 404


def test_its_lines_add_a_plugin_to_kubectl_and_install_again_over_what_stayed(
    fresh: ApiServer, tmp_path: Path
) -> None:
    reader = Reader(tmp_path, fresh)
    prepare, helm, rest = written(PAGE, "Install")[0].partition("helm ")
    reader.type(prepare + helm + rest)
    assert "toponaut" in reader.type("kubectl plugin list 2>/dev/null")
    assert reader.type("kubectl toponaut --version") == reader.type("toponaut --version")
    traces = leave_traces(fresh)
    reader.type(written(PAGE, "Uninstall")[0])
    reader.type(helm + rest)
    assert traces <= inventory(fresh)
    assert ("deployments.apps in toponaut-system", "toponaut-generator") in inventory(fresh)


def test_plain_manifests_lose_no_data_and_helm_takes_their_kinds_over(
    fresh: ApiServer, tmp_path: Path
) -> None:
    text = (ROOT / "docs" / PAGE).read_text()
    (line,) = re.findall(r"Without Helm: `(kubectl apply [^`]*)`", text)
    reader = Reader(tmp_path, fresh)
    prepare, helm, rest = written(PAGE, "Install")[0].partition("helm ")
    before = inventory(fresh)
    reader.type(prepare)
    reader.type(line)
    assert "fabrics.toponaut.io" in reader.type("kubectl get crd -o name")
    wait_for_kinds(fresh)
    traces = leave_traces(fresh)
    reader.type(written(PAGE, "Uninstall")[1])
    kinds = {
        ("customresourcedefinitions.apiextensions.k8s.io", f"{one}.toponaut.io") for one in KINDS
    }
    kinds |= {("apiservices.apiregistration.k8s.io", "v1alpha1.toponaut.io")}
    assert inventory(fresh) - before == traces | kinds | {("namespaces", NAMESPACE)}
    assert "invalid ownership metadata" in reader.type(f"! {helm}{rest.rstrip()} 2>&1")
    reader.type(written(PAGE, "Install again")[0])
    assert traces | kinds <= inventory(fresh)
