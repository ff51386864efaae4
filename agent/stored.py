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
    with os.fdopen(os.open(file, _FLAGS), "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(file))
        return json.loads(stream.read(limit))
