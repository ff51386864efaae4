"""A server switches threads soon, and does not collect lasting objects."""

import gc
import sys
from collections.abc import Iterator

import pytest

from runtime.memory import collect_garbage_rarely, freeze_gc, tune_for_server


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    interval_s, threshold = sys.getswitchinterval(), gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)
    sys.setswitchinterval(interval_s)


def test_it_switches_threads_within_a_millisecond() -> None:
    tune_for_server()
    assert sys.getswitchinterval() <= 0.001


def test_it_collects_garbage_only_after_many_objects() -> None:
    collect_garbage_rarely()
    assert gc.get_threshold()[0] >= 100_000


def test_it_exempts_present_objects_from_collection() -> None:
    kept = [object()]
    freeze_gc()
    assert gc.get_freeze_count() > 0
    assert not any(one is kept for one in gc.get_objects())
