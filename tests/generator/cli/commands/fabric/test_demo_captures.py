"""The captures of `make demo` equal the output of the command in their SOURCE.md."""

import json
import re
from pathlib import Path

from tests.generator.scenes import run
from tests.repository import ROOT

DEMO = ROOT / "fixtures" / "demo"


def test_each_capture_is_what_the_command_writes_today(tmp_path: Path) -> None:
    match = re.search(r"`toponaut (simulate .*) --out DIR`", (DEMO / "SOURCE.md").read_text())
    assert match
    out = tmp_path / "fabric"
    assert run(*match[1].split(), "--out", out).code == 0
    made = {
        node.name: {
            str(file.relative_to(node)): file.read_text()
            for file in sorted(node.rglob("*"))
            if file.is_file()
        }
        for node in sorted((out / "sysfs").iterdir())
    }
    assert json.loads((DEMO / "sysfs.json").read_text()) == made
    (sweep,) = (out / "ibnetdiscover").iterdir()
    assert (DEMO / "ibnetdiscover.txt").read_bytes() == sweep.read_bytes()
    assert (DEMO / "nodes.yaml").read_bytes() == (out / "nodes.yaml").read_bytes()
