"""Locks in a folder store: one program writes it, and files are changed by one program at a time.

The kernel releases a lock when its process ends, however it ends. So a killed program leaves no
lock.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from generator.store.object_files import remove_unfinished
from topology.model.errors import ConfigError, WriteError, show

LOCK_FILE: Final = ".toponaut.lock"
_OPEN_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_HOLDER: Final = 100


class FolderLock:
    """The right to write the HyperNodes of a folder; one process has it at a time."""

    def __init__(self, root: Path) -> None:
        """Take the lock, and remove files that killed programs did not finish.

        Args:
            root: the root folder of the store; created if it is missing.

        Raises:
            ConfigError: another process holds the lock; the message names it.
            WriteError: the folder cannot be written.
        """
        file = root / LOCK_FILE
        try:
            root.mkdir(parents=True, exist_ok=True)
            self._number = os.open(file, _OPEN_FLAGS, 0o644)
        except OSError as error:
            raise WriteError(f"cannot write {file}: {error.strerror}") from error
        try:
            fcntl.flock(self._number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._number, _MAX_HOLDER, 0).decode("ascii", "replace").strip()
            os.close(self._number)
            raise ConfigError(
                f"{root} is in use by another toponaut serve or apply "
                f"(process {show(holder) or 'unknown'}): stop it first; to let a held plan "
                "through, use `toponaut approve`"
            ) from None
        except OSError as error:
            os.close(self._number)
            raise WriteError(f"cannot lock {file}: {error.strerror}") from error
        os.ftruncate(self._number, 0)
        os.pwrite(self._number, f"{os.getpid()}\n".encode(), 0)
        remove_unfinished(root)

    def release(self) -> None:
        """Let another process write. The file stays: removing it would let two processes in."""
        os.close(self._number)


@contextmanager
def hold_lock(file: Path) -> Iterator[None]:
    """Wait for a lock that is held for the moment of one change, and hold it.

    Raises:
        WriteError: the folder cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        number = os.open(file, _OPEN_FLAGS, 0o644)
    except OSError as error:
        raise WriteError(f"cannot write {file}: {error.strerror}") from error
    try:
        fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)
