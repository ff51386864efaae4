"""Patterns as Go reads them: matches, refusals, and bounded time."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.outputs.hypernode.go_patterns import GoPattern
from generator.outputs.hypernode.go_syntax import PatternError
from tests.effort import examples

# What Go 1.22 returns for regexp.MatchString.
MATCHES = [
    ("node-1", "node-10", True),
    ("^node-1$", "node-10", False),
    ("^node-(0[1-9]|10)$", "node-10", True),
    ("(?i)NODE", "node", True),
    ("(?i:N)ode", "nOde", False),
    ("(?i)[A-C]x", "bX", True),
    ("a(?i)*", "", True),
    ("a{2,3}$", "aa", True),
    ("a{,2}", "a", False),
    ("a{,2}", "a{,2}", True),
    (r"\bnode\b", "my-node-1", True),
    (r"\Bode\b", "node", True),
    (r"[\d-]", "-", True),
    ("[]a]+", "]", True),
    ("[^]a]", "a", False),
    ("[[:^alpha:]]", "a", False),
    (r"\Qa.b\E+", "a.bb", True),
    (r"\Qa.b", "axb", False),
    (r"\x61\x{62}\143", "abc", True),
    (r"(?i)\p{Lu}", "b", True),
    (r"\PN", "1", False),
    (r"\_", "_", True),
    ("(?P<rack>r)(?<n>1)", "r1", True),
    ("(|a)*", "b", True),
    ("", "x", True),
]
REFUSED = [
    "(?=a)", "(?<!a)", "(?<=a)", r"\1", r"\8", r"\C", "*a", "a**", "a{2}{3}", "(?m)*", "{2}",
    "a|*", "(a", "a)", "[a", "[z-a]", "a\\", "a{2,1}", "a{1001}", "[[:foo:]]",
    "((a{100}){100}){100}",
    "(?P<>a)", "(?z)", r"\x", r"\p", "(" * 2000, "a" * 5000,
]  # fmt: skip
ATOMS = st.sampled_from(["a", "b", "1", "-", ".", "[a-c]", "[^b]", r"\d", r"\w", r"\b", "^", "$"])
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map("|".join).map("(?:{})".format),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{1,2}"])).map("(?:{0[0]}){0[1]}".format),
    ),
    max_leaves=6,
)


@pytest.mark.parametrize(("pattern", "text", "is_match"), MATCHES)
def test_it_matches_as_go_does(pattern: str, text: str, is_match: bool) -> None:  # noqa: FBT001 - a row
    assert GoPattern(pattern).search(text) == is_match


@pytest.mark.parametrize("pattern", REFUSED)
def test_it_refuses_what_go_refuses(pattern: str) -> None:
    with pytest.raises(PatternError, match=r"\w"):
        GoPattern(pattern)


@settings(max_examples=examples(300), deadline=None)
@given(PATTERNS, st.text("abc1-.", max_size=8))
def test_it_agrees_with_python_on_the_common_syntax(pattern: str, text: str) -> None:
    compiled = GoPattern(pattern)
    assert compiled.search(text) == bool(re.search(pattern, text))
    assert compiled.fullmatch(text) == bool(re.search(f"\\A(?:{pattern})\\Z", text))


@given(st.text("()[]{}*+?|^$\\.-ab1:<>PQEpd,i", max_size=30))
def test_it_compiles_or_refuses_any_text(pattern: str) -> None:
    with suppress(PatternError):
        GoPattern(pattern).search("ab1")


def test_a_hostile_pattern_ends() -> None:
    assert not GoPattern("^(a+)+$").search("a" * 20_000 + "b")
