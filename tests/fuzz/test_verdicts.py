"""Verdicts find crashes, hangs and memory growth; long inputs have the requested size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz import verdicts as judging
from tests.fuzz.long_input import MIN_LINE_BYTES, stretch
from tests.fuzz.targets import Target
from tests.fuzz.verdicts import judge


def target_of(error: Exception | None) -> Target:
    def run(_raw: bytes) -> None:
        if error is not None:
            raise error

    return Target(run, lambda: ())


def test_it_reports_the_exception_of_a_parser() -> None:
    assert judge(target_of(KeyError("x")), b"").problem == "KeyError: 'x'"


def test_it_finds_no_problem_in_a_fast_parser() -> None:
    assert judge(target_of(None), b"").problem == ""


def test_it_reports_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "MAX_CPU_S", -1.0)
    assert judge(target_of(None), b"abc").problem.startswith("hang: ")


@pytest.mark.parametrize(
    ("power", "is_hang"),
    [
        pytest.param(1, False, id="linear time is not a hang"),
        pytest.param(2, True, id="quadratic time is a hang"),
    ],
)
def test_it_distinguishes_a_slow_machine_from_a_hang(
    monkeypatch: pytest.MonkeyPatch, *, power: int, is_hang: bool
) -> None:
    spent_s = 0.0

    def run(raw: bytes) -> None:
        nonlocal spent_s
        spent_s += 1e-3 * len(raw) ** power

    monkeypatch.setattr("time.process_time", lambda: spent_s)
    target = Target(run, lambda: ())
    assert bool(judge(target, bytes(4000), shorter=bytes(500)).problem) == is_hang


def test_it_limits_the_time_of_any_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "MAX_CPU_S", -1.0)
    monkeypatch.setattr(judging, "MAX_FAIR_CPU_S", -1.0)
    assert judge(target_of(None), b"abc", shorter=b"a").problem.startswith("hang: ")


def test_it_reports_memory_growth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "MAX_GROWTH_BYTES", -1)
    assert judge(target_of(None), b"abc").problem.startswith("memory: ")


@given(raw=st.binary(min_size=1, max_size=100))
def test_it_stretches_to_about_the_given_size(raw: bytes) -> None:
    sizes = [len(long) for long in stretch(raw, 5000)]
    assert sizes
    assert min(sizes) > 5000 - 100 * MIN_LINE_BYTES
    assert max(sizes) < 5000 + 100 * MIN_LINE_BYTES


def test_it_repeats_lines_and_marks() -> None:
    line = b"a" * MIN_LINE_BYTES + b"\n"
    found = list(stretch(line + b"{b", 100))
    assert line * 2 + b"{b" in found
    assert line + b"{" * 66 + b"b" in found


def test_it_makes_no_lines_shorter_than_those_of_tools() -> None:
    lines = [line for long in stretch(b"a\n\nb\n", 10_000) for line in long.split(b"\n")[3:-4]]
    assert min(map(len, lines)) >= MIN_LINE_BYTES


def test_it_yields_nothing_for_an_empty_input() -> None:
    assert list(stretch(b"", 10)) == []
