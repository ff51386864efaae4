"""Why this process may not connect to a socket of the node."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from topology.model.errors import show


def explain_denial(socket: Path) -> str:
    """Return what refuses a connection, and what to change; empty if that is not known.

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
