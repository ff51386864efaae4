"""Each command of ours that a page shows exists, with its options and values."""

import re
import shlex

import click
import pytest

from agent.cli.commands import cli as agent_cli
from generator.cli.group import cli
from tests.docs.pages import read_commands

COMMANDS = list(read_commands())
PLACEHOLDER = re.compile(r"[A-Z]+[A-Z_-]*|…|\.\.\.|\[.*")


def find_problem(text: str) -> str:
    """Return what is wrong with a command line; empty if nothing is."""
    words = shlex.split(re.split(r" (?:[|>&;]|2>)", text)[0])
    if words[0] == "kubectl":
        del words[0]
    command: click.Command = {"toponaut": cli, "toponaut-agent": agent_cli}[words.pop(0)]
    context = click.Context(command, info_name="toponaut", **command.context_settings)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name = words.pop(0)
        if PLACEHOLDER.fullmatch(name):
            return ""
        found = command.get_command(context, name)
        if found is None:
            return f"there is no command {name}"
        command = found
        context = click.Context(command, parent=context, info_name=name)
    known = {
        option: param
        for param in command.get_params(context)
        for option in (*param.opts, *param.secondary_opts)
    }
    for at, word in enumerate(words):
        option, _, value = word.partition("=")
        if words[at - 1 : at] == ["--sbatch"]:  # its value consists of options of sbatch
            continue
        if not option.startswith("-") or option == "-" or re.fullmatch(r"-\d+", option):
            continue
        if option not in known:
            return f"{command.name} has no option {option}"
        kind = known[option].type
        given = value or (words[at + 1] if at + 1 < len(words) else "")
        choices = [*map(str, kind.choices)] if isinstance(kind, click.Choice) else []
        if choices and given not in ("", *choices) and not PLACEHOLDER.fullmatch(given):
            return f"{option} does not take {given}"
    return ""


def test_there_are_many() -> None:
    assert len(COMMANDS) > 100


@pytest.mark.parametrize("page", sorted({one.page for one in COMMANDS}))
def test_they_exist_with_their_options(page: str) -> None:
    found = [(one, find_problem(one.text)) for one in COMMANDS if one.page == page]
    wrong = [f"{one.page}:{one.line}: {one.text}: {problem}" for one, problem in found if problem]
    assert not wrong


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("toponaut trees", "there is no command trees", id="no such command"),
        pytest.param("toponaut tree --color", "tree has no option --color", id="no such option"),
        pytest.param("toponaut tree -o xml", "-o does not take xml", id="no such value"),
        pytest.param("toponaut tree -o json | jq .", "", id="a pipe ends the command"),
        pytest.param("toponaut COMMAND --help", "", id="a placeholder"),
    ],
)
def test_a_wrong_command_is_found(text: str, problem: str) -> None:
    assert find_problem(text) == problem
