"""The programs read the sysfs trees of machine types right, as the runner of cases judges.

Each folder of fixtures/cases/machines has the sysfs trees and the answers of lldpd of some hosts.
A case with `fails` is known to fall, for the reason that it gives. The commands run in this
process, because each case has a dozen of them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from agent.cli.commands import cli as agent_cli
from generator.cli.group import cli
from tests.cases.__main__ import Outcome, judge
from tests.cases.test_cases import FOLDER, MACHINES

PROGRAMS = {"toponaut": cli, "toponaut-agent": agent_cli}


def list_cases() -> list[object]:
    cases: list[object] = []
    for file in sorted((FOLDER / MACHINES).glob("*/case.json")):
        reason = json.loads(file.read_text()).get("fails")
        marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
        cases.append(pytest.param(file.parent, id=file.parent.name, marks=marks))
    return cases


@pytest.mark.parametrize("case", list_cases())
@pytest.mark.timeout(60)
def test_it_reads(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def execute(arguments: list[str], folder: Path) -> Outcome:
        monkeypatch.chdir(folder)
        done = CliRunner().invoke(PROGRAMS[arguments[0]], arguments[1:])
        return Outcome(done.exit_code, done.stdout, done.stderr, folder)

    monkeypatch.setenv("COLUMNS", "160")
    try:
        assert judge(case, execute) is None
    finally:
        monkeypatch.undo()
