"""Errors are one safe line of text, and they can be pickled."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology.model.errors import (
    ConfigError,
    KubeConflict,
    ParseError,
    PlacementRequestError,
    TopologyError,
    show,
)


@given(st.text(), st.integers(0, 200))
def test_it_removes_control_characters_from_any_text(text: str, limit: int) -> None:
    shown = show(text, limit)
    assert shown.isprintable()
    assert len(shown) <= 10 * limit + 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("leaf-01", "leaf-01", id="plain text unchanged"),
        pytest.param("a\nb", "a\\nb", id="a newline escaped"),
        pytest.param("\x1b[31m", "\\x1b[31m", id="terminal colours escaped"),
        pytest.param("a\u202eb", "a\\u202eb", id="text direction escaped"),
        pytest.param("x" * 130, "x" * 120 + "…", id="long text cut"),
    ],
)
def test_it_makes_text_safe_to_print(text: str, shown: str) -> None:
    assert show(text) == shown


@pytest.mark.parametrize(
    ("error", "text"),
    [
        pytest.param(ParseError("odd"), "odd", id="only a problem"),
        pytest.param(ParseError("odd", source="f", line=3), "f:3: odd", id="a source and line"),
        pytest.param(ParseError("odd", excerpt="a\tb"), r"odd: 'a\tb'", id="an excerpt"),
        pytest.param(
            KubeConflict("PUT /x: 409 changed", status=409, retry_after_s=1.5),
            "PUT /x: 409 changed",
            id="an answer of the API server",
        ),
        pytest.param(PlacementRequestError("groups[0]", "empty"), "groups[0]: empty", id="a field"),
    ],
)
def test_it_is_one_line_that_survives_pickling(error: TopologyError, text: str) -> None:
    assert str(error) == text
    assert str(pickle.loads(pickle.dumps(error))) == text  # noqa: S301 - our own bytes


@given(st.text(), st.text(), st.text())
def test_no_error_steers_the_terminal(problem: str, place: str, excerpt: str) -> None:
    for error in (
        ConfigError(f"{place}: {problem}"),
        ParseError(problem, source=place, line=1, excerpt=excerpt),
        PlacementRequestError(place, problem),
        KubeConflict(problem, status=409, reason=place),
    ):
        assert str(error).isprintable()
        assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301 - our own bytes


def test_it_has_one_base_class() -> None:
    assert issubclass(ConfigError, TopologyError)
    assert issubclass(ParseError, TopologyError)
