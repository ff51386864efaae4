"""The captures of `make demo`: what SOURCE.md says they are."""

import json
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
    assert run(*found[1].split(), "--out", out).code == 0
    return out


def test_it_shows_what_the_command_makes_of_sysfs_today(simulated: Path) -> None:
    root = simulated / "sysfs"
    made = {
        node.name: {
            str(file.relative_to(node)): file.read_text()
            for file in sorted(node.rglob("*"))
            if file.is_file()
        }
        for node in sorted(root.iterdir())
    }
    assert json.loads((DEMO / "sysfs.json").read_text()) == made


def test_it_shows_the_sweep_that_the_command_gives_today(simulated: Path) -> None:
    (made,) = (simulated / "ibnetdiscover").iterdir()
    assert (DEMO / "ibnetdiscover.txt").read_bytes() == made.read_bytes()


def test_it_lists_the_nodes_that_the_command_gives_today(simulated: Path) -> None:
    assert (DEMO / "nodes.yaml").read_bytes() == (simulated / "nodes.yaml").read_bytes()
