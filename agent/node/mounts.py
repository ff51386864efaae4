"""Mounts whose source was deleted: what replaced it on the node is not visible here.

A container mounts the folder itself, not its path. If a daemon or a package deletes the folder and
creates it again, the container still has the deleted one, which stays empty. Only a restart of the
container mounts the new folder.

Source: `seq_dentry` in fs/seq_file.c and `dentry_path` in fs/d_path.c of Linux, which add
`//deleted` to the root of such a mount in /proc/PID/mountinfo; proc_pid_mountinfo(5) for its form.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from topology.model.errors import show

_MOUNT_INFO: Final = "self/mountinfo"
_DELETED: Final = "//deleted"
_MAX_BYTES: Final = 4 << 20
_ESCAPE: Final = re.compile(r"\\([0-7]{3})")
_ROOT, _MOUNT_POINT = 3, 4


def explain_deleted_mount(path: str, what: str, *, proc_root: Path) -> str:
    """Return why something new at a path is not visible; empty unless its mount was deleted.

    Args:
        path: the file that is missing.
        what: a noun for what a new mount would show at the path.
        proc_root: the folder where proc is mounted.
    """
    point = find_deleted_mount(path, proc_root)
    if point is None:
        return ""
    return (
        f"{show(point)} was deleted on the node after it was mounted here, so {what} is not "
        "visible: restart this agent"
    )


def find_deleted_mount(path: str, proc_root: Path) -> str | None:
    """Return the mount point that holds a path, if its source was deleted; None otherwise."""
    point, root = "", ""
    for line in _read_lines(proc_root / _MOUNT_INFO):
        fields = [_unescape(field) for field in line.split(" ", _MOUNT_POINT + 1)]
        # Of mounts over each other, the last one is visible.
        if len(fields) > _MOUNT_POINT and len(fields[_MOUNT_POINT]) >= len(point):
            is_above = Path(path).is_relative_to(fields[_MOUNT_POINT])
            point, root = (fields[_MOUNT_POINT], fields[_ROOT]) if is_above else (point, root)
    return point if root.endswith(_DELETED) else None


def _read_lines(file: Path) -> list[str]:
    try:
        with file.open("rb") as stream:
            return os.fsdecode(stream.read(_MAX_BYTES)).splitlines()
    except OSError:
        return []


def _unescape(field: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 8)), field)
