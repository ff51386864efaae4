"""How a program starts and ends: its standard streams, and errors of the machine.

`run_program` is called before anything slow is imported, so that a signal or a closed stream has
the same outcome at any time: one line on stderr and an exit code, never a traceback.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import select
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from runtime.signals import SIGNAL_CODE, end_command, end_on_signals

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_FAILED: Final = 1
"""The exit code of a write that failed, and of an internal error."""
READER_LEFT: Final = SIGNAL_CODE + signal.SIGPIPE


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
