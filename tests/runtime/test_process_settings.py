"""Settings of the process: of the interpreter, and of libraries that the user has not set."""

import gc
import os
import sys
from collections.abc import Iterator

import pytest

from runtime.process_settings import (
    collect_garbage_rarely,
    freeze_gc,
    set_library_defaults,
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


def test_it_lets_numpy_load_without_threads_and_pydantic_without_plugins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "environ", {})
    set_library_defaults()
    assert os.environ == {"OPENBLAS_NUM_THREADS": "1", "PYDANTIC_DISABLE_PLUGINS": "__all__"}


def test_it_keeps_what_the_user_has_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"OPENBLAS_NUM_THREADS": "4"})
    set_library_defaults()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "4"
