"""The captures of `make demo` equal the output of the command in their SOURCE.md."""

import json
import re
from pathlib import Path

import pytest

from tests.generator.scenes import run
from tests.repository import ROOT

DEMO = ROOT / "fixtures" / "demo"


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the command in SOURCE.md, and return its folder."""
    match = re.search(r"`toponaut (simulate .*) --out DIR`", (DEMO / "SOURCE.md").read_text())
    assert match
    out = tmp_path_factory.mktemp("demo") / "fabric"
    assert run(*match[1].split(), "--out", out).code == 0
    return out


def test_it_has_the_sysfs_that_the_command_writes_today(simulated: Path) -> None:
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


def test_it_has_the_sweep_that_the_command_writes_today(simulated: Path) -> None:
    (made,) = (simulated / "ibnetdiscover").iterdir()
    assert (DEMO / "ibnetdiscover.txt").read_bytes() == made.read_bytes()


def test_it_has_the_nodes_that_the_command_writes_today(simulated: Path) -> None:
    assert (DEMO / "nodes.yaml").read_bytes() == (simulated / "nodes.yaml").read_bytes()
