"""What is rendered once for all tests of this folder."""

import pytest

from tests.daemonset.cases import Renderings


@pytest.fixture(scope="session")
def renderings(tmp_path_factory: pytest.TempPathFactory) -> Renderings:
    """What each case of `fixtures/chart` renders."""
    return Renderings(tmp_path_factory.mktemp("helm"))
