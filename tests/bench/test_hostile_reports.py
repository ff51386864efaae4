"""Thousands of nodes that lie in their reports stay below the bar, in changed rounds too."""

import pytest

from tests.bench.hostile_reports import INPUTS, observe_alone


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", INPUTS)
def test_it_stays_below_the_bar(name: str) -> None:
    assert observe_alone(name).is_below_bar
