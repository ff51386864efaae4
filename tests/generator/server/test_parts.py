"""What the loop is made of: reading what changed, telling what changed, ticking, signals."""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
from collections.abc import Hashable
from functools import partial
from pathlib import Path

import pytest

from generator.store.watched_directory import Watched, file_stamps, folder_stamps
from runtime.generator_clock import utc_now
from runtime.generator_logs import JsonFormatter, TextFormatter
from runtime.generator_periodic import Schedule
from runtime.generator_stop import STOP_SIGNALS, stop_signals
from runtime.transition_log import MAX_LINES, Standing

SOON_S = 10.0


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


def test_it_tells_each_thing_once_and_counts_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    standing = Standing(logging.getLogger("test"), "thing", level=logging.WARNING)
    many: dict[Hashable, dict[str, object]] = {
        number: {"number": number} for number in range(MAX_LINES + 5)
    }
    standing.update(many)
    standing.update(many)
    standing.update({0: {"number": 0}})
    events = [record.getMessage() for record in caplog.records]
    assert events.count("thing appeared") == events.count("thing gone") == MAX_LINES
    rest = [vars(record)["num"] for record in caplog.records if "num" in vars(record)]
    assert rest == [5, 4]
    assert {record.levelname for record in caplog.records if "appeared" in record.message} == {
        "WARNING"
    }


def test_it_ticks_at_once_and_then_by_the_period() -> None:
    ticks = threading.Semaphore(0)
    schedule = Schedule(ticks.release, period_s=0.02, now=utc_now)
    try:
        assert all(ticks.acquire(timeout=SOON_S) for _ in range(3))
    finally:
        assert schedule.stop(deadline_s=SOON_S)


def test_it_ticks_sooner_where_a_tick_asks_for_it() -> None:
    ticks = threading.Semaphore(0)
    answers = iter([0.0, 0.02, None])

    def tick() -> float | None:
        ticks.release()
        return next(answers)

    schedule = Schedule(tick, period_s=3600, now=utc_now)
    try:
        assert all(ticks.acquire(timeout=SOON_S) for _ in range(3))
        assert not ticks.acquire(timeout=0.1), "the third asked for nothing"
    finally:
        assert schedule.stop(deadline_s=SOON_S)


def test_it_ticks_soon_when_it_is_woken_and_once_for_many_wishes() -> None:
    ticks = threading.Semaphore(0)
    schedule = Schedule(ticks.release, period_s=3600, now=utc_now)
    try:
        assert ticks.acquire(timeout=SOON_S)
        for delay_s in (0.2, 0.1, 0.3):
            schedule.wake(delay_s)
        assert ticks.acquire(timeout=SOON_S)
        assert not ticks.acquire(timeout=0.5), "one call sees it all"
        schedule.wake(0.0)
        assert ticks.acquire(timeout=SOON_S)
    finally:
        assert schedule.stop(deadline_s=SOON_S)
    schedule.wake(0.0)


def test_it_ticks_again_for_a_wish_that_came_during_a_tick() -> None:
    begun, may_end = threading.Semaphore(0), threading.Semaphore(0)

    def tick() -> None:
        begun.release()
        may_end.acquire(timeout=SOON_S)

    schedule = Schedule(tick, period_s=3600, now=utc_now)
    try:
        assert begun.acquire(timeout=SOON_S)
        schedule.wake(0.0)
        may_end.release(2)
        assert begun.acquire(timeout=SOON_S)
    finally:
        assert schedule.stop(deadline_s=SOON_S)


def test_it_never_runs_two_rounds_at_once() -> None:
    busy, rounds = threading.Lock(), threading.Semaphore(0)
    overlaps: list[bool] = []

    def tick() -> None:
        overlaps.append(not busy.acquire(blocking=False))
        threading.Event().wait(0.03)
        busy.release()
        rounds.release()

    schedule = Schedule(tick, period_s=0.01, now=utc_now)
    assert all(rounds.acquire(timeout=SOON_S) for _ in range(4))
    assert schedule.stop(deadline_s=SOON_S)
    assert not any(overlaps)


def test_it_says_that_a_round_was_left_out(caplog: pytest.LogCaptureFixture) -> None:
    late = threading.Event()

    def tick() -> None:
        while not [one for one in caplog.records if one.name == "runtime.generator_periodic"]:
            threading.Event().wait(0.01)
        late.set()

    schedule = Schedule(tick, period_s=0.05, now=utc_now)
    assert late.wait(SOON_S)
    assert schedule.stop(deadline_s=SOON_S)


def test_it_stops_without_a_round_that_takes_too_long() -> None:
    begun, may_end = threading.Event(), threading.Event()

    def tick() -> None:
        begun.set()
        may_end.wait(SOON_S)

    schedule = Schedule(tick, period_s=60, now=utc_now)
    assert begun.wait(SOON_S)
    assert not schedule.stop(deadline_s=0.01)
    may_end.set()


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_it_waits_for_a_stop_signal_and_leaves_signals_as_they_were(number: signal.Signals) -> None:
    before = [signal.getsignal(one) for one in STOP_SIGNALS]
    with stop_signals() as wait_for_stop:
        os.kill(os.getpid(), number)
        assert wait_for_stop() == number.name
    assert [signal.getsignal(one) for one in STOP_SIGNALS] == before
    assert signal.set_wakeup_fd(-1) == -1


def record_of(**fields: object) -> logging.LogRecord:
    record = logging.LogRecord("name", logging.INFO, "path", 1, "fabric known", None, None)
    vars(record).update(fields)
    return record


def test_it_logs_fields_as_json() -> None:
    line = json.loads(JsonFormatter().format(record_of(device="a\nb", path=Path("p"))))
    assert (line["event"], line["level"], line["device"], line["path"]) == (
        "fabric known",
        "info",
        "a\nb",
        "p",
    )
    assert line["time"].endswith("Z")


def test_it_logs_hostile_fields_on_one_line_of_text() -> None:
    line = TextFormatter().format(record_of(device="a\n\x1b[31mb"))
    assert line.endswith(r"fabric known device=a\n\x1b[31mb")
