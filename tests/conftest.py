"""What every test folder shares: golden files, and one policy for property tests."""

import pytest
from hypothesis import settings

from tests.golden import Golden

# A loaded machine is no failure: the time limit of a test is pytest's, not each example's.
settings.register_profile("toponaut", deadline=None, print_blob=True)
settings.load_profile("toponaut")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden", action="store_true", help="rewrite expected files; see the diff")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare with a file, or rewrite it."""
    return Golden(is_rewriting=bool(request.config.getoption("--golden")))
