"""Options made of settings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import click
import pytest
from click.testing import CliRunner, Result

from agent.cli.commands import cli
from agent.cli.options import options_of, read_group
from agent.settings import Option, parse_delay


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    wait_s: Annotated[float, Option("--wait", "How long.", default="3s", parse=parse_delay)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    first: Annotated[str | None, Option("--first -f", "First.", other_env="FIRST")]
    inner: Annotated[Inner | None, Inner]
    root: Annotated[Path, Option("--root", "Root.", default="/sys")]
    num_domains: Annotated[tuple[str, ...], Option("--many", "Many.")]
    is_loud: Annotated[bool, Option("--loud", "Loud.")]
    derived: int = 0


def invoke(*words: str, **env: str) -> tuple[Outer | None, Result]:
    """Return the settings that a command reads."""
    read: list[Outer] = []

    @click.command()
    @options_of(Outer)
    def command(**values: Any) -> None:  # noqa: ANN401 - click's
        inner = read_group(Inner, values)
        read.append(read_group(Outer, values, inner=inner, derived=7))

    result = CliRunner(env=env).invoke(command, words)
    return (read[0] if read else None), result


def test_it_reads_defaults_as_a_user_would_write_them() -> None:
    assert invoke()[0] == Outer(
        first=None,
        inner=Inner(wait_s=3.0),
        root=Path("/sys"),
        num_domains=(),
        is_loud=False,
        derived=7,
    )


def test_it_reads_options() -> None:
    words = ("-f", "x", "--wait", "0s", "--root", "r", "--many", "a", "--many", "b", "--loud")
    assert invoke(*words)[0] == Outer(
        first="x",
        inner=Inner(wait_s=0.0),
        root=Path("r"),
        num_domains=("a", "b"),
        is_loud=True,
        derived=7,
    )


@pytest.mark.parametrize(
    ("env", "first"),
    [
        ({"TOPONAUT_AGENT_FIRST": "own", "FIRST": "other"}, "own"),
        ({"FIRST": "other"}, "other"),
        ({}, None),
    ],
)
def test_it_reads_variables(env: dict[str, str], first: str | None) -> None:
    read, _ = invoke(TOPONAUT_AGENT_MANY="a b", TOPONAUT_AGENT_LOUD="1", **env)
    assert read is not None
    assert (read.first, read.num_domains, read.is_loud) == (first, ("a", "b"), True)


def test_it_reports_a_refused_text_as_wrong_usage() -> None:
    read, result = invoke("--wait", "3")
    assert (read, result.exit_code) == (None, 2)
    assert "'--wait': '3' is not a duration such as 500ms" in result.output


def test_it_lists_options_in_field_order_with_nested_groups_in_place() -> None:
    words = invoke("--help")[1].output.split()
    assert [word for word in words if word.startswith("--")] == [
        *("--first", "--wait", "--root", "--many", "--loud", "--help"),
    ]


@pytest.mark.parametrize("name", ["once", "run", "collectors"])
def test_it_names_the_variable_after_the_option(name: str) -> None:
    options = [one for one in cli.commands[name].params if isinstance(one, click.Option)]
    for option in options:
        own = "TOPONAUT_AGENT_" + option.opts[0].removeprefix("--").replace("-", "_").upper()
        other = ["NODE_NAME"] if option.name == "node_name" else []
        assert option.envvar == ([own, *other] if other else own)
