"""What every test folder shares: golden files, and one policy for property tests."""

import os

import pytest
from hypothesis import HealthCheck, settings

from tests.golden import Golden

# A loaded machine is no failure: the time limit of a test is pytest's, not each example's. Under
# CI the examples are the same every time, so that its verdict depends on the change alone; every
# other run explores further.
settings.register_profile(
    "toponaut",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("toponaut")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden", action="store_true", help="rewrite expected files; see the diff")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare with a file, or rewrite it."""
    return Golden(is_rewriting=bool(request.config.getoption("--golden")))
