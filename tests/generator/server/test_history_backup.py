"""The history of a pod that ends: its successor continues it, whatever failed in between."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import Path

import pytest

from generator.history.backup import parse_backup
from generator.history.history_file import HistoryWriter, open_history
from generator.server.history_backup import HistoryBackup
from tests.generator.history.test_changes import finding_of, tree_of
from topology.model.errors import KubeUnavailable

FIRST = tree_of({"a": ("n1", "n2"), "b": ("n3",)})
SECOND = tree_of({"a": ("n1",), "b": ("n2", "n3")})
NOW_S = 1_800_000_000


class Shelf:
    """A store of backups in memory, which may be out of reach."""

    def __init__(self) -> None:
        self.content: bytes | None = None
        self.is_down = False
        self.num_writes = 0

    def read(self) -> bytes | None:
        self._fail()
        return self.content

    def write(self, content: bytes) -> None:
        self._fail()
        self.num_writes += 1
        self.content = content

    def _fail(self) -> None:
        if self.is_down:
            raise KubeUnavailable("the API server does not answer")


class Pod:
    """One pod: its file, and the backup of it."""

    def __init__(self, folder: Path, shelf: Shelf, *, is_leader: bool = True) -> None:
        folder.mkdir()
        self.file = folder / "history.sqlite"
        self.writer = HistoryWriter(self.file)
        self.now_s = NOW_S
        self.backup = HistoryBackup(
            self.file,
            shelf,
            is_leader=lambda: is_leader,
            now=lambda: datetime.fromtimestamp(self.now_s, UTC),
        )
        self.backup.restore(self.writer)

    @property
    def times(self) -> list[int]:
        with open_history(self.file) as history:
            return [*history.read_times()]


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def first(tmp_path: Path, shelf: Shelf) -> Pod:
    """A pod that has seen one change, and whose history is kept."""
    pod = Pod(tmp_path / "first", shelf)
    pod.writer.record(FIRST, [finding_of("one")], NOW_S - 900)
    pod.writer.record(SECOND, [finding_of("two")], NOW_S - 600)
    pod.backup.tick()
    return pod


def test_the_next_pod_continues_the_history(tmp_path: Path, first: Pod, shelf: Shelf) -> None:
    successor = Pod(tmp_path / "next", shelf)
    assert successor.times == first.times == [NOW_S - 900, NOW_S - 600]
    last = successor.writer.read_last()
    assert last is not None
    assert last[0] == SECOND
    with open_history(successor.file) as history:
        gone = [row.finding.device for row in history.read_lives(gone_room=9) if row.ended_s]
    assert gone == ["one"]


def test_nothing_is_written_while_nothing_changes(first: Pod, shelf: Shelf) -> None:
    first.backup.tick()
    assert shelf.num_writes == 1
    first.writer.record(FIRST, None, NOW_S)
    first.backup.tick()
    assert shelf.num_writes == 2


@pytest.mark.usefixtures("first")
def test_a_follower_reads_and_never_writes(tmp_path: Path, shelf: Shelf) -> None:
    follower = Pod(tmp_path / "follower", shelf, is_leader=False)
    follower.writer.record(FIRST, None, NOW_S)
    follower.backup.tick()
    assert len(follower.times) == 3
    assert shelf.num_writes == 1


@pytest.mark.usefixtures("first")
def test_a_pod_that_could_not_read_the_backup_adds_to_it(
    tmp_path: Path, shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    shelf.is_down = True
    with caplog.at_level(logging.WARNING):
        pod = Pod(tmp_path / "next", shelf)
    assert "history not restored" in caplog.messages
    pod.writer.record(FIRST, [finding_of("two")], NOW_S)
    pod.backup.tick()
    shelf.is_down = False
    pod.backup.tick()
    assert shelf.content
    kept = parse_backup(shelf.content)
    assert [row.at_s for row in kept.generations] == [NOW_S, NOW_S - 600, NOW_S - 900]
    began = {life.finding.device: life.began_s for life in kept.lives if not life.ended_s}
    assert began == {"two": NOW_S - 600}


@pytest.mark.usefixtures("first")
@pytest.mark.parametrize("content", [b"of another program", b""], ids=["foreign", "emptied"])
def test_a_backup_that_cannot_be_read_is_kept_and_named_once(
    tmp_path: Path, shelf: Shelf, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    shelf.content = content
    with caplog.at_level(logging.WARNING):
        pod = Pod(tmp_path / "next", shelf)
        pod.writer.record(FIRST, None, NOW_S)
        pod.backup.tick()
        pod.backup.tick()
    assert caplog.messages == ["history not restored", "history not backed up"]
    assert shelf.content == content
