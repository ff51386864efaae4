"""The engine answers the copied vectors correctly, as their own checker judges."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.vectors.runner import answer

pytestmark = pytest.mark.wheel

FOLDER = Path(__file__).parents[2] / "fixtures" / "vectors"


def read_vectors(folder: Path) -> list[dict[str, Any]]:
    paths = sorted(folder.glob("*.json"))
    return [row for path in paths for row in json.loads(path.read_text(encoding="utf-8"))]


VECTORS = read_vectors(FOLDER)
ONCE_WRONG = read_vectors(FOLDER / "once_wrong")
PEER_RULES = read_vectors(FOLDER / "peer_rules")
Compare = Callable[..., Iterator[str]]


@pytest.fixture(scope="module")
def compare() -> Iterator[Compare]:
    """Return `compare` of check.py, which imports rules.py as a top-level module."""
    before = set(sys.modules)
    sys.path.insert(0, str(FOLDER))
    try:
        spec = importlib.util.spec_from_file_location("vector_check", FOLDER / "check.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module.compare
    finally:
        sys.path.remove(str(FOLDER))
        for name in set(sys.modules) - before:
            if name == "rules":
                del sys.modules[name]


@pytest.mark.parametrize(
    "vector", [*VECTORS, *ONCE_WRONG, *PEER_RULES], ids=lambda vector: vector["id"]
)
def test_it_answers_as_the_vector_says(vector: dict[str, Any], compare: Compare) -> None:
    assert not list(compare(vector, answer(vector), any_preset=False, strict=False))


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_it_keeps_every_invariant_under_the_optimal_preset(
    vector: dict[str, Any], compare: Compare
) -> None:
    found = answer(vector, "optimal")
    assert not list(compare(vector, found, any_preset=True, strict=False))


def test_it_judges_all_vectors() -> None:
    assert len({vector["id"] for vector in VECTORS}) == 567
    assert len({vector["id"] for vector in ONCE_WRONG}) == 128
    assert len({vector["id"] for vector in PEER_RULES}) == 138


def test_every_rule_of_a_preset_names_vectors_that_exist() -> None:
    ids = [vector["id"] for vector in (*VECTORS, *ONCE_WRONG, *PEER_RULES)]
    text = (FOLDER.parents[1] / "docs" / "presets.md").read_text(encoding="utf-8")
    rows = [line.split(" | ")[-1] for line in text.splitlines() if line.startswith("| ")]
    named = [name for row in rows for name in re.findall("`([^`]+)`", row)]
    assert len(named) > 30
    assert not [name for name in named if not any(row.startswith(name) for row in ids)]
