"""The engine is used from Python as the documentation shows."""

from __future__ import annotations

import re
import runpy
import subprocess  # noqa: TID251 - a fresh interpreter
import sys
from pathlib import Path

import pytest

import generator.placement as library

ROOT = Path(__file__).parents[3]


def test_the_documented_lines_print_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "placement.md").read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)```\nIt prints `(.*?)`", page, re.DOTALL)
    assert found is not None
    exec(compile(found[1], "placement.md", "exec"), {})  # noqa: S102 - our own page
    assert capsys.readouterr().out == f"{found[2]}\n"


def test_the_example_draws_every_pod_on_its_node(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "draw_placement.py"), run_name="__main__")
    drawn = capsys.readouterr().out
    assert {f"workers-{index}" for index in range(6)} <= set(drawn.split())
    assert drawn.endswith("proved: True\n")


@pytest.mark.parametrize("name", library.__all__)
def test_each_public_name_is_there(name: str) -> None:
    assert getattr(library, name).__name__ == name


def test_the_package_alone_loads_nothing() -> None:
    code = "import sys, generator.placement; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
