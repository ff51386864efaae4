"""Reads JSON files from a folder that others may write to, without waiting for a named pipe."""

from __future__ import annotations

import errno
import json
import os
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


def read_document(file: Path, limit: int) -> object:
    """Return the JSON in a file; reads at most `limit` bytes.

    Raises:
        OSError: the file cannot be read, or is not a regular file.
        RecursionError: the document is nested too deeply.
        ValueError: the file does not hold JSON, or is longer than the limit.
    """
    descriptor = os.open(file, _FLAGS)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(file))
        with open(descriptor, "rb", closefd=False) as stream:
            return json.loads(stream.read(limit))
    finally:
        os.close(descriptor)
