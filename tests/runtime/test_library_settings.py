"""Libraries get the settings that the user has not chosen."""

import os

import pytest

from runtime.library_settings import set_library_defaults


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
