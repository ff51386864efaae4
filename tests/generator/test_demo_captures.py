"""The captures of `make demo`: what SOURCE.md says they are."""

import re
from pathlib import Path

import pytest

from tests.generator.scenes import run
from tests.repository import ROOT

DEMO = ROOT / "fixtures" / "demo"


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the command that SOURCE.md names."""
    found = re.search(r"`toponaut (simulate .*) --out DIR`", (DEMO / "SOURCE.md").read_text())
    assert found
    out = tmp_path_factory.mktemp("demo") / "fabric"
    assert run(*found[1].split(), "--sysfs-hosts", 0, "--out", out).code == 0
    return out


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_it_shows_reports_that_the_command_gives_today(simulated: Path) -> None:
    assert contents(DEMO / "neighborreports") == contents(simulated / "reports")


def test_it_lists_the_nodes_that_the_command_gives_today(simulated: Path) -> None:
    assert (DEMO / "nodes.yaml").read_bytes() == (simulated / "nodes.yaml").read_bytes()
