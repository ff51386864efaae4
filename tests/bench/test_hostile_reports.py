"""Thousands of nodes that lie in their reports stay below the bar, in changed rounds too."""

import pytest

from tests.bench.hostile_reports import observe_alone

CHOSEN = [
    "18,000 liars, 24 entries each, of the same devices",
    "3,000 liars, 256 made-up devices each",
    "12,000 liars, no part twice",
    "a sweep below the quota, 8,192 honest hosts and 18,000 liars",
]
"""The largest input of each kind of lie; `make bench` measures all inputs."""


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", CHOSEN)
def test_it_stays_below_the_bar(name: str) -> None:
    assert observe_alone(name).is_below_bar
