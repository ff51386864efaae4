"""Values of options from a config file: what counts, and what is refused."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from generator.cli.config_file import check_option_values, find_config_file
from generator.cli.exit_codes import ExitCode
from generator.cli.group import cli
from tests.generator.scenes import run
from topology.model.errors import ConfigError

pytestmark = pytest.mark.wheel


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own config file."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = tmp_path / "toponaut" / "config.yaml"
    file.parent.mkdir()
    return file


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reports of a fabric of two tiers."""
    out = tmp_path_factory.mktemp("config") / "fabric"
    assert run("simulate", "fabric", "--hosts", "8", "--out", out).code == ExitCode.OK
    return out / "reports"


def write(config: Path, document: object) -> None:
    config.write_text(json.dumps(document))


def test_a_value_of_the_file_counts(config: Path, reports: Path) -> None:
    write(config, {"tree": {"reports": str(reports), "output": "name"}, "findings": {}})
    expected = run("tree", "--reports", reports, "-o", "name")
    assert run("tree").out == expected.out != ""


def test_the_environment_counts_before_the_file_and_the_command_line_before_both(
    config: Path, reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(config, {"tree": {"reports": str(reports), "output": "name"}})
    monkeypatch.setenv("TOPONAUT_TREE_OUTPUT", "json")
    assert run("tree").out.startswith("{")
    assert run("tree", "-o", "csv").out.startswith("tier,")


def test_a_named_file_counts_instead_of_the_users_own(
    config: Path, reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(config, {"tree": {"output": "wrong"}})
    named = tmp_path / "named.yaml"
    write(named, {"tree": {"reports": str(reports), "output": "name"}})
    expected = run("tree", "--reports", reports, "-o", "name").out
    assert run("--config", named, "tree").out == expected
    monkeypatch.setenv("TOPONAUT_CONFIG", str(named))
    assert run("tree").out == expected


def test_subcommands_repeated_options_and_flags_have_values(config: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(config, {"simulate": {"fabric": {"hosts": 4, "out": str(out), "force": True}}})
    for _ in range(2):  # the second time needs --force
        assert run("simulate", "fabric").code == ExitCode.OK
    write(config, {"export": {"compat": ["topograph", "nvidia"], "reports": str(out / "reports")}})
    assert "nvidia" in run("export", "labels").out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("tree: {depht: 1}", "tree: there is no 'depht'; there are: ", id="an option"),
        pytest.param("tre: {}", "there is no command 'tre'", id="a command"),
        pytest.param(
            "tree: {depth: x}", "tree.depth: 'x' is not a whole number from", id="a value"
        ),
        pytest.param("tree: {kube: 1}", "tree.kube: expected true or false", id="a flag"),
        pytest.param("tree: {output: [csv]}", "tree.output: expected a text", id="a list"),
        pytest.param(
            "tree: {ibnetdiscover: a}", "tree.ibnetdiscover: expected a list", id="no list"
        ),
        pytest.param("tree: {depth: }", "tree.depth: expected a text", id="nothing"),
        pytest.param("tree: 1", "tree: expected names and values", id="a number"),
        pytest.param("[tree]", "expected names and values", id="no mapping"),
        pytest.param("a: b: c", "1: not YAML", id="no YAML"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(config: Path, text: str, says: str) -> None:
    config.write_text(text)
    ran = run("tree")
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert ran.err.startswith(f"error: {config}")
    assert says in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_wrong_option_on_the_command_line_is_not_blamed_on_the_file(config: Path) -> None:
    write(config, {"tree": {"output": "csv"}})
    ran = run("tree", "--depth", "x")
    assert ran.code == ExitCode.USAGE
    assert str(config) not in ran.err


def test_a_wrong_file_does_not_stop_the_completion_of_a_shell(config: Path) -> None:
    config.write_text("tree: {depht: 1}")
    words = {"COMP_WORDS": "cli tree --dep", "COMP_CWORD": "2"}
    environment = words | {"_CLI_COMPLETE": "bash_complete"}
    ran = CliRunner().invoke(cli, env=environment, prog_name="cli")
    assert "--depth" in ran.stdout


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        pytest.param({}, None, id="no home"),
        pytest.param({"HOME": "/none"}, None, id="no file"),
        pytest.param({"HOME": "HERE/home"}, "home/.config/toponaut/config.yaml", id="a home"),
        pytest.param(
            {"HOME": "HERE/home", "XDG_CONFIG_HOME": "HERE/xdg"},
            "xdg/toponaut/config.yaml",
            id="a folder for configuration",
        ),
    ],
)
def test_it_finds_the_users_file(
    environ: dict[str, str], expected: str | None, tmp_path: Path
) -> None:
    for folder in ("home/.config/toponaut", "xdg/toponaut"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "config.yaml").touch()
    named = {name: value.replace("HERE", str(tmp_path)) for name, value in environ.items()}
    assert find_config_file(None, named) == (None if expected is None else tmp_path / expected)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["depth", "output", "kube", "ibnetdiscover", "x"]), inner)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_any_value_is_read_or_refused(value: object) -> None:
    command = cli.get_command(click.Context(cli), "tree")
    assert command is not None
    with suppress(ConfigError):
        found = check_option_values(command, value, "tree")
        assert found.keys() <= {param.name for param in command.params}


def test_every_option_of_every_command_may_stand_in_the_file() -> None:
    """A name that click gives a parameter differs from the option's name only by its dashes."""
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            continue
        for param in command.params:
            if isinstance(param, click.Option):
                key = next(one for one in param.opts if one.startswith("--")).removeprefix("--")
                value: object = [] if param.multiple or param.nargs != 1 else "1"
                found = check_option_values(command, {key: True if param.is_flag else value}, name)
                assert set(found) == {param.name}
