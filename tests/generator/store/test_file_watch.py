"""Files and folders are read again only when they changed."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from generator.store.watched_directory import CachedReader, read_file_stamps, read_folder_stamps


class Reading:
    """Counts how often a file is read."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.num = 0

    def __call__(self) -> str:
        self.num += 1
        return self.file.read_text()


def test_it_reads_a_file_again_only_when_it_changed(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("one")
    reading = Reading(file)
    watched = CachedReader(reading, partial(read_file_stamps, file))
    assert [watched.read_latest(), watched.read_latest(), reading.num] == ["one", "one", 1]
    file.write_text("three")
    assert [watched.read_latest(), watched.read_latest(), reading.num] == ["three", "three", 2]


def test_it_tries_again_after_a_failed_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("one")
    watched = CachedReader(Reading(file), partial(read_file_stamps, file))
    file.unlink()
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            watched.read_latest()
    assert watched.last == "one"
    file.write_text("two")
    assert watched.read_latest() == "two"


def test_it_notices_every_change_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    seen = [read_folder_stamps(folder)]
    folder.mkdir()
    for change in (
        lambda: (folder / "a").write_text("1"),
        lambda: (folder / "b").write_text("1"),
        lambda: (folder / "a").write_text("22"),
        lambda: (folder / "b").rename(folder / "c"),
        (folder / "c").unlink,
        lambda: (folder / "broken").symlink_to("nowhere"),
        lambda: (folder / "d").write_text(""),
    ):
        change()
        seen.append(read_folder_stamps(folder))
    assert seen[0] == ()
    assert seen[6] == seen[5], "what cannot be followed is no file"
    assert len(set(seen)) == len(seen) - 1
