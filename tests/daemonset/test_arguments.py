"""The programs accept the arguments that the chart passes."""

from pathlib import Path

import click
import pytest

import agent.cli.commands
import generator.cli.group
from tests.daemonset.cases import CASES, Renderings
from tests.daemonset.tools import DEADLINE_S

pytestmark = [pytest.mark.lab, pytest.mark.timeout(2 * DEADLINE_S)]
PROGRAMS = {"agent": agent.cli.commands.cli, "generator": generator.cli.group.cli}


def options_of(program: click.Group, command: str) -> set[str]:
    """Return the options of a command, each with `=` where it takes a value."""
    found = program.get_command(click.Context(program), command)
    assert found is not None
    return {
        name if isinstance(one, click.Option) and one.is_flag else f"{name}="
        for one in found.params
        for name in one.opts
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_it_gives_options_that_exist(case: Path, renderings: Renderings) -> None:
    for document in renderings.of(case.name):
        if document["kind"] in {"DaemonSet", "Deployment"}:
            (container,) = document["spec"]["template"]["spec"]["containers"]
            command, *given = container["args"]
            names = {name + sign for name, sign, _ in (one.partition("=") for one in given)}
            assert len(names) == len(given)
            assert names <= options_of(PROGRAMS[container["name"]], command)
