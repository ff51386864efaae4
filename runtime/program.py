"""How a program starts and ends: its standard streams, stop signals, and errors of the machine.

`run_program` is called before anything slow is imported, so that a signal or a closed stream has
the same outcome at any time: one line on stderr and an exit code, never a traceback.

While a command runs, a stop signal is an exception in the main thread, so that temporary files are
removed. The command then ends as interrupted, even if code gives the exception another type. If
code swallows the exception, the command ends after some seconds. Before and after, there is nothing
to remove, and the signal ends the program at once.
"""

from __future__ import annotations

import errno
import gc
import io
import math
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Final

from runtime.stop import Stop

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
SIGNAL_CODE: Final = 128
"""For a program that a signal ended, a shell reports this number plus the number of the signal."""
_FAILED: Final = 1
"""The exit code of a write that failed, and of an internal error."""
READER_LEFT: Final = SIGNAL_CODE + signal.SIGPIPE
END_S: Final = 10.0
"""The longest time that a command may take to remove its files."""
_REPEAT_S: Final = 2.0
"""A repeated signal ends the program at once, but not this soon after the first one: `timeout` and
terminals may send a signal twice."""


class Interrupted(KeyboardInterrupt):
    """Raised when a stop signal comes. The notes of the exception list what was written before."""

    def __init__(self, number: int) -> None:
        """Store the number of the signal."""
        super().__init__(number)
        self.exit_code = SIGNAL_CODE + number

    def __str__(self) -> str:
        """Return one line: the signal, and what was written so far."""
        name = signal.Signals(self.exit_code - SIGNAL_CODE).name
        return "; ".join([f"interrupted by {name}", *getattr(self, "__notes__", ())])


class _Phase(Enum):
    START = "nothing was read or written"
    COMMAND = "unfinished files may be left"
    END = "the command had ended"


class _StopSignals:
    """The stop signals of this process."""

    def __init__(self) -> None:
        self.phase = _Phase.START
        self.received = 0
        """The first signal that came while the command ran; 0: none."""
        self._received_s = 0.0

    def install(self) -> None:
        for number in _wanted_signals():
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGALRM, lambda *_: self._leave(self.received))
        sys.unraisablehook = self._on_unraisable

    def _on_signal(self, number: int, _frame: object) -> None:
        if self.phase is _Phase.COMMAND and not self.received:
            self.received, self._received_s = number, time.monotonic()
            signal.setitimer(signal.ITIMER_REAL, END_S)
            raise Interrupted(number)
        if self.phase is not _Phase.COMMAND or time.monotonic() - self._received_s > _REPEAT_S:
            self._leave(number)

    def _on_unraisable(self, unraisable: sys.UnraisableHookArgs) -> None:
        """End the program if the exception came in a destructor, where Python drops it."""
        if isinstance(unraisable.exc_value, Interrupted):
            self._leave(self.received)
        sys.__unraisablehook__(unraisable)

    def _leave(self, number: int) -> None:
        line = f"interrupted by {signal.Signals(number).name}; {self.phase.value}\n"
        try:
            os.write(2, line.encode())
        finally:
            os._exit(SIGNAL_CODE + number)


_stop_signals: Final = _StopSignals()


def end_on_signals() -> None:
    """End the program on a stop signal, unless the parent process ignores that signal."""
    _stop_signals.install()


def start_command() -> None:
    """Let stop signals raise `Interrupted` from now on; call it once the command is imported."""
    _stop_signals.phase = _Phase.COMMAND


def end_command() -> None:
    """Let stop signals end the program at once from now on."""
    _stop_signals.phase = _Phase.END
    if _stop_signals.received:
        signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def interruptible() -> Iterator[None]:
    """Print a stop signal that came while a command ran, and exit."""
    try:
        yield
    except Interrupted as error:
        interruption = error
    except BaseException:
        if not _stop_signals.received:
            raise
        interruption = Interrupted(_stop_signals.received)
    else:
        if not _stop_signals.received:
            return
        interruption = Interrupted(_stop_signals.received)
    finally:
        end_command()
    print(interruption, file=sys.stderr)  # noqa: T201 - the last line of the program
    sys.exit(interruption.exit_code)


@contextmanager
def noting_interruption(describe: Callable[[], str]) -> Iterator[None]:
    """Add a note on what was written so far to an interruption within the context."""
    try:
        yield
    except Interrupted as error:
        error.add_note(describe())
        raise


@contextmanager
def call_on_stop_signal(act: Callable[[], None]) -> Iterator[Callable[[], signal.Signals | None]]:
    """Call `act` when a stop signal comes within the context; main thread only.

    Yields a function that returns the last signal. The default action would end only this process
    and leave its commands running. If the handler raised an exception instead, it could come after
    a command started and before it was recorded.
    """
    received: list[int] = []

    def on_signal(number: int, _frame: object) -> None:
        received.append(number)
        act()

    before = {number: signal.signal(number, on_signal) for number in _wanted_signals()}
    try:
        yield lambda: signal.Signals(received[-1]) if received else None
    finally:
        for number, action in before.items():
            signal.signal(number, action)


@contextmanager
def stop_signals() -> Iterator[Callable[[], str]]:
    """Yield a function that blocks until a stop signal comes and returns the signal's name."""
    stop = Stop()
    with call_on_stop_signal(stop.set) as received:

        def wait_for_stop() -> str:
            while (number := received()) is None:
                stop.wait(math.inf)
            return number.name

        yield wait_for_stop


def _wanted_signals() -> list[signal.Signals]:
    """Return the stop signals that the parent does not ignore, as `nohup` ignores SIGHUP."""
    return [number for number in STOP_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]


if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class OutputError(Exception):
    """Standard output cannot be written.

    It is no OSError, so that nothing confuses it with an error of a file.
    """

    def __init__(self, error: OSError) -> None:
        """Store the error of the system."""
        super().__init__(error.strerror)
        self.is_reader_gone = error.errno == errno.EPIPE


def run_program(load: Callable[[], Callable[[], object]]) -> None:
    """Run a program; exit with 1 after an error of the machine, and with 141 if the reader left.

    Args:
        load: imports the program, and returns the function that runs it.
    """
    _open_standard_streams()
    end_on_signals()
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
        end_command()
        gc.freeze()  # Python would look for garbage among all modules, and then free them anyway


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
