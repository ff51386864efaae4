"""Files and folders are read again only when they changed."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from generator.store.watched_directory import Watched, file_stamps, folder_stamps


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
    watched = Watched(reading, partial(file_stamps, file))
    assert [watched.latest(), watched.latest(), reading.num] == ["one", "one", 1]
    file.write_text("three")
    assert [watched.latest(), watched.latest(), reading.num] == ["three", "three", 2]


def test_it_tries_again_after_a_reading_that_failed(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("one")
    watched = Watched(Reading(file), partial(file_stamps, file))
    file.unlink()
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            watched.latest()
    assert watched.last == "one"
    file.write_text("two")
    assert watched.latest() == "two"


def test_it_notices_every_change_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    seen = [folder_stamps(folder)]
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
        seen.append(folder_stamps(folder))
    assert seen[0] == ()
    assert seen[6] == seen[5], "what cannot be followed is no file"
    assert len(set(seen)) == len(seen) - 1
