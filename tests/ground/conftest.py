"""The inputs of the commands."""

import pytest

from tests.ground.exit_rows import write_inputs


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return write_inputs(tmp_path_factory.mktemp("inputs"))
