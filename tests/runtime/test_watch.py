"""A watched command, with a command and a clock of its own."""

import sys
from collections.abc import Iterator

import pytest

from runtime.watch import CLEAR, watch_output


class EndOfTestError(Exception):
    """Ends a watch."""


def watch(texts: list[tuple[str, str]]) -> list[float]:
    """Watch a command that prints these texts one after the other; return the pauses."""
    left: Iterator[tuple[str, str]] = iter(texts)
    pauses: list[float] = []

    def run() -> None:
        found = next(left, None)
        if found is None:
            raise EndOfTestError
        sys.stdout.write(found[0])
        sys.stderr.write(found[1])

    with pytest.raises(EndOfTestError):
        watch_output(run, interval_s=5, pause=pauses.append)
    return pauses


@pytest.mark.parametrize(
    ("texts", "stdout", "stderr"),
    [
        pytest.param([("a\n", ""), ("a\n", "")], "a\n", "", id="the same output is printed once"),
        pytest.param([("a\n", ""), ("b\n", "")], "a\nb\n", "", id="a changed output follows"),
        pytest.param(
            [("a\n", ""), ("a\n", "skipped\n")], "a\na\n", "skipped\n", id="so does a new problem"
        ),
        pytest.param(
            [("a\n", ""), ("", "error\n"), ("a\n", "")],
            "a\na\n",
            "error\n",
            id="a failure is reported, and the end of it",
        ),
    ],
)
def test_it_prints_what_changed(
    texts: list[tuple[str, str]], stdout: str, stderr: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert watch(texts) == [5] * len(texts)
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == (stdout, stderr)


def test_it_clears_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    watch([("a", ""), ("b", "")])
    assert capsys.readouterr().out == f"{CLEAR}a{CLEAR}b"


def test_a_command_sees_the_terminal_that_it_prints_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    seen: list[bool] = []

    def run() -> None:
        seen.append(sys.stdout.isatty())
        if len(seen) > 1:
            raise EndOfTestError

    with pytest.raises(EndOfTestError):
        watch_output(run, interval_s=5, pause=lambda _: None)
    assert seen == [True, True]
