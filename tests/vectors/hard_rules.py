"""The hard rules of the vectors' own checker, `fixtures/vectors/rules.py`, as a module."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

_PATH = Path(__file__).parents[2] / "fixtures" / "vectors" / "rules.py"


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("vector_rules", _PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


rules = _load()
