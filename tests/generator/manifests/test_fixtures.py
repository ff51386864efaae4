"""Each folder of fixtures/manifests is a test: a manifest, and its placement request.

expected.json holds the request, what was ignored and what was noted. The requests must also be
ones that the engine accepts as well formed.
"""

import json
from pathlib import Path

import pytest

from generator.cli.request_input import LoadedRequest, load_request
from generator.manifests.fields import Relevance
from generator.placement import wire
from tests.golden import Golden
from tests.repository import ROOT

FIXTURES = ROOT / "fixtures" / "manifests"
CASES = sorted(folder.name for folder in FIXTURES.iterdir())
SYSTEMS = frozenset(
    {"godel", "grove", "kai", "koordinator", "kubernetes", "kueue", "sbatch", "volcano"}
)


def asked(case: str) -> LoadedRequest:
    (file,) = (FIXTURES / case).glob("input.*")
    return load_request(str(file), None, {})


@pytest.mark.parametrize("case", CASES)
def test_it_translates(case: str, golden: Golden) -> None:
    found = asked(case)
    translation = found.translation
    assert translation is not None
    assert wire.Document.model_validate(found.document).spec.groups
    shown = {
        "system": translation.system,
        "request": found.document,
        "ignored": {
            bearing.name.lower(): [
                str(row) for row in translation.ignored if row.relevance is bearing
            ]
            for bearing in Relevance
        },
        "notes": [str(note) for note in translation.notes],
        **(
            {"running": [row._asdict() for row in translation.running]}
            if translation.running
            else {}
        ),
    }
    text = json.dumps(shown, indent=2, ensure_ascii=False) + "\n"
    golden.check(FIXTURES / case / "expected.json", text)


@pytest.mark.parametrize("case", CASES)
def test_it_says_where_a_fixture_comes_from(case: str) -> None:
    assert (FIXTURES / case / "SOURCE.md").read_text(encoding="utf-8").startswith("Synthetic")


def test_it_has_a_fixture_for_every_system() -> None:
    assert {case.partition("-")[0] for case in CASES} >= SYSTEMS


def test_it_leaves_no_stray_files() -> None:
    names = {path.name for path in FIXTURES.rglob("*") if path.is_file()}
    assert names <= {"SOURCE.md", "expected.json", "input.sh", "input.yaml"}


def test_it_reads_the_same_from_a_copy(tmp_path: Path) -> None:
    copy = tmp_path / "copy.yaml"
    copy.write_bytes((FIXTURES / "plain-job" / "input.yaml").read_bytes())
    assert load_request(str(copy), None, {}).document == asked("plain-job").document
