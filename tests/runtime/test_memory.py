"""A server switches threads soon, and does not collect lasting objects."""

import gc
import os
import sys
from collections.abc import Iterator

import pytest

from runtime.memory import (
    collect_garbage_rarely,
    freeze_gc,
    start_no_blas_threads,
    tune_for_server,
)


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


def test_it_lets_numpy_load_without_threads_unless_the_user_wants_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    start_no_blas_threads()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "4")
    start_no_blas_threads()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "4"
