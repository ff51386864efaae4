"""A server lets other threads in soon, and does not look through what lasts."""

import gc
import sys
from collections.abc import Iterator

import pytest

from generator.tuning import settle, tune_for_serving


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    interval_s = sys.getswitchinterval()
    yield
    gc.unfreeze()
    sys.setswitchinterval(interval_s)


def test_it_lets_other_threads_in_within_a_millisecond() -> None:
    tune_for_serving()
    assert sys.getswitchinterval() <= 0.001


def test_it_takes_what_is_there_for_lasting() -> None:
    kept = [object()]
    settle()
    assert gc.get_freeze_count() > 0
    assert not any(one is kept for one in gc.get_objects())
