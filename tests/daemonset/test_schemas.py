"""What is rendered is valid, field by field, for each Kubernetes that is supported."""

import re
from pathlib import Path

import pytest

from tests.daemonset.cases import CASES
from tests.daemonset.tools import DEADLINE_S, find_tool, run
from tests.effort import first_of
from tests.repository import ROOT

MINORS = range(30, 38)
# Of a kind without a schema there is but a warning.
UNKNOWN = re.compile(r"^WARN .* find schema for kind (\w+) ", re.MULTILINE)
FOREIGN = {
    "Certificate",
    "Fabric",
    "PodMonitor",
    "PrometheusRule",
    "SecurityContextConstraints",
}
MANIFESTS = tuple(sorted((ROOT / "daemonset" / "manifests").glob("*.yaml")))
RENDERED = tuple(case / "expected.yaml" for case in CASES)
SEPARATOR = re.compile(r"^---\n", re.MULTILINE)
pytestmark = [pytest.mark.lab, pytest.mark.timeout(2 * DEADLINE_S)]


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that is ever rendered, each object once: most are the same in every case."""
    texts = [file.read_text() for file in (*MANIFESTS, *RENDERED)]
    known = dict.fromkeys(part for text in texts for part in SEPARATOR.split(text) if part)
    file = tmp_path_factory.mktemp("objects") / "objects.yaml"
    file.write_text("---\n".join(known))
    return file


@pytest.mark.parametrize("minor", first_of([MINORS[0], *MINORS[:0:-1]], 2))
def test_it_is_valid_for_kubernetes(minor: int, objects: Path, tmp_path: Path) -> None:
    answer = run([find_tool("schemas"), "-k", f"1.{minor}", "--strict", objects], home=tmp_path)
    output = answer.stdout + answer.stderr
    assert answer.returncode == 0, "\n".join(re.findall("^ERROR.*", output, re.MULTILINE))
    assert set(UNKNOWN.findall(output)) == FOREIGN


def test_it_would_notice_a_field_that_is_spelt_wrong(tmp_path: Path) -> None:
    rendered = (CASES[0].parent / "frames-heard-by-the-agent" / "expected.yaml").read_text()
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(rendered.replace("hostNetwork:", "hostNetwrok:"))
    answer = run([find_tool("schemas"), "-k", "1.36", "--strict", wrong], home=tmp_path)
    assert answer.returncode == 1
    assert "hostNetwrok" in answer.stdout + answer.stderr
