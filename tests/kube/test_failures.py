"""Every failure of the lower layers becomes one of our errors."""

import inspect
import pickle
from types import ModuleType

import pytest
import urllib3.exceptions
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.client import exceptions as client_exceptions
from kubernetes.config import config_exception

from generator.kube.transport import NO_ANSWER_ERRORS
from topology.model.errors import KubeError, KubeUnavailable
from topology.model.kube_errors import MAX_RETRY_AFTER_S, error_of_no_answer, error_of_status


@pytest.mark.parametrize(
    "module", [urllib3.exceptions, client_exceptions, config_exception], ids=lambda it: it.__name__
)
def test_it_translates_every_exception_of_the_libraries(module: ModuleType) -> None:
    raised = [
        found
        for _, found in inspect.getmembers(module, inspect.isclass)
        if issubclass(found, Exception) and not issubclass(found, Warning)
    ]
    own = [found for found in raised if found.__module__ == module.__name__]
    programming = {"ApiTypeError", "ApiAttributeError", "ApiKeyError"}  # of its own models
    missed = [found.__name__ for found in own if not issubclass(found, NO_ANSWER_ERRORS)]
    assert own
    assert set(missed) <= programming | {"OpenApiException"}  # the empty base of them all


@given(status=st.integers(300, 599), body=st.binary(max_size=300), header=st.none() | st.text())
def test_it_makes_one_printable_line_of_any_answer(
    status: int, body: bytes, header: str | None
) -> None:
    error = error_of_status("GET /x", status, body, retry_after=header)
    assert str(error).startswith(f"GET /x: {status}")
    assert str(error).isprintable()
    assert error.retry_after_s is None or 0 <= error.retry_after_s <= MAX_RETRY_AFTER_S


def test_it_names_the_status_once() -> None:
    error = error_of_status("GET /x", 404, b"404 page not found\n")
    assert str(error) == "GET /x: 404 page not found"


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(error_of_no_answer("GET /x", OSError()), id="silence without a word"),
        pytest.param(
            error_of_status("GET /x", 429, {"details": {"retryAfterSeconds": 3}}),
            id="an event with details",
        ),
    ],
)
def test_it_survives_a_queue_between_processes(error: KubeError) -> None:
    back = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(back) is KubeUnavailable
    assert str(back) == str(error)
    assert (back.status, back.reason, back.retry_after_s) == (
        error.status,
        error.reason,
        error.retry_after_s,
    )
