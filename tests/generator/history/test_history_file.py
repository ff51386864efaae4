"""The history in its file: what is recorded, what is found again, and files that cannot be used."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from generator.history import history_file
from generator.history.findings import encode_finding
from generator.history.history_file import HistoryWriter, open_history
from generator.history.recorder import HistoryRecorder
from generator.history.retention import ROOM_BYTES
from generator.simulation.replay.replay import build_tree_of_shape
from tests.generator.history.test_changes import BEFORE, finding_of, tree_of
from topology.model.errors import StoreError
from topology.model.facts import PortName

DAY = 86_400
START = 1_760_000_000
MOVED = tree_of({"a": ("n1",), "b": ("n2", "n3")})


def write(file: Path) -> HistoryWriter:
    writer = HistoryWriter(file)
    writer.record(BEFORE, [finding_of("a"), finding_of("b")], START)
    writer.record(MOVED, None, START + DAY)
    writer.record(None, [finding_of("b", message="longer"), finding_of("c")], START + 2 * DAY)
    return writer


def test_it_finds_the_tree_and_the_findings_of_any_time(tmp_path: Path) -> None:
    file = tmp_path / "history.sqlite"
    write(file)
    with open_history(file) as history:
        assert history.find_generation(START - 1) is None
        found = [history.find_generation(START + at) for at in (0, DAY - 1, DAY, 9 * DAY)]
        assert [one.tree for one in found if one] == [BEFORE, BEFORE, MOVED, MOVED]
        assert [one.number for one in history.read_generations(limit=5)] == [2, 1]
        assert history.count_generations(since_s=START + 1) == 1
        then = [(row.device, row.message) for row in history.read_findings(START + DAY)]
        assert then == [("a", "is down"), ("b", "longer")]
        assert [row.device for row in history.read_findings()] == ["b", "c"]
        assert history.read_findings(START - 1) == ()


def test_a_finding_that_comes_back_has_two_lives(tmp_path: Path) -> None:
    writer = HistoryWriter(tmp_path / "h")
    for step, findings in enumerate(([finding_of("a")], [], [finding_of("a")])):
        writer.record(BEFORE if not step else None, findings, START + step * DAY)
    with open_history(tmp_path / "h") as history:
        lives = [len(history.read_findings(START + step * DAY)) for step in range(3)]
    assert lives == [1, 0, 1]


def test_it_lists_the_lives_of_findings_and_only_the_last_that_ended(tmp_path: Path) -> None:
    writer = HistoryWriter(tmp_path / "h")
    for step, devices in enumerate(("abc", "bc", "c", "c")):
        found = [finding_of(device) for device in devices]
        writer.record(BEFORE, found, START + step * DAY)
    with open_history(tmp_path / "h") as history:
        lives = history.read_lives(gone_room=1)
        assert len(history.read_lives(gone_room=9)) == 3
    assert [(life.finding.device, life.began_s, life.ended_s) for life in lives] == [
        ("c", START, None),
        ("b", START, START + 2 * DAY),
    ]


def test_a_clock_that_goes_back_does_not_reorder_the_past(tmp_path: Path) -> None:
    writer = write(tmp_path / "h")
    writer.record(BEFORE, [], START)
    with open_history(tmp_path / "h") as history:
        assert history.read_generations(limit=1)[0].at_s == START + 2 * DAY
        assert history.read_findings() == ()


def test_its_size_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_file, "MAX_TREE_BYTES", 1500)
    monkeypatch.setattr(history_file, "MAX_GONE_ROOM", 3)
    writer = HistoryWriter(tmp_path / "h")
    for step in range(20):
        tree = build_tree_of_shape(f"2x{step + 1}x2")
        writer.record(tree, [finding_of(f"d{step}")], START + step * DAY)
    with open_history(tmp_path / "h") as history:
        kept = history.read_generations(limit=99)
        assert kept[0].tree == build_tree_of_shape("2x20x2")
        assert 1 <= len(kept) < 8
        assert len(history.read_findings(START + 15 * DAY)) == 0
        assert len(history.read_findings(START + 17 * DAY)) == 1


def flood(writer: HistoryWriter, device: str, *, start_s: int, num_ends: int) -> None:
    """End findings one after the other; `{}` in the name of the device is a number."""
    for step in range(num_ends + 1):
        found = finding_of(device.format(step), port=str(step))
        writer.record(None, [found] if step < num_ends else [], start_s + step)


@pytest.mark.parametrize("device", ["flapping", "invented-{}"])
def test_findings_that_end_every_second_push_out_no_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    monkeypatch.setattr(history_file, "MAX_GONE_ROOM", 60)
    writer = HistoryWriter(tmp_path / "h")
    writer.record(BEFORE, [], START)
    honest = [f"d{day}" for day in range(20)]
    for day, name in enumerate(honest):
        writer.record(None, [finding_of(name)], START + day * DAY)
        writer.record(None, [], START + day * DAY + 60)
    flood(writer, device, start_s=START + 20 * DAY, num_ends=300)
    with open_history(tmp_path / "h") as history:
        lives = history.read_lives(gone_room=1000)
        few = history.read_lives(gone_room=25)
    assert len(lives) <= 63
    assert set(honest) <= {life.finding.device for life in lives}
    assert set(honest) <= {life.finding.device for life in few}
    ends = [life.ended_s or 0 for life in lives]
    assert ends == sorted(ends, reverse=True)


def test_of_one_day_a_device_keeps_its_share_beside_one_that_flaps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_file, "MAX_GONE_ROOM", 60)
    writer = HistoryWriter(tmp_path / "h")
    writer.record(BEFORE, [finding_of("quiet")], START)
    flood(writer, "flapping", start_s=START + 1, num_ends=300)
    with open_history(tmp_path / "h") as history:
        assert "quiet" in {life.finding.device for life in history.read_lives(gone_room=10)}


def test_large_findings_are_bounded_in_bytes_and_push_out_no_other_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_file, "MAX_GONE_ROOM", 60)
    writer = HistoryWriter(tmp_path / "h")
    writer.record(BEFORE, [finding_of(f"quiet-{at}") for at in range(20)], START)
    for step in range(30):
        ports = tuple(PortName("noisy", f"{step}.{at}") for at in range(200))
        writer.record(None, [replace(finding_of("noisy"), ports=ports)], START + step + 1)
    writer.record(None, [], START + 60)
    with open_history(tmp_path / "h") as history:
        lives = history.read_lives(gone_room=1000)
        few = history.read_lives(gone_room=25)
    num_bytes = sum(len(encode_finding(life.finding)) for life in lives)
    assert 20 * ROOM_BYTES < num_bytes <= 63 * ROOM_BYTES
    quiet = {f"quiet-{at}" for at in range(20)}
    assert {life.finding.device for life in lives} == {"noisy", *quiet}
    assert {life.finding.device for life in few} == quiet


def test_a_damaged_tree_is_a_clear_error(tmp_path: Path) -> None:
    file = tmp_path / "h"
    write(file).close()
    with sqlite3.connect(file) as database:
        database.execute("UPDATE generations SET tree = x'00'")
    with (
        open_history(file) as history,
        pytest.raises(StoreError, match=f"{file}: generation 2: "),
    ):
        history.read_generations(limit=1)


def test_it_refuses_a_file_of_another_program_and_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "h"
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE other (x)")
    before = file.read_bytes()
    with pytest.raises(StoreError, match=f"{file}: is not a database of a history"):
        HistoryWriter(file).record(BEFORE, (), START)
    with pytest.raises(StoreError, match="is not a database"), open_history(file):
        pass
    assert file.read_bytes()[100:] == before[100:]


def test_it_refuses_an_emptied_file_and_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "h"
    write(file).close()
    file.write_bytes(b"")
    writer = HistoryWriter(file)
    for use in (
        lambda: writer.record(BEFORE, (), START),
        writer.read_last,
        open_history(file).__enter__,
    ):
        with pytest.raises(StoreError, match=f"{file}: is damaged: it is empty"):
            use()
    assert file.read_bytes() == b""


def test_it_says_that_a_file_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="does not exist"), open_history(tmp_path / "h"):
        pass


class Recorded:
    """A recorder with a clock of its own."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.at_s = START
        self.recorder = HistoryRecorder(
            HistoryWriter(file), lambda: datetime.fromtimestamp(self.at_s, UTC)
        )

    def count(self) -> int:
        with open_history(self.file) as history:
            return history.count_generations()


def test_rounds_without_a_change_write_nothing(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path / "h")
    recorded.recorder.record(BEFORE, (finding_of("a"),))
    recorded.recorder.close()
    before = recorded.file.read_bytes()
    recorded.at_s += DAY
    recorded.recorder.record(BEFORE, (finding_of("a", message="longer"),))
    recorded.recorder.record(None, ())
    recorded.recorder.close()
    assert recorded.file.read_bytes() == before
    again = Recorded(tmp_path / "h")
    again.at_s += 2 * DAY
    again.recorder.record(tree_of({"b": ("n3",), "a": ("n1", "n2")}), (finding_of("a"),))
    again.recorder.record(MOVED, ())
    assert again.count() == 2


def test_a_file_that_cannot_be_written_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recorded = Recorded(tmp_path / "missing" / "h")
    for _ in range(2):
        recorded.recorder.record(BEFORE, ())
    assert [row.message for row in caplog.records] == ["history not written"]
    (tmp_path / "missing").mkdir()
    recorded.recorder.record(BEFORE, ())
    assert recorded.count() == 1
