"""One API server for all tests of this folder, with our kinds and Volcano's.

Each test works in a namespace of its own, or with names that no other test has.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from generator.kube.credentials import load_kubeconfig
from generator.kube.transport import KubeTransport
from tests.kube.proxy import FaultProxy
from tests.lab.api_server import ApiServer, find_assets
from tests.live.kube_cluster import GATES, GROUPS
from tests.repository import ROOT

CRDS = ROOT / "daemonset" / "crds"
WRITER = "writer"
"""Has every right, but differs from the administrator that the tests use."""


@pytest.fixture(scope="package")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server with our kinds that no test stops."""
    folder = tmp_path_factory.mktemp("api")
    with ApiServer(find_assets("programs"), folder, users=[WRITER]) as server:
        prepare(server)
        yield server


@pytest.fixture(scope="package")
def spare_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A second server, for `other_api`; it also has the gangs of Kubernetes, unless it is older."""
    folder, programs = tmp_path_factory.mktemp("other-api"), find_assets("programs")
    # With groups that it lacks, a server waits for ever for their informers.
    is_older = programs.name.startswith("older")
    options = () if is_older else (GATES, f"--runtime-config={GROUPS}=true")
    with ApiServer(programs, folder, users=[WRITER], options=options) as server:
        prepare(server)
        yield server


@pytest.fixture
def other_api(spare_api: ApiServer) -> ApiServer:
    """A server to stop, hang and restart; it runs when a test begins."""
    spare_api.revive()
    return spare_api


@pytest.fixture(scope="package")
def volcano(api: ApiServer) -> ApiServer:
    """The server with Volcano's HyperNode and PodGroup, as its module publishes them."""
    return with_volcano(api)


@pytest.fixture
def namespace(api: ApiServer) -> str:
    """A namespace that no other test has."""
    return api.namespace()


@pytest.fixture
def transport(api: ApiServer) -> Iterator[KubeTransport]:
    """A connection of ours, with every right."""
    with connecting(api) as found:
        yield found


@pytest.fixture
def proxy(api: ApiServer) -> Iterator[FaultProxy]:
    """The proxy between us and the server, which fails as a test says."""
    with FaultProxy(api) as between:
        yield between


@pytest.fixture
def through(proxy: FaultProxy, api: ApiServer) -> Iterator[KubeTransport]:
    """A connection through the proxy."""
    with connecting(api, proxy.url) as found:
        yield found


def with_volcano(api: ApiServer) -> ApiServer:
    """Install Volcano's kinds, unless they exist."""
    api.install_all(find_assets("crds"))
    return api


@contextmanager
def connecting(api: ApiServer, url: str = "") -> Iterator[KubeTransport]:
    """Yield a connection with every right, to another address if given."""
    file = str(api.kubeconfig(WRITER, url=url))
    found = KubeTransport(lambda: load_kubeconfig(file))
    try:
        yield found
    finally:
        found.close()


def prepare(server: ApiServer) -> None:
    server.install_all(CRDS)
    binding = {
        "metadata": {"name": WRITER},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "all"},
        "subjects": [{"kind": "User", "name": WRITER}],
    }
    role = {
        "metadata": {"name": "all"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
    }
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    server.expect("POST", f"{rbac}/clusterroles", role)
    server.expect("POST", f"{rbac}/clusterrolebindings", binding)
