"""The installed command answers the cases from public reports, as their own runner judges."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.cases.__main__ import judge

FOLDER = Path(__file__).parents[2] / "fixtures" / "cases"
MACHINES = "machines"  # these run in one process: `test_machines`
CASES = [
    pytest.param(path.parent, id=path.parent.name)
    for path in sorted(FOLDER.glob("*/*/case.json"))
    if path.parent.parent.name != MACHINES
]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.timeout(60)
def test_it_answers(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", os.pathsep.join([programs, os.environ["PATH"]]))
    monkeypatch.setenv("COLUMNS", "160")
    assert judge(case) is None
