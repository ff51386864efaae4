"""What is rendered once for all tests of this folder, and one server with the chart on it."""

from collections.abc import Iterator

import pytest
import yaml

from tests.daemonset.cases import Renderings
from tests.daemonset.clusters import Release
from tests.lab.api_server import ApiServer, find_assets

SETTINGS = "grpc.enabled=true,generator.switchesSecret=switches"
"""With these the generator has every right that the chart can give it."""


@pytest.fixture(scope="session")
def renderings(tmp_path_factory: pytest.TempPathFactory) -> Renderings:
    """What each case of `fixtures/chart` renders."""
    return Renderings(tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server with Volcano's kinds, as it is before Toponaut."""
    with ApiServer(find_assets("programs"), tmp_path_factory.mktemp("bare")) as server:
        for file in sorted(find_assets("crds").iterdir()):
            server.install(yaml.safe_load(file.read_text()))
        yield server


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server with Volcano's kinds on which Helm has installed the chart."""
    with ApiServer(find_assets("programs"), tmp_path_factory.mktemp("cluster")) as server:
        for file in sorted(find_assets("crds").iterdir()):
            server.install(yaml.safe_load(file.read_text()))
        Release(server, tmp_path_factory.mktemp("helm")).install(f"--set={SETTINGS}")
        yield server
