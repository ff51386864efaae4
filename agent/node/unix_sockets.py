"""The Unix sockets on which programs of this network namespace listen.

Source: proc_pid_net(5) for /proc/net/unix.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_TABLE: Final = "net/unix"
_MAX_BYTES: Final = 4 << 20
_LISTENS: Final = 0x10000  # __SO_ACCEPTCON
_FLAGS, _PATH = 3, 7


def find_listening(word: str, proc_root: Path) -> tuple[str, ...]:
    """Return the sorted paths of the sockets with a word in their file's name."""
    try:
        with (proc_root / _TABLE).open("rb") as stream:
            lines = os.fsdecode(stream.read(_MAX_BYTES)).splitlines()
    except OSError:
        return ()
    rows = (line.split(None, _PATH) for line in lines[1:])
    return tuple(sorted({row[_PATH] for row in rows if _is_listening(row, word)}))


def _is_listening(row: list[str], word: str) -> bool:
    if len(row) <= _PATH or not row[_PATH].startswith("/"):
        return False
    is_hex = all(char in "0123456789abcdefABCDEF" for char in row[_FLAGS])
    return is_hex and bool(int(row[_FLAGS], 16) & _LISTENS) and word in Path(row[_PATH]).name
