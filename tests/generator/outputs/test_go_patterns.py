"""Patterns as Go reads them: matches, refusals, and bounded time."""

from __future__ import annotations

import resource
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.outputs.hypernode.model import parse_manifest
from generator.outputs.hypernode.selectors import MAX_PATTERN, GoPattern, PatternError

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
    (r"\\C", "\\C", True),
    (r"\Q\C\E", r"\C", True),
    ("^n.de$", "n\u00f6de", True),
    ("^.$", "\udc80", True),
    ("a\x00b", "a\x00b", True),
    ("node$", "node\n", False),
    (r"(?-s)a.b", "a\nb", False),
]
REFUSED = [
    "(?=a)", "(?<!a)", "(?<=a)", r"\1", r"\8", r"\C", "*a", "a**", "a{2}{3}", "(?m)*", "{2}",
    "a|*", "(a", "a)", "[a", "[z-a]", "a\\", "a{2,1}", "a{1001}", "[[:foo:]]",
    "((a{100}){100}){100}",
    r"\Qa\E\C", r"[\C]", r"a\Z", "(?P=a)", "(?#a)", "a*+", r"\G", "\udc80", r"(?i)(\pL{1,20}){20}",
    "(?P<>a)", "(?z)", r"\x", r"\p", "(" * 2000, "a" * 5000,
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "text", "is_match"), MATCHES)
def test_it_matches_as_go_does(pattern: str, text: str, is_match: bool) -> None:  # noqa: FBT001 - a row
    assert GoPattern(pattern).search(text) == is_match


@pytest.mark.parametrize("pattern", REFUSED)
def test_it_refuses_what_go_refuses(pattern: str) -> None:
    with pytest.raises(PatternError, match=r"\w"):
        GoPattern(pattern)


@given(st.text("()[]{}*+?|^$\\.-ab1:<>PQEpd,i", max_size=30))
def test_it_compiles_or_refuses_any_text(pattern: str) -> None:
    with suppress(PatternError):
        GoPattern(pattern).search("ab1")


# Each takes a matcher without RE2's limits minutes or gigabytes.
HOSTILE = [
    "^(a+)+$",
    "(?:.?){1000}z",
    "(.?.?.?){300}$x",
    "[ab]*a[ab]{400}c",
    "(?:[ab-]*1.{900})+z",
    "()" * 2048,
    "|".join("ab"[at % 2] * (at % 40) for at in range(200)),
    "(?i)" + "[a-z]*" * 600 + "1z",
]


@pytest.mark.parametrize("pattern", HOSTILE, ids=[pattern[:20] for pattern in HOSTILE])
def test_a_hostile_pattern_of_names_ends_within_memory(pattern: str) -> None:
    names = [f"{'ab1-.' * 50}{at}" for at in range(200)]
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    compiled = GoPattern(pattern[:MAX_PATTERN])
    for name in names:
        compiled.search(name)
        compiled.fullmatch(name)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 64 << 10


def test_patterns_of_others_cost_a_round_nothing() -> None:
    """It reads 8 MB of patterns, which would take minutes to compile, within the time of a test."""
    members = [
        {"type": "Node", "selector": {"regexMatch": {"pattern": f"{at}(?i)" + r"\pL{400}" * 400}}}
        for at in range(2000)
    ]
    manifest = {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": "theirs"},
        "spec": {"tier": 1, "members": members},
    }
    parsed = parse_manifest(manifest)
    assert (parsed.num_inexact_members, len(parsed.selectors)) == (2000, 2000)


@pytest.mark.parametrize("pattern", [r"(?i)(\pL{1,20}){20}", "a" * 5000], ids=["program", "text"])
def test_it_says_that_a_large_pattern_is_its_own_limit(pattern: str) -> None:
    with pytest.raises(PatternError, match=r"^is not matched: its? .*(bytes|characters)$"):
        GoPattern(pattern)


def test_it_remembers_no_pattern() -> None:
    compiled = GoPattern("^node")
    for at in range(200):
        GoPattern(f"^node{at}")
    assert compiled.search("node1")
    assert GoPattern("^node")._compiled is not compiled._compiled  # noqa: SLF001
