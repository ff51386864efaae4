"""What `toponaut findings` prints for people: one row for findings that say the same."""

from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from tests.generator.scenes import PAIRS, Scene, run
from topology.model.name_ranges import expand_names


@pytest.fixture
def sources(tmp_path: Path) -> tuple[object, ...]:
    """The reports of three hosts of sixteen, and the list of all nodes."""
    scene = Scene.of(tmp_path, PAIRS)
    reports = scene.reports()
    for host in scene.hosts[3:]:
        (reports / f"{host}.yaml").unlink()
    return ("--reports", reports, "--nodes", scene.nodes())


def test_findings_that_say_the_same_are_one_row(sources: tuple[object, ...]) -> None:
    found = run("findings", *sources, "--kind", "silent-node")
    header, row, total = found.out.splitlines()
    assert header.split() == ["SEVERITY", "KIND", "SUBJECT", "WHAT", "TO", "DO"]
    assert len(expand_names(row.split()[2])) == 13
    assert "13 findings like this (-o wide prints each): Node " in row
    assert total == "13 warnings"


def test_wide_and_json_have_every_finding(sources: tuple[object, ...]) -> None:
    wide = run("findings", *sources, "--kind", "silent-node", "-o", "wide")
    assert len(wide.out.splitlines()) == 1 + 13 + 1
    document = run("findings", *sources, "--kind", "silent-node", "-o", "json").document
    assert len(document) == 13


def test_two_findings_stay_two_rows(tmp_path: Path) -> None:
    scene = Scene.of(tmp_path, PAIRS)
    reports = scene.reports()
    for host in scene.hosts[:2]:
        (reports / f"{host}.yaml").unlink()
    found = run("findings", "--reports", reports, "--nodes", scene.nodes(), "--kind", "silent-node")
    assert found.code == ExitCode.OK
    assert [line.split()[2] for line in found.out.splitlines()[1:-1]] == scene.hosts[:2]
