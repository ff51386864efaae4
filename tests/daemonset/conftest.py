"""What is rendered once for all tests of this folder, and one server with the chart on it."""

from collections.abc import Iterator

import pytest

from tests.daemonset.cases import Renderings
from tests.daemonset.clusters import Release, bare_cluster
from tests.lab.api_server import ApiServer

SETTINGS = "grpc.enabled=true,generator.switchesSecret=switches"
"""With these the generator has every right that the chart can give it."""


@pytest.fixture(scope="session")
def renderings(tmp_path_factory: pytest.TempPathFactory) -> Renderings:
    """What each case of `fixtures/chart` renders."""
    return Renderings(tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="package")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server with Volcano's kinds, as it is before Toponaut."""
    with bare_cluster(tmp_path_factory.mktemp("bare")) as server:
        yield server


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server with Volcano's kinds on which Helm has installed the chart."""
    with bare_cluster(tmp_path_factory.mktemp("cluster")) as server:
        Release(server, tmp_path_factory.mktemp("helm")).install(f"--set={SETTINGS}")
        yield server
