"""`toponaut doctor` without a cluster: what it says about the machine."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from tests.generator.scenes import run


@pytest.fixture(autouse=True)
def _no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)


def outcomes(*words: object) -> dict[str, str]:
    rows = run("doctor", *words, "-o", "json").document
    return {row["subject"]: row["outcome"] for row in rows}


def write_config(home: Path, document: object) -> None:
    file = home / ".config" / "toponaut" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(document))


def test_it_checks_the_machine_where_no_cluster_is_named() -> None:
    found = outcomes()
    assert found.pop("Cluster") == "unknown"
    assert list(found) == ["Program", "Libraries", "Config file", "Environment", "Open files"]
    assert found["Libraries"] == found["Config file"] == "ok"
    assert run("doctor", "--check").code == ExitCode.OK


@pytest.mark.parametrize("option", ["--kube", "--kubeconfig=/nowhere", "--context=x"])
def test_a_cluster_that_an_option_names_is_not_passed_over(option: str) -> None:
    ran = run("doctor", option)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")


def test_a_variable_that_names_a_cluster_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    assert run("doctor").code == ExitCode.USAGE


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({"tree": {"dpth": 2}}, "there is no 'dpth'"),
        ({"simulate": {"fabric": {"rials": 2}}}, "there is no 'rials'"),
        ({"trees": {}}, "there is no command 'trees'"),
        ([], "expected names and values"),
    ],
    ids=["an option", "an option of a subcommand", "a command", "no mapping"],
)
def test_a_wrong_config_file_is_a_line_and_no_failure(
    tmp_path: Path, document: object, why: str
) -> None:
    write_config(tmp_path, document)
    ran = run("doctor", "--check")
    assert ran.code == ExitCode.CHECK_FAILED
    (line,) = (row for row in ran.out.splitlines() if "Config file" in row)
    assert line.startswith("error")
    assert why in line


def test_a_right_config_file_is_named(tmp_path: Path) -> None:
    write_config(tmp_path, {"simulate": {"fabric": {"rails": 8}}, "tree": {"depth": 1}})
    assert str(tmp_path) in run("doctor").out


def test_a_variable_that_no_option_reads_gets_the_nearest_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOPONAUT_TREE_OUTPUT", "json")
    monkeypatch.setenv("TOPONAUT_SIMULATE_FABRIC_RAILS", "4")
    assert outcomes()["Environment"] == "ok"
    monkeypatch.setenv("TOPONAUT_TREE_REPROTS", "x")
    ran = run("doctor", "--check")
    assert ran.code == ExitCode.CHECK_FAILED
    assert "did you mean TOPONAUT_TREE_REPORTS" in ran.out


def test_a_missing_library_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "generator.cli.commands.programs.doctor.machine.find_spec",
        lambda name: None if name == "grpc" else find_spec(name),
    )
    assert outcomes()["Libraries"] == "error"
