"""Shell wildcards: every option and every field that takes one refuses one that matches nothing."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from pydantic import ValidationError

from generator.objects.fabric import FabricSpec
from generator.objects.plane_config import RuleModel
from tests.ground.exit_rows import PROGRAMS, ROWS, commands
from tests.repository import ROOT

BROKEN = {
    "eth[0-": "has a [ without a ]",
    "eth[9-0]": "has the range 9-0, which is empty; expected 0-9",
}
USERS = {
    "agent/collectors/net_sysfs.py",
    "generator/cli/commands/fabric/links.py",
    "topology/planes/policy.py",
}
"""The modules that match wildcards: of `--interfaces`, of `--device`, and of the rules for
planes."""
OPTIONS = [
    (name, param)
    for name, command in commands()
    for param in command.params
    if isinstance(param, click.Option) and param.metavar == "PATTERN"
]
FIELDS = ["ports", "hosts", "switches"]


def test_only_known_modules_match_wildcards() -> None:
    packages = ("agent", "generator", "runtime", "topology")
    files = [file for package in packages for file in (ROOT / package).rglob("*.py")]
    found = {str(file.relative_to(ROOT)) for file in files if "fnmatch" in file.read_text()}
    assert found == USERS


def test_every_command_that_collects_has_a_pattern_option() -> None:
    names = {name for name, _ in OPTIONS} - {"toponaut links"}
    assert names == {f"toponaut-agent {one}" for one in ("once", "run", "collectors", "doctor")}


@pytest.mark.parametrize("source", ["option", "variable"])
@pytest.mark.parametrize("key", OPTIONS, ids=lambda key: f"{key[0]} {key[1].name}")
def test_an_option_refuses_a_broken_one(
    key: tuple[str, click.Option], source: str, inputs: dict[str, str], tmp_path: Path
) -> None:
    name, option = key
    program, *words = name.split()
    row = ROWS[name]
    words += row.words.format(**inputs).split()
    words += [row.output, str(tmp_path / "out")] if row.output else []
    prefix = "TOPONAUT_AGENT" if program == "toponaut-agent" else f"TOPONAUT_{words[0].upper()}"
    variable = f"{prefix}_{str(option.name).upper()}"
    for glob, fault in {**BROKEN, "": "is empty"}.items():
        if source == "variable" and not glob:
            continue  # an empty variable is an unset one
        given = [option.opts[0], glob] if source == "option" else []
        env = {variable: f"eth* {glob}"} if source == "variable" else {}
        result = CliRunner(env=env).invoke(PROGRAMS[program], [*words, *given])
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"pattern '{glob}' {fault}" in result.stderr


@pytest.mark.parametrize("field", FIELDS)
def test_a_rule_for_planes_refuses_a_broken_one(field: str) -> None:
    for glob, fault in BROKEN.items():
        planes = [{"name": "storage", "any": [{field: ["eth*", glob]}]}]
        with pytest.raises(ValidationError, match="pattern") as raised:
            FabricSpec.model_validate({"planes": planes})
        assert fault in str(raised.value)


def test_the_table_has_every_field_with_wildcards() -> None:
    lists = {name for name, field in RuleModel.model_fields.items() if "tuple" in str(field)}
    assert lists == {*FIELDS, "subnets"}
