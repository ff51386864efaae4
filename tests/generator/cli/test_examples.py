"""The help of each command: sections of options, and examples that run as they are."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from generator.cli.group import cli
from generator.history.history_file import HistoryWriter
from tests.generator.scenes import run
from tests.ground.exit_rows import commands
from topology.model.tree import parse_tree

NEEDS: dict[str, tuple[str, ...]] = {
    "a cluster": ("--kube", "toponaut doctor"),
    "a server": ("--server",),
    "switches": ("toponaut switches",),
    "a signal to end": ("toponaut serve",),
    "a held plan": ("toponaut approve",),
    "HyperNodes of others": ("toponaut adopt",),
}
"""What an example needs that a folder does not have; it is parsed and not run."""
COMMANDS = [
    pytest.param(path, command, id=path)
    for path, command in commands()
    if path.startswith("toponaut ")
]
"""All but those of the agent."""


def examples_of(command: click.Command) -> list[str]:
    lines = (command.epilog or "").splitlines()
    return [line.strip() for line in lines if line.startswith("  ")]


EXAMPLES = [example for row in COMMANDS for example in examples_of(row.values[1])]  # type: ignore[arg-type]


def is_run(example: str) -> bool:
    return not any(mark in example for marks in NEEDS.values() for mark in marks)


def words_of(example: str) -> list[str]:
    """Return the words of a command line as a shell passes them on."""
    _, *words = shlex.split(example)
    return [
        str(name)
        for word in words
        for name in (sorted(Path().glob(word)) if "/*" in word else [word])
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files that the examples name."""
    root = tmp_path_factory.mktemp("examples")
    words = ("--hosts", 64, "--rails", 4, "--radix", 16, "--swap", 1, "--out", root / "fabric")
    assert run("simulate", "fabric", *words).code == 0
    reports = root / "fabric" / "reports"
    tree = parse_tree(run("tree", "--reports", reports, "-o", "json").document)
    applied = run("apply", "--reports", reports, "--store", root / "store")
    assert applied.code == 0, applied.err
    shutil.copytree(reports, root / "store" / "neighborreports", dirs_exist_ok=True)
    HistoryWriter(root / "store" / "history.sqlite").record(tree, (), 1_760_000_000)
    cables = run("links", "--reports", reports, "-o", "csv").out
    (root / "plan.csv").write_text(cables)
    (root / "pods.yaml").write_text(json.dumps({"train-0": tree.nodes[0]}))
    return root


@pytest.mark.parametrize(("path", "command"), COMMANDS)
def test_it_has_two_examples_of(path: str, command: click.Command) -> None:
    found = examples_of(command)
    assert len(found) == 2
    assert all(example.startswith(f"{path} ") or example == path for example in found)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_runs(
    example: str, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for file in folder.iterdir() if " --out fabric" not in example else ():
        (tmp_path / file.name).symlink_to(file)
    monkeypatch.chdir(tmp_path)
    if is_run(example):
        ran = CliRunner().invoke(cli, words_of(example))
        assert ran.exit_code == 0, ran.stderr
        return
    parsed: list[str] = []
    monkeypatch.setattr(click.Command, "invoke", lambda _, ctx: parsed.append(ctx.command_path))
    for name in ("tls.crt", "tls.key", "job.yaml", "request.yaml", "switches.yaml"):
        (tmp_path / name).touch()
    ran = CliRunner().invoke(cli, words_of(example))
    assert ran.exit_code == 0, ran.stderr
    assert len(parsed) == len(("the group", "the command"))


def test_most_examples_are_run() -> None:
    assert sum(map(is_run, EXAMPLES)) > len(EXAMPLES) / 2


@pytest.mark.parametrize(("path", "command"), COMMANDS)
def test_the_own_options_come_before_those_of_sources(path: str, command: click.Command) -> None:
    del command
    shown = CliRunner().invoke(cli, [*path.split()[1:], "--help"]).stdout
    own, sources, server = (
        shown.find(f"\n{title}:\n") for title in ("Options", "Sources", "Server")
    )
    assert own > 0
    for option, section in (("--ibnetdiscover", sources), ("--ca-file", server)):
        if f"  {option} " in shown:
            assert own < section < shown.find(f"  {option} ")
    if sources > 0:
        assert own < shown.find("  -h, --help") < sources
    assert shown.find("\n  Examples:\n") > max(own, sources, server)


def test_help_breaks_no_line_behind_a_hyphen() -> None:
    for path, _ in ((row.values[0], None) for row in COMMANDS):
        shown = CliRunner().invoke(cli, [*str(path).split()[1:], "--help"]).stdout
        assert not [line for line in shown.splitlines() if line.endswith("-")]
