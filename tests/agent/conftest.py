"""A running agent."""

from pathlib import Path

import pytest

from tests.agent.loops import Agent


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(tmp_path)
