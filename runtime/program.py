"""How a program starts and ends: its standard streams, stop signals, and errors of the machine.

`run_program` is called before anything slow is imported, so that a signal or a closed stream has
the same outcome at any time: one line on stderr and an exit code, never a traceback.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import re
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from types import FrameType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_FAILED: Final = 1
"""The exit code of a write that failed, and of an internal error."""
_SIGNAL_CODE: Final = 128
"""For a program that a signal ended, a shell reports this number plus the number of the signal."""
READER_LEFT: Final = _SIGNAL_CODE + signal.SIGPIPE
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_RETRY_S: Final = 0.01
_REPEAT_S: Final = 2.0
"""A repeated signal ends the program at once, but not this soon after the first one: `timeout` and
terminals may send a signal twice."""
_DELAYING_FILES: Final = re.compile(r"<frozen importlib|.*/pydantic/")
"""Code that calls C code, which may swallow or print an exception or give it another type: a module
is loaded, or a model is built or validates a document."""


class OutputError(Exception):
    """Standard output cannot be written.

    It is no OSError, so that nothing confuses it with an error of a file.
    """

    def __init__(self, error: OSError) -> None:
        """Store the error of the system."""
        super().__init__(error.strerror)
        self.is_reader_gone = error.errno == errno.EPIPE


class Interrupted(KeyboardInterrupt):
    """A stop signal came. Its notes list what was written so far."""

    def __init__(self, number: int) -> None:
        """Store the number of the signal."""
        super().__init__(number)
        self.exit_code = _SIGNAL_CODE + number

    def __str__(self) -> str:
        """Return one line: the signal, and what was written so far."""
        name = signal.Signals(self.exit_code - _SIGNAL_CODE).name
        return "; ".join([f"interrupted by {name}", *getattr(self, "__notes__", ())])


class _Phase(Enum):
    START = "nothing was read or written"
    COMMAND = "a second signal came, so unfinished files may be left"
    END = "the command had ended"


class _StopSignals:
    """Ends the program when a stop signal comes.

    While a command runs, the signal is an exception in the main thread, so that temporary files
    are removed. Otherwise there is nothing to remove, and the program ends at once.
    """

    def __init__(self) -> None:
        self.phase = _Phase.START
        self._pending = 0
        self._first_s: float | None = None

    def install(self) -> None:
        """Replace the actions of the signals, except of those that the parent ignores."""
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._on_signal)
        # A delayed signal goes to the code that handles it when the timer ends.
        signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(self._pending))
        sys.unraisablehook = self._on_unraisable

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.phase is not _Phase.COMMAND:
            self._leave(number)
        if self._first_s is not None:
            if time.monotonic() - self._first_s > _REPEAT_S:
                self._leave(number)
            return
        if _is_delayed(frame):
            self._retry(number)
            return
        self._pending = 0
        self._first_s = time.monotonic()
        raise Interrupted(number)

    def end(self) -> None:
        """Let signals end the program at once from now on, also one that was put off."""
        self.phase = _Phase.END
        signal.setitimer(signal.ITIMER_REAL, 0)  # Python drops the handler before it exits
        if self._pending:
            self._leave(self._pending)

    def _retry(self, number: int) -> None:
        self._pending = number
        signal.setitimer(signal.ITIMER_REAL, _RETRY_S)

    def _on_unraisable(self, unraisable: sys.UnraisableHookArgs) -> None:
        """Raise the exception again if it came in a destructor, where Python drops it."""
        if isinstance(unraisable.exc_value, Interrupted):
            self._first_s = None
            self._retry(unraisable.exc_value.exit_code - _SIGNAL_CODE)
        else:
            sys.__unraisablehook__(unraisable)

    def _leave(self, number: int) -> None:
        line = f"interrupted by {signal.Signals(number).name}; {self.phase.value}\n"
        try:
            os.write(2, line.encode())
        finally:
            os._exit(_SIGNAL_CODE + number)


_stop_signals: Final = _StopSignals()


def _is_delayed(frame: FrameType | None) -> bool:
    while frame is not None:
        if _DELAYING_FILES.match(frame.f_code.co_filename):
            return True
        frame = frame.f_back
    return False


def run_program(load: Callable[[], Callable[[], object]]) -> None:
    """Run a program; exit with 1 after an error of the machine, and with 141 if the reader left.

    Args:
        load: imports the program, and returns the function that runs it.
    """
    _open_standard_streams()
    _stop_signals.install()
    try:
        load()()
        sys.stdout.flush()
    except OutputError as error:
        _drop_output()
        if error.is_reader_gone:
            sys.exit(READER_LEFT)
        _fail(f"cannot write to stdout: {error}")
    except MemoryError:
        _fail("not enough memory for this input; use a smaller one, or a machine with more")
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        _fail(f"{where}{error.strerror or error}")
    finally:
        _stop_signals.end()
        gc.freeze()  # Python would look for garbage among all modules, and then free them anyway


@contextmanager
def interruptible() -> Iterator[None]:
    """Print a stop signal that ends a command, and exit.

    Before `start_command` is called, the program ends at once.
    """
    try:
        yield
    except Interrupted as error:
        _stop_signals.phase = _Phase.END
        print(error, file=sys.stderr)  # noqa: T201 - the last line of the program
        sys.exit(error.exit_code)
    finally:
        if _stop_signals.phase is _Phase.COMMAND:
            _stop_signals.phase = _Phase.END


def start_command() -> None:
    """Let stop signals raise `Interrupted` from now on; call it once the command is imported."""
    _stop_signals.phase = _Phase.COMMAND


@contextmanager
def noting_interruption(describe: Callable[[], str]) -> Iterator[None]:
    """Add a note on what was written so far to an interruption within the context."""
    try:
        yield
    except Interrupted as error:
        error.add_note(describe())
        raise


def _fail(problem: str) -> None:
    print(f"error: {problem}", file=sys.stderr)  # noqa: T201 - the last line of the program
    sys.exit(_FAILED)


def _open_standard_streams() -> None:
    """Make the three standard streams usable, also if the caller closed them.

    A closed stdin is opened for writing and a closed stdout for reading, so that using them still
    fails, and no other file gets their numbers. Errors of stderr are ignored: the answer counts.
    """
    for number, flags in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, flags), True)  # noqa: FBT003 - by position only
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)))
    sys.stdout = _wrap(_CheckedFile(1, "w", closefd=False), sys.stdout)
    sys.stderr = _wrap(_Diagnostics(2, "w", closefd=False), sys.stderr, is_by_line=True)


def _wrap(raw: io.FileIO, before: object, *, is_by_line: bool = False) -> io.TextIOWrapper:
    # Characters that the locale lacks are escaped.
    encoding = getattr(before, "encoding", "utf-8")
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=encoding,
        errors="backslashreplace",
        line_buffering=is_by_line or raw.isatty(),
    )


class _CheckedFile(io.FileIO):
    """Standard output, with errors of its own."""

    def write(self, chunk: ReadableBuffer, /) -> int:
        """Write a chunk; wait for the reader of a pipe that does not block."""
        while True:
            try:
                written: int | None = super().write(chunk)
            except OSError as error:
                raise OutputError(error) from error
            if written is not None:
                return written
            select.select((), (self,), ())


class _Diagnostics(io.FileIO):
    """Standard error, where a failed write changes nothing."""

    def write(self, chunk: ReadableBuffer, /) -> int:
        """Write a chunk, or drop it."""
        try:
            return super().write(chunk) or 0
        except OSError:
            return memoryview(chunk).nbytes


def _drop_output() -> None:
    """Send the rest of the output nowhere, or Python would write it again at exit, and fail."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
