"""Every preset's answer keeps every hard rule, and `optimal` reaches the best whole vector."""

from __future__ import annotations

import pytest

from tests.effort import examples
from tests.random_cases.judge import faults_of_seed

NUM_SEEDS = 1_000
STEP = 25


@pytest.mark.hypothesis
@pytest.mark.parametrize("first", range(0, examples(NUM_SEEDS), STEP))
def test_it_answers_every_case_as_all_placements_do(first: int) -> None:
    assert [fault for seed in range(first, first + STEP) for fault in faults_of_seed(seed)] == []
