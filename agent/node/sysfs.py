"""Reads small files under a sysfs root, which may be a fixture tree.

Every sysfs file is optional: a file reads as None if it is absent, or if it answers EINVAL
(`carrier` of a port that is administratively down) or EOPNOTSUPP (`phys_port_name`). A path must
resolve to a file below the root, so a planted link exposes no other file of the machine.
"""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path, PurePosixPath
from typing import Final

MAX_FILE_BYTES: Final = 4096  # one page, which is all that a sysfs attribute can hold
MAX_ENTRIES: Final = 16384
"""Names read from one folder; a node full of containers has some thousand interfaces."""

_NO_TEXT = re.compile("[\udc80-\udcff]")  # how Python represents bytes that are not UTF-8


class Sysfs:
    """A sysfs tree, usually `/sys`. Paths are relative to its root."""

    def __init__(self, root: Path, *, max_entries: int = MAX_ENTRIES) -> None:
        """Keep the root with its links resolved, and the limit of names per folder."""
        self.root = root.resolve()
        self._max_entries = max_entries

    def read(self, path: str) -> str | None:
        """Return the text of an attribute without outer blanks, or None if it cannot be read."""
        try:
            return self.read_or_raise(path)
        except OSError:
            return None

    def read_or_raise(self, path: str) -> str:
        """Return the text of an attribute without outer blanks.

        Raises:
            OSError: it cannot be read; the error number is the driver's.
        """
        target = self._inside(path)
        if target is None:
            raise FileNotFoundError(errno.ENOENT, "not below the root", path)
        # A plain open of a named pipe in a fixture tree would block forever.
        descriptor = os.open(target, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return os.read(descriptor, MAX_FILE_BYTES).decode("utf-8", "replace").strip()
        finally:
            os.close(descriptor)

    def find_inode(self, path: str) -> int | None:
        """Return the inode of a file, which is new after its driver was bound again.

        The driver is not asked. None without the file.
        """
        target = self._inside(path)
        try:
            return None if target is None else target.stat().st_ino
        except OSError:
            return None

    def read_int(self, path: str) -> int | None:
        """Return the number in an attribute, or None if it is not a decimal number."""
        return parse_number(self.read(path) or "")

    def list_names(self, path: str) -> tuple[str, ...]:
        """Return the sorted names in a folder, at most `max_entries`; empty if it is absent.

        A name that is not UTF-8, which an interface can have, is left out: a report cannot hold it.
        """
        target = self._inside(path)
        if target is None:
            return ()
        try:
            with os.scandir(target) as entries:
                names = sorted(entry.name for entry in entries if not _NO_TEXT.search(entry.name))
        except OSError:
            return ()
        return tuple(names[: self._max_entries])

    def exists(self, path: str) -> bool:
        """Return whether a path is a file or folder below the root."""
        target = self._inside(path)
        return target is not None and target.exists()

    def link_name(self, path: str) -> str | None:
        """Return the last part of a link's target, such as the bond's name of `master`."""
        try:
            return PurePosixPath((self.root / path).readlink()).name or None
        except OSError:
            return None

    def resolve_link(self, path: str) -> PurePosixPath | None:
        """Return the resolved path relative to the root: the path through the PCI tree."""
        target = self._inside(path)
        if target is None or not target.exists():
            return None
        return PurePosixPath(target.relative_to(self.root))

    def _inside(self, path: str) -> Path | None:
        try:
            target = (self.root / path).resolve()
        except (OSError, RuntimeError, ValueError):
            return None
        return target if target.is_relative_to(self.root) else None


def parse_number(text: str) -> int | None:
    """Return the number of an attribute, or None if the text is not a decimal number."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdecimal() else None
