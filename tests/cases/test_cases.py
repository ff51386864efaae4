"""The programs answer the cases from public reports, as their own runner judges.

The commands run in this process; one case of a folder runs the installed programs. Each folder of
`machines` has the sysfs trees and the answers of lldpd of some hosts. A case with `fails` is
known to fall, for the reason that it gives.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from agent.cli.commands import cli as agent_cli
from generator.cli.group import cli
from tests.cases.__main__ import Outcome, execute, judge
from tests.repository import ROOT

CASES = ROOT / "fixtures/cases"
PROGRAMS = {"toponaut": cli, "toponaut-agent": agent_cli}

pytestmark = pytest.mark.timeout(60)


def list_cases() -> list[object]:
    cases: list[object] = []
    for file in sorted(CASES.glob("*/*/case.json")):
        reason = json.loads(file.read_text()).get("fails")
        marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
        cases.append(pytest.param(file.parent, id=file.parent.name, marks=marks))
    return cases


@pytest.mark.parametrize("case", list_cases())
def test_it_answers(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def execute_here(arguments: list[str], folder: Path) -> Outcome:
        monkeypatch.chdir(folder)
        done = CliRunner().invoke(PROGRAMS[arguments[0]], arguments[1:])
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Outcome(done.exit_code, done.stdout, done.stderr, folder)

    monkeypatch.setenv("COLUMNS", "160")
    try:
        assert judge(case, execute_here) is None
    finally:
        monkeypatch.undo()


@pytest.mark.parametrize("name", ["cluster", "discovery", "further"])
def test_the_installed_programs_answer_as_well(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", os.pathsep.join([programs, os.environ["PATH"]]))
    monkeypatch.setenv("COLUMNS", "160")
    first = min((CASES / name).glob("*/case.json")).parent
    assert judge(first, execute) is None
