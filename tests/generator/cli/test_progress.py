"""The progress of long work: a bar on a real terminal, lines or nothing elsewhere."""

from __future__ import annotations

import os
import pty
import select
import subprocess  # noqa: TID251 - the program runs on a terminal of its own
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest

from runtime.progress import NO_PROGRESS, track

pytestmark = pytest.mark.wheel

DEADLINE_S = 60.0
START = "from generator.cli.output import open_progress"
RUN = "from runtime.program import run_program; run_program(lambda: lambda: exec(PROGRAM))"
"""Programs replace the standard streams when they start."""
WAIT = "import sys; sys.stdin.readline()"
SHOW_CURSOR = "\x1b[?25h"
ERASE = "\x1b[2K"


class Running(NamedTuple):
    """A program whose stderr is a terminal."""

    process: subprocess.Popen[bytes]
    terminal: int
    seen: bytearray

    def read_until(self, is_met: Callable[[str], bool]) -> str:
        """Return what the terminal shows when a condition is met.

        Raises:
            AssertionError: the condition is not met in time.
        """
        end_s = time.monotonic() + DEADLINE_S
        while not is_met(self.text):
            left_s = end_s - time.monotonic()
            assert left_s > 0, self.text
            if select.select([self.terminal], [], [], left_s)[0]:
                try:
                    self.seen.extend(os.read(self.terminal, 65536))
                except OSError:  # the program has closed it
                    break
        assert is_met(self.text), self.text
        return self.text

    def go_on(self) -> None:
        """Let the program read a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    @property
    def text(self) -> str:
        """All that was written so far."""
        return self.seen.decode()


@contextmanager
def run_on_terminal(*lines: str) -> Iterator[Running]:
    primary, secondary = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(
        [sys.executable, "-c", f"PROGRAM = {chr(10).join(lines)!r}; {RUN}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=secondary,
        env=environment,
    )
    os.close(secondary)
    try:
        yield Running(process, primary, bytearray())
        process.communicate(timeout=DEADLINE_S)
    finally:
        process.kill()
        process.communicate()
        os.close(primary)


def test_it_draws_a_bar_with_the_share_that_is_done_and_removes_it() -> None:
    with run_on_terminal(
        START,
        "with open_progress('reading', delay_s=0) as progress:",
        "    progress.show('reading reports', num_done=3, total=10)",
        f"    {WAIT}",
        "    progress.show('inferring the tree')",
        f"    {WAIT}",
    ) as running:
        running.read_until(lambda text: "reading reports" in text and "30%" in text)
        running.go_on()
        without_end = running.read_until(lambda text: "inferring the tree" in text)
        assert "%" not in without_end.rpartition("inferring")[2]
        running.go_on()
        last = running.read_until(lambda text: text.rstrip().endswith((SHOW_CURSOR, ERASE)))
    assert SHOW_CURSOR in last
    assert running.process.returncode == 0


def test_it_draws_nothing_for_work_that_is_over_before_the_delay() -> None:
    with run_on_terminal(
        "import sys",
        START,
        "with open_progress('reading', delay_s=3600) as progress:",
        "    progress.show('reading reports', num_done=3, total=10)",
        "sys.stderr.write('end')",
    ) as running:
        assert running.read_until(lambda text: "end" in text) == "end"
    assert running.process.returncode == 0


def test_it_shows_the_cursor_again_after_an_error() -> None:
    with run_on_terminal(
        START,
        "with open_progress('reading', delay_s=0) as progress:",
        f"    {WAIT}",
        "    raise SystemExit(4)",
    ) as running:
        running.read_until(lambda text: "reading" in text)
        running.go_on()
        running.read_until(lambda text: SHOW_CURSOR in text)
    assert running.process.returncode == 4


@pytest.mark.parametrize(
    ("every_s", "expected"),
    [
        pytest.param("0", b"reading reports: 1,000 of 2,000\n", id="a line each time"),
        pytest.param("3600", b"", id="no line before the time has passed"),
        pytest.param("float('inf')", b"", id="never a line"),
    ],
)
def test_it_prints_lines_in_a_pipe(every_s: str, expected: bytes) -> None:
    lines = (
        START,
        f"with open_progress('reading', every_s={every_s}) as progress:",
        "    progress.show('reading reports', num_done=1000, total=2000)",
    )
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, check=True, timeout=60
    )
    assert (done.stdout, done.stderr) == (b"", expected)


class Steps:
    """Keeps what is shown."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, int | None, int | None]] = []

    def show(self, text: str, *, num_done: int | None = None, total: int | None = None) -> None:
        self.shown.append((text, num_done, total))


@pytest.mark.parametrize("total", [0, 1, 3, 399, 1000])
def test_it_tracks_each_item_once_and_shows_at_most_a_few_hundred_steps(total: int) -> None:
    steps = Steps()
    assert list(track(range(total), "reading", steps)) == [*range(total)]
    assert [*track(range(total), "reading", NO_PROGRESS)] == [*range(total)]
    assert len(steps.shown) <= 200
    assert steps.shown[:1] == [("reading", 0, total)][:total]
    dones = [done for _, done, _ in steps.shown if done is not None]
    assert dones == sorted(set(dones))
