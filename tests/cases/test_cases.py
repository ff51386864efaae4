"""The installed command answers the cases from public reports, as their own runner judges."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.cases.__main__ import judge

FOLDER = Path(__file__).parents[2] / "fixtures" / "cases"
MACHINES = "machines"  # these run in one process: `test_machines`
ONE_ID = "one strong id counts as one device"
ONE_END = "an id or text of one end decides which port it is"
KNOWN_FAULTS = {
    "01-nxos-chassis-id-per-port": ONE_ID,
    "01-nxos-chassis-id-per-port--no-mgmt-ip": ONE_ID,
    "02-sonic-one-mac-for-all-ports": ONE_END,
    "02-sonic-one-mac-for-all-ports--hosts-only": ONE_END,
    "02-sonic-one-mac-for-all-ports--walks": ONE_END,
    "07-bluefield-soc-behind-the-nic": ONE_ID,
    "07-bluefield-soc-behind-the-nic--one-rack": ONE_ID,
}
"""Cases whose answer is wrong today, each with its reason: they need another join of ids."""
CASES = [
    pytest.param(
        path.parent,
        id=path.parent.name,
        marks=[pytest.mark.xfail(reason=KNOWN_FAULTS[path.parent.name], strict=True)]
        if path.parent.name in KNOWN_FAULTS
        else [],
    )
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
