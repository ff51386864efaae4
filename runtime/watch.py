"""Repeats a command, and prints its output again when it has changed."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple, TextIO

CLEAR = "\x1b[H\x1b[2J\x1b[3J"
"""Moves the cursor home, and clears the screen and what was scrolled out of it (xterm)."""


class _Printed(NamedTuple):
    """The output of one run."""

    stdout: str
    stderr: str


class _Capture(io.StringIO):
    """Replaces a stream; a command that looks for a terminal finds that of the stream."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override] # an attribute of every text stream
        return self._stream.encoding

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()


def watch_output(
    run: Callable[[], object], *, interval_s: float, pause: Callable[[float], object]
) -> None:
    """Run a command again and again, until a signal or an exception ends it.

    On a terminal, a changed output replaces the previous output; elsewhere it is printed below it.
    An unchanged output is not printed again.

    Args:
        run: prints with `sys.stdout` and `sys.stderr`.
        interval_s: the time from the end of one run to the next run.
        pause: waits so many seconds.
    """
    last: _Printed | None = None
    while True:
        printed = _capture(run)
        if printed != last:
            _print(printed)
        last = printed
        pause(interval_s)


def _capture(run: Callable[[], object]) -> _Printed:
    out, err = _Capture(sys.stdout), _Capture(sys.stderr)
    with redirect_stdout(out), redirect_stderr(err):
        run()
    return _Printed(out.getvalue(), err.getvalue())


def _print(printed: _Printed) -> None:
    if sys.stdout.isatty():
        sys.stdout.write(CLEAR)
    sys.stdout.write(printed.stdout)
    sys.stdout.flush()
    sys.stderr.write(printed.stderr)
    sys.stderr.flush()
