"""The Unix sockets of programs on this node: which listen, and why this process may not connect.

Source: proc_pid_net(5) for /proc/net/unix.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from topology.model.errors import show

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


def explain_denial(socket: Path) -> str:
    """Return why a connection is refused, and how to mend that; empty if the cause is unknown.

    To connect, a process needs the right to search the folder and to write to the socket.

    Source: man 7 unix.
    """
    try:
        mode, right = socket.stat(), stat.S_IWGRP
    except PermissionError:
        socket, right = socket.parent, stat.S_IXGRP
        try:
            mode = socket.stat()
        except OSError:
            return ""
    except OSError:
        return ""
    subject = f"{show(str(socket))} belongs to group {mode.st_gid}"
    groups = {os.getegid(), *os.getgroups()}
    if not os.geteuid() or (mode.st_gid in groups and mode.st_mode & right):
        reason = "this process has the right, so a security module such as SELinux refuses it"
        return f"{reason}: in a pod, set agent.seLinuxOptions of the chart to {{type: spc_t}}"
    if not mode.st_mode & right:
        return f"{subject}, to which its mode {stat.filemode(mode.st_mode)} gives no right"
    own = ", ".join(map(str, sorted(groups)))
    return (
        f"{subject}, and this process is in {own}: in a pod, add it to agent.lldpd.gid of the chart"
    )
