"""Every kind of finding has a fixture that shows it.

A folder of fixtures/findings is a test: the inputs of a small fabric, the arguments of `toponaut
findings` in `command`, and its findings of that kind in expected.json, without their messages.
Messages may be reworded, but each must say what a person should do.
"""

import json
import re
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from generator.observe import plan_blockers
from tests.generator.scenes import run
from tests.golden import Golden
from tests.repository import ROOT
from topology.findings.kind_descriptions import KIND_DESCRIPTIONS
from topology.model.facts import FindingKind

FIXTURES = ROOT / "fixtures" / "findings"
SERVED = {FindingKind.OUTPUT_REFUSED, FindingKind.RANK_ORDER}
"""Kinds about what `toponaut serve` writes and which gangs run, which files do not show:
tests/kube/test_outputs and tests/generator/server/test_gang_ranks."""
KINDS = sorted(kind.value for kind in FindingKind if kind not in SERVED)
VERBS = (
    "check|correct|do not trust|exchange|fix|give|list|move|read|reseat|run|turn|"
    "Check|Correct|Exchange|Fix|Give|List|Move|Read|Reseat|Run"
)
ADVICE = re.compile(rf"(?:^|[.:;,] )(?:or )?(?:{VERBS})\b")
EXITS = dict.fromkeys(("unusable-field", "unusable-report", "cut-input"), ExitCode.SKIPPED)
"""Kinds about input that is left out; all other fixtures are read whole."""
SMALL_LIMIT = 400
"""Bytes of a HyperNode here, since a domain above the real limit is too large for a fixture."""


def arguments(folder: Path) -> list[str]:
    """Return the arguments of a case, files relative to its folder."""
    words = (folder / "command").read_text(encoding="utf-8").split()
    return [str(folder / word) if (folder / word).exists() else word for word in words]


@pytest.mark.parametrize("kind", KINDS)
def test_it_shows(kind: str, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = FIXTURES / kind
    if kind == FindingKind.DOMAIN_TOO_LARGE:
        monkeypatch.setattr(plan_blockers, "MAX_MEMBER_BYTES", SMALL_LIMIT)
    ran = run("findings", *arguments(folder), "--kind", kind, "-o", "json")
    assert ran.code == EXITS.get(kind, ExitCode.OK), ran.err
    rows = ran.document
    assert rows
    for row in rows:
        assert ADVICE.search(row.pop("message"))
        assert row["evidence"]["ports"]
    golden.check(folder / "expected.json", json.dumps(rows, indent=2) + "\n")


def test_it_says_where_each_fixture_comes_from() -> None:
    for kind in KINDS:
        assert (FIXTURES / kind / "SOURCE.md").read_text(encoding="utf-8").startswith("Synthetic.")


def test_it_has_no_fixture_of_a_kind_that_is_gone() -> None:
    assert sorted(folder.name for folder in FIXTURES.iterdir()) == KINDS


def test_each_kind_has_a_severity_that_its_description_names() -> None:
    assert KIND_DESCRIPTIONS.keys() == set(FindingKind)
    for kind in KINDS:
        rows = json.loads((FIXTURES / kind / "expected.json").read_text(encoding="utf-8"))
        severities = KIND_DESCRIPTIONS[FindingKind(kind)].severities.split(", ")
        assert {row["severity"] for row in rows} <= {*severities}
