"""Options that become a name or a label in Kubernetes: a wrong one is refused, with its option."""

from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from generator.cli.group import cli
from generator.cli.option_types import parse_label_prefix, parse_namespace, parse_object_name
from tests.generator.scenes import RAILS, Scene, run

PARSERS = {
    "namespace": parse_namespace,
    "name": parse_object_name,
    "label_prefix": parse_label_prefix,
    "flavor": parse_object_name,
}
"""The parsers of options by name, in every command."""
BAD = [
    ("--namespace", "A"),
    ("--name", "a_b"),
    ("--flavor", "a/b"),
    ("--label-prefix", "kubernetes.io"),
    *(("--flavor-label", row) for row in ("a", "=b", "a b=c", "a/b/c=d", "a=b c", "a=-")),
]
"""tests/ground tries more names for each option of every command."""


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Scene.of(tmp_path_factory.mktemp("scene"), RAILS).sweep()


def test_every_command_checks_names_by_their_parsers() -> None:
    checked = set()
    for command in cli.list_commands(None):  # type: ignore[arg-type]  # no context is needed
        for option in cli.get_command(None, command).params:  # type: ignore[arg-type, union-attr]
            wanted = PARSERS.get(str(option.name))
            if wanted is not None and option.param_type_name == "option":
                assert getattr(option.type, "func", None) is wanted, (command, option.name)
                checked.add((command, option.name))
    assert {name for _, name in checked} == PARSERS.keys()
    namespaced = {command for command, name in checked if name == "namespace"}
    assert {"apply", "adopt", "serve", "export", "doctor", "plan"} <= namespaced


@pytest.mark.parametrize(("option", "value"), BAD)
def test_a_wrong_name_is_refused_before_anything_is_written(
    option: str, value: str, sweep: Path
) -> None:
    more = ["--flavor", "gpu"] if option == "--flavor-label" else []
    if option == "--flavor":
        more = ["--flavor-label", "a=b"]
    ran = run("export", "kueue", sweep, option, value, *more)
    assert ran.code == ExitCode.USAGE, ran.out
    assert option in ran.err
    assert not ran.out


def test_good_names_are_written(sweep: Path) -> None:
    ran = run(
        *("export", "kueue", sweep, "--name", "a.b-1", "--namespace", "team-1"),
        *("--label-prefix", "fabric.example.org", "--flavor", "gpu"),
        *("--flavor-label", "kubernetes.io/os=linux", "--flavor-label", "gpu="),
    )
    assert ran.code == ExitCode.OK, ran.err
    assert "fabric.example.org/" in ran.out
