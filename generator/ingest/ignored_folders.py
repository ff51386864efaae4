"""Subfolders of an input folder: they are not read, so those that hold input are named."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from topology.model.errors import ParseError, show

_MAX_ENTRIES = 10_000
"""Entries of one subfolder that are looked at."""


def list_ignored_folders(entries: Iterable[Path], names: re.Pattern[str]) -> Iterator[ParseError]:
    """Yield one problem per subfolder with files that are input by their name, with their number.

    Args:
        entries: of the input folder.
        names: matches the beginning of the name of an input file.
    """
    for folder in entries:
        if not folder.is_dir() or folder.is_symlink() or folder.name.startswith("."):
            continue
        try:
            num = sum(names.match(file.name) is not None for file in _list_some(folder))
        except OSError:
            continue
        if num:
            text = f"ignored: a subfolder with {num} files that look like input; give it by itself"
            yield ParseError(text, source=show(str(folder), 1024))


def _list_some(folder: Path) -> Iterator[Path]:
    return islice(folder.iterdir(), _MAX_ENTRIES)
