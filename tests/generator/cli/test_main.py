"""The command group: its commands, its help, and the exit codes of errors."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from generator.cli.exit_codes import ExitCode
from generator.cli.group import cli
from tests.generator.scenes import run
from topology.model.errors import (
    ConfigError,
    ParseError,
    PlacementRequestError,
    StoreError,
    TopologyError,
)

pytestmark = pytest.mark.wheel

COMMANDS = tuple(cli.list_commands(click.Context(cli)))


def load_command(name: str) -> click.Command:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return command


def test_it_lists_its_commands_in_the_order_of_use() -> None:
    ran = run("--help")
    assert ran.code == ExitCode.OK
    places = [ran.out.index(f"\n  {name} ") for name in COMMANDS]
    assert places == sorted(places)


def test_it_lists_the_options_of_sources_from_common_to_rare() -> None:
    words = ("--output", "--reports", "--nodes", "--kube ", "--kubeconfig", "--context")
    out, _, _ = run("tree", "-h").out.partition("Examples:")
    places = [out.rindex(word) for word in words]
    assert places == sorted(places)


@pytest.mark.parametrize("words", [["trees"], ["--wrong"], ["tree", "--wrong"]])
def test_it_exits_with_2_on_wrong_usage(words: list[str]) -> None:
    ran = run(*words)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("x"), ExitCode.USAGE),
        (PlacementRequestError("spec", "x"), ExitCode.USAGE),
        (StoreError("x"), ExitCode.NOTHING),
        (ParseError("x"), ExitCode.NOTHING),
        (TopologyError("x\x1b\ny"), ExitCode.NOTHING),
    ],
    ids=lambda value: type(value).__name__,
)
def test_it_turns_an_error_into_one_line_and_a_code(
    monkeypatch: pytest.MonkeyPatch, error: TopologyError, code: ExitCode
) -> None:
    @click.command(name="schema")
    def failing() -> None:
        raise error

    monkeypatch.setattr("generator.cli.commands.reference.schema.command", failing)
    ran = CliRunner().invoke(cli, ["schema"])
    assert (ran.exit_code, ran.stdout) == (code, "")
    assert ran.stderr.startswith("error: ")
    assert ran.stderr.count("\n") == 1
    assert "\x1b" not in ran.stderr


def test_it_names_the_variable_of_each_option_after_the_option() -> None:
    unlike = [
        option.opts
        for name in COMMANDS
        for option in load_command(name).params
        if isinstance(option, click.Option)
        if f"--{str(option.name).replace('_', '-')}" not in option.opts
    ]
    assert not unlike
