"""The backup of a history: what it keeps, how two are merged, and that it fits into an object."""

from __future__ import annotations

import lzma
from dataclasses import replace
from pathlib import Path

import pytest

from generator.history import backup
from generator.history.backup import (
    EMPTY,
    MAX_GENERATIONS,
    Backup,
    merge_backups,
    pack_backup,
    parse_backup,
    read_backup,
)
from generator.history.findings import decode_finding, encode_finding
from generator.history.history_file import FindingLife, Generation, HistoryWriter, open_history
from generator.history.retention import DAY_S, HOUR_S, ROOM_BYTES
from tests.generator.history.test_changes import finding_of, tree_of
from topology.model.errors import ConfigError
from topology.model.facts import Finding, PortName

NOW_S = 1_800_000_000
BEFORE = tree_of({"a": ("n1", "n2"), "b": ("n3",)})
AFTER = tree_of({"a": ("n1",), "b": ("n2", "n3")})


def find(device: str, port: str = "1") -> Finding:
    """Return a finding as it is read back: with the port of its subject as evidence."""
    return decode_finding(encode_finding(finding_of(device, port)))


GONE = FindingLife(find("gone"), NOW_S - 400, NOW_S - 200)
LASTING = FindingLife(find("lasting"), NOW_S - 300, None)
BACKUP = Backup(
    (Generation(2, NOW_S - 100, AFTER), Generation(1, NOW_S - 500, BEFORE)), (LASTING, GONE)
)


def times_of(backup: Backup) -> list[int]:
    return [generation.at_s for generation in backup.generations]


def test_a_packed_backup_is_read_back() -> None:
    found = parse_backup(pack_backup(BACKUP))
    assert times_of(found) == times_of(BACKUP)
    assert [row.tree for row in found.generations] == [AFTER, BEFORE]
    assert found.lives == BACKUP.lives


def test_a_new_file_continues_the_history_of_the_backup(tmp_path: Path) -> None:
    file = tmp_path / "history.sqlite"
    writer = HistoryWriter(file)
    writer.restore(BACKUP.generations, BACKUP.lives)
    last = writer.read_last()
    assert last is not None
    assert last[0] == AFTER
    writer.record(BEFORE, [finding_of("lasting")], NOW_S)
    writer.close()
    with open_history(file) as history:
        found = history.read_generations(limit=9)
        assert [row.at_s for row in found] == [NOW_S, NOW_S - 100, NOW_S - 500]
        assert history.begin_s == NOW_S - 500
        assert set(history.read_lives(gone_room=9)) == {GONE, LASTING}


def test_a_file_that_exists_is_not_changed_by_a_backup(tmp_path: Path) -> None:
    writer = HistoryWriter(tmp_path / "history.sqlite")
    writer.record(AFTER, [], NOW_S)
    writer.restore(BACKUP.generations, BACKUP.lives)
    with open_history(tmp_path / "history.sqlite") as history:
        assert history.count_generations() == 1


def test_a_file_becomes_a_backup(tmp_path: Path) -> None:
    file = tmp_path / "history.sqlite"
    writer = HistoryWriter(file)
    writer.record(BEFORE, [finding_of("gone"), finding_of("lasting")], NOW_S - 500)
    writer.record(AFTER, [finding_of("lasting")], NOW_S - 100)
    found = read_backup(file, NOW_S)
    assert times_of(found) == [NOW_S - 100, NOW_S - 500]
    assert {life.finding.device: life.ended_s for life in found.lives} == {
        "lasting": None,
        "gone": NOW_S - 100,
    }


def test_of_many_generations_the_newest_of_each_hour_and_day_are_kept(tmp_path: Path) -> None:
    writer = HistoryWriter(tmp_path / "history.sqlite")
    for hour in range(24 * 40, 0, -6):
        writer.record(AFTER if hour % 12 else BEFORE, None, NOW_S - hour * HOUR_S)
    found = times_of(read_backup(tmp_path / "history.sqlite", NOW_S))
    assert len(found) <= MAX_GENERATIONS
    assert found[0] == NOW_S - 6 * HOUR_S
    assert found == sorted(found, reverse=True)
    assert NOW_S - found[-1] > 30 * DAY_S


def test_an_own_history_replaces_the_backup_from_its_begin_on() -> None:
    own = Backup((Generation(1, NOW_S - 150, AFTER),), (LASTING._replace(began_s=NOW_S - 150),))
    merged = merge_backups(BACKUP, own)
    assert times_of(merged) == [NOW_S - 150, NOW_S - 500]
    assert set(merged.lives) == {GONE, LASTING}, "a lasting finding keeps its first time"


def test_an_older_history_leaves_nothing_of_the_backup_out() -> None:
    merged = merge_backups(BACKUP, EMPTY)
    assert merged == BACKUP
    assert merge_backups(EMPTY, BACKUP) == BACKUP


def test_what_does_not_fit_into_an_object_is_dropped_oldest_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backup, "MAX_BYTES", 8000)
    lives = tuple(
        FindingLife(find(f"{at:x}" * 40), NOW_S - at - 1, NOW_S - at) for at in range(2000)
    )
    packed = pack_backup(Backup(BACKUP.generations, lives))
    assert len(packed) <= 8000
    found = parse_backup(packed)
    assert times_of(found) == times_of(BACKUP)
    assert 0 < len(found.lives) < len(lives)
    assert found.lives[0] == lives[0]


def test_findings_of_one_device_leave_no_other_device_out_of_a_backup(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backup, "GONE_ROOM", 1000)
    quiet = FindingLife(find("quiet"), NOW_S - 90_000, NOW_S - 80_000)
    lives = tuple(
        FindingLife(find("flapping", port=f"{at:x}" * 40), NOW_S - at - 1, NOW_S - at)
        for at in range(2000)
    )
    found = parse_backup(pack_backup(Backup(BACKUP.generations, (*lives, quiet))))
    assert quiet in found.lives
    assert len(found.lives) < len(lives)


def test_large_findings_leave_no_other_device_out_of_a_backup(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backup, "GONE_ROOM", 100)
    ports = tuple(PortName("noisy", str(at)) for at in range(1000))
    noisy = [
        FindingLife(replace(find("noisy", str(at)), ports=ports), NOW_S - 900, NOW_S - at)
        for at in range(50)
    ]
    found = parse_backup(pack_backup(Backup(BACKUP.generations, (*noisy, GONE))))
    assert GONE in found.lives
    assert noisy[0] in found.lives
    assert sum(len(encode_finding(life.finding)) for life in found.lives) < 100 * ROOM_BYTES


def test_a_tree_that_does_not_fit_is_an_error_even_with_a_finding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backup, "MAX_BYTES", 10)
    with pytest.raises(ConfigError, match="does not fit"):
        pack_backup(Backup(BACKUP.generations[:1], (GONE,)))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"no archive",
        lzma.compress(b"{"),
        lzma.compress(b"[]"),
        lzma.compress(b'{"format": 99, "generations": [], "findings": []}'),
        lzma.compress(b'{"format": 1, "generations": [[1, {}]], "findings": []}'),
        lzma.compress(b'{"format": 1, "generations": [], "findings": [["x", 1, null]]}'),
        pack_backup(BACKUP)[:-20],
    ],
    ids=[
        "is empty",
        "is text",
        "has half a document",
        "has a list",
        "has a later format",
        "has a wrong tree",
        "has a wrong finding",
        "is cut",
    ],
)
def test_it_refuses_a_backup_that(raw: bytes) -> None:
    with pytest.raises(ConfigError, match="history"):
        parse_backup(raw)


def test_it_refuses_a_backup_that_is_far_larger_when_it_is_unpacked() -> None:
    with pytest.raises(ConfigError, match="history"):
        parse_backup(lzma.compress(b" " * (80 << 20), preset=0))
