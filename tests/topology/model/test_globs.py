"""Which shell wildcards are refused: those that would match nothing."""

from fnmatch import translate

import pytest
from hypothesis import given
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


@given(st.text("[]!-ab1*", max_size=8))
def test_a_bracket_is_refused_exactly_if_python_takes_it_literally(glob: str) -> None:
    fault = find_glob_fault(glob)
    is_open = "a [ without a ]" in (fault or "")
    assert is_open == (r"\[" in translate(glob)) or "range" in (fault or "")
