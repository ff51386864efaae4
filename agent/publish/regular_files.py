"""Documents in a folder that others may write to: no pipe there is waited for."""

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
    """Return the JSON in a file, of which at most `limit` bytes are read.

    Raises:
        OSError: it cannot be read, or is no regular file.
        RecursionError: it is nested too deeply.
        ValueError: it is no JSON.
    """
    descriptor = os.open(file, _FLAGS)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(file))
        with open(descriptor, "rb", closefd=False) as stream:
            return json.loads(stream.read(limit))
    finally:
        os.close(descriptor)
