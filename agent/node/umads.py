"""The device files through which a node sends management datagrams of InfiniBand."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

FOLDER: Final = Path("/dev/infiniband")
_PATTERN: Final = "umad[0-9]*"


def find_umads(folder: Path = FOLDER) -> Mapping[str, bool]:
    """Return the path of each file, and whether this user may read and write it.

    A sweep needs one of them: it opens the file of its HCA's port.

    Source: Documentation/infiniband/user_mad.rst of Linux.
    """
    try:
        files = sorted(folder.glob(_PATTERN))
    except OSError:
        return {}
    return {str(file): os.access(file, os.R_OK | os.W_OK) for file in files}
