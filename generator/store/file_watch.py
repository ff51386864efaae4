"""Reading again only what changed: a file, or a folder of files, told by what `stat` says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

ReadT = TypeVar("ReadT")


class Stamp(NamedTuple):
    """What changes when a file does, be it replaced or written in place."""

    name: str
    inode: int
    size: int
    changed_ns: int


class Watched(Generic[ReadT]):
    """What was read last, and the stamps that it was read at."""

    def __init__(self, read: Callable[[], ReadT], stamps: Callable[[], tuple[Stamp, ...]]) -> None:
        """Read once; errors of `read` are the caller's."""
        self._read = read
        self._stamps = stamps
        self._last_stamps = stamps()
        self._last = read()

    def latest(self) -> ReadT:
        """Return the content, read anew where a stamp differs; errors of `read` are the caller's.

        Stamps are taken before reading, so a change in between is seen the next time.
        """
        stamps = self._stamps()
        if stamps != self._last_stamps:
            self._last = self._read()
            self._last_stamps = stamps
        return self._last

    @property
    def last(self) -> ReadT:
        """What was read last, however old."""
        return self._last


def file_stamps(*files: Path) -> tuple[Stamp, ...]:
    """Return the stamps of those files that exist."""
    return _stamps(files)


def folder_stamps(folder: Path) -> tuple[Stamp, ...]:
    """Return the stamps of everything in a folder, sorted; none where there is no folder."""
    try:
        return _stamps(sorted(folder.iterdir()))
    except OSError:
        return ()


def _stamps(files: Iterable[Path]) -> tuple[Stamp, ...]:
    found = []
    for file in files:
        try:
            stat = file.stat()
        except OSError:
            continue
        found.append(Stamp(file.name, stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return tuple(found)
