"""Which shell wildcards are refused: those that would match nothing."""

import re
from fnmatch import translate

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from topology.model.globs import find_glob_fault


@pytest.mark.parametrize(
    "glob", ["*", "leaf-?", "mlx5_[0-3]/1", "[!a]*", "[]]", "[!]]", "[[]x", "a]", "[a-]", "[-a]"]
)
def test_it_accepts(glob: str) -> None:
    assert find_glob_fault(glob) is None


@pytest.mark.parametrize(
    ("glob", "words"),
    [
        ("mlx5_[0-3/1", "a [ without a ]"),
        ("[", "a [ without a ]"),
        ("[!]", "a [ without a ]"),
        ("[]", "a [ without a ]"),
        ("a[b]c[d", "a [ without a ]"),
        ("rack[9-1]", "the range 9-1, which is empty; expected 1-9"),
    ],
)
def test_it_says_what_is_wrong_with(glob: str, words: str) -> None:
    assert words in str(find_glob_fault(glob))


LITERAL = re.compile(r"(?<!\[)\\\[")
"""A bracket that is no set: a set that begins with a bracket escapes it, too."""


@example("[[]")
@example("[[")
@given(st.text("[]!-ab1*", max_size=8))
def test_a_bracket_is_refused_exactly_if_python_takes_it_literally(glob: str) -> None:
    fault = find_glob_fault(glob)
    is_open = "a [ without a ]" in (fault or "")
    is_literal = LITERAL.search(translate(glob)) is not None
    assert is_open == is_literal or "range" in (fault or "")
