"""Fixtures for tests of a served store."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.generator.server.days import Day


@pytest.fixture
def day(tmp_path: Path) -> Day:
    made = Day(tmp_path)
    made.tick()
    assert made.placed() == set(made.scene.hosts)
    return made
