"""`kubectl toponaut`: the same commands, which read the cluster by default."""

from __future__ import annotations

from pathlib import Path
from typing import get_type_hints

import pytest
from click.testing import CliRunner

from generator.cli.exit_codes import ExitCode
from generator.cli.group import cli
from generator.cli.options import CableOptions
from tests.generator.scenes import PAIRS, Ran, Scene


def plugin(*words: object, env: dict[str, str] | None = None) -> Ran:
    named = {"KUBECONFIG": "/nowhere/config", **(env or {})}
    result = CliRunner().invoke(
        cli, [str(word) for word in words], prog_name="kubectl toponaut", env=named
    )
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)


def test_it_shows_the_name_of_the_plugin() -> None:
    assert plugin("--help").out.startswith("Usage: kubectl toponaut [OPTIONS]")
    assert plugin("place", "--help").out.startswith("Usage: kubectl toponaut place [OPTIONS]")


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("tree", id="the tree"),
        pytest.param("findings --kubeconfig /nowhere/else", id="findings of another cluster"),
        pytest.param("planes --context other", id="networks of another context"),
        pytest.param("plan", id="a plan"),
        pytest.param("approve 0123456789abcdef", id="an approval"),
        pytest.param("tree --kube", id="a command with --kube"),
    ],
)
def test_it_reads_the_cluster_for(words: str) -> None:
    ran = plugin(*words.split())
    assert ran.code == ExitCode.USAGE
    assert "kubeconfig /nowhere/" in ran.err


def test_it_reads_files_if_they_are_given(tmp_path: Path) -> None:
    scene = Scene.of(tmp_path, PAIRS)
    reports = scene.reports()
    assert plugin("tree", "--reports", reports).code == ExitCode.OK
    assert plugin("tree", env={"TOPONAUT_TREE_REPORTS": str(reports)}).code == ExitCode.OK
    plan = plugin("plan", "--reports", reports, "--store", scene.store())
    assert plan.code == ExitCode.OK, plan.err


@pytest.mark.parametrize("name", [*CableOptions._fields, "hypernodes"])
def test_it_leaves_the_cluster_alone_if_this_source_is_given(name: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    if get_type_hints(CableOptions).get(name) == tuple[Path, ...]:
        source.write_text("")
    else:
        source.mkdir()
    ran = plugin("tree", f"--{name}", source)
    assert ran.code == ExitCode.NOTHING
    assert "kubeconfig" not in ran.err


def test_it_reports_wrong_options() -> None:
    ran = plugin("tree", "--no-such-option")
    assert ran.code == ExitCode.USAGE
    assert "Usage: kubectl toponaut tree" in ran.err
    assert "No such option" in ran.err


def test_it_does_not_serve_the_cluster_by_default() -> None:
    ran = plugin("serve", "--insecure-loopback")
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert "either --store or --kube" in ran.err
