"""Reservations in a SQLite file: complete after a crash; files of other programs are refused."""

import json
import os
import signal
import sqlite3
import subprocess  # noqa: TID251 - a process that is killed is the thing under test
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from generator.reservations.documents import parse_stored_reservation, render_reservation
from generator.reservations.records import Reservation
from generator.reservations.sqlite import FILE_NAME, SqliteReservations, read_reservations
from generator.reservations.store import StoreFenced
from tests.generator.reservations.worlds import World, id_of
from tests.repository import ROOT
from topology.model.errors import StoreError

DEADLINE_S = 60.0


def example(number: int = 1) -> Reservation:
    return World().made(number, count=3, groups=[{"name": "w", "count": 9, "min": 1}])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / FILE_NAME


def test_it_reads_a_reservation_as_written() -> None:
    reservation = example()
    assert (
        parse_stored_reservation(json.loads(json.dumps(render_reservation(reservation))))
        == reservation
    )


def test_it_creates_no_file_before_the_first_write(file: Path) -> None:
    store = SqliteReservations(file)
    assert (store.read_reservations(), read_reservations(file)) == ((), ())
    assert not file.exists()
    store.put([example()])
    assert read_reservations(file) == store.read_reservations() == (example(),)


def test_it_keeps_written_reservations_and_counts_the_openings(file: Path) -> None:
    first = SqliteReservations(file)
    first.put([example(1), example(2)])
    first.delete([id_of(1)])
    first.close()
    second = SqliteReservations(file)
    assert second.read_reservations() == (example(2),)
    assert second.epoch == first.epoch + 1
    assert second.read_inherited_ids() == {id_of(2)}


def test_it_writes_nothing_once_another_server_has_taken_over(file: Path) -> None:
    first = SqliteReservations(file)
    first.put([example(1)])
    second = SqliteReservations(file)
    with pytest.raises(StoreFenced, match="another server has opened this file since"):
        first.put([example(2)])
    with pytest.raises(StoreFenced):
        first.delete([id_of(1)])
    second.put([example(3)])
    assert [reservation.id for reservation in read_reservations(file)] == [id_of(1), id_of(3)]


def test_it_refuses_to_write_into_a_removed_or_replaced_file(file: Path) -> None:
    store = SqliteReservations(file)
    store.put([example(1)])
    file.unlink()
    with pytest.raises(StoreError, match="was removed or replaced"):
        store.put([example(2)])
    file.write_bytes(b"")
    with pytest.raises(StoreError, match="was removed or replaced"):
        store.put([example(2)])


def test_it_writes_all_or_nothing(file: Path) -> None:
    store = SqliteReservations(file)
    store.put([example(1)])
    with sqlite3.connect(file) as database:
        database.execute(
            "CREATE TRIGGER no BEFORE INSERT ON reservations WHEN NEW.id = "
            f"'{id_of(3)}' BEGIN SELECT RAISE(ABORT, 'disk full'); END"
        )
    database.close()
    with pytest.raises(StoreError, match="disk full"):
        store.put([example(2), example(3)])
    assert [reservation.id for reservation in read_reservations(file)] == [id_of(1)]
    assert [reservation.id for reservation in store.read_reservations()] == [id_of(1)]
    store.put([example(2)])


def _foreign(file: Path) -> None:
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE songs (title TEXT)")
    database.close()


def _newer(file: Path) -> None:
    store = SqliteReservations(file)
    store.put([example()])
    store.close()  # else the collector does, which writes the file later
    with sqlite3.connect(file) as database:
        database.execute("PRAGMA user_version = 2")
    database.close()


def _text(file: Path) -> None:
    file.write_text("reservations: none of your business\n" * 50)


def _emptied(file: Path) -> None:
    store = SqliteReservations(file)
    store.put([example()])
    store.close()
    file.write_bytes(b"")


def _without_tables(file: Path) -> None:
    with sqlite3.connect(file) as database:
        database.execute("PRAGMA journal_mode = WAL")
    database.close()
    assert file.stat().st_size > 0


def _cut(file: Path) -> None:
    store = SqliteReservations(file)
    store.put([example(at) for at in range(50)])
    store.close()
    file.write_bytes(file.read_bytes()[:10_000])


def _scribbled(file: Path) -> None:
    store = SqliteReservations(file)
    store.put([example(at) for at in range(50)])
    store.close()
    raw = bytearray(file.read_bytes())
    raw[8192:12288] = b"\xff" * 4096
    file.write_bytes(bytes(raw))


def _odd(file: Path) -> None:
    store = SqliteReservations(file)
    store.put([example()])
    store.close()
    with sqlite3.connect(file) as database:
        database.execute("UPDATE reservations SET document = '{}'")
    database.close()


def _renamed(file: Path) -> None:
    store = SqliteReservations(file)
    store.put([example()])
    store.close()
    with sqlite3.connect(file) as database:
        database.execute("UPDATE reservations SET id = 'x'")
    database.close()


@pytest.mark.parametrize(
    ("make", "why"),
    [
        pytest.param(_foreign, "is not a database of reservations", id="another program's"),
        pytest.param(
            _newer, "has schema version 2; this program supports 1", id="a later program's"
        ),
        pytest.param(_text, "not a database", id="a text file"),
        pytest.param(_emptied, "is damaged: it is empty", id="emptied"),
        pytest.param(_without_tables, "is damaged: it is empty", id="cut before its tables"),
        pytest.param(_cut, "malformed|damaged", id="cut off"),
        pytest.param(_scribbled, "malformed|damaged", id="scribbled over"),
        pytest.param(
            _odd, "reservation .*: metadata: is missing", id="a row without a reservation"
        ),
        pytest.param(_renamed, "the stored document has another id", id="a row with another id"),
    ],
)
def test_it_does_not_change_a_file_that_is(file: Path, make: object, why: str) -> None:
    assert callable(make)
    make(file)
    before = file.read_bytes()
    for use in (SqliteReservations, read_reservations):
        with pytest.raises(StoreError, match=why) as caught:
            use(file)
        assert str(caught.value).startswith(str(file))
        assert "\n" not in str(caught.value)
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(Path.mkdir, id="a folder"),
        pytest.param(os.mkfifo, id="a named pipe"),
        pytest.param(lambda file: file.symlink_to("nowhere"), id="a link to nothing"),
        pytest.param(lambda file: file.symlink_to(file.name), id="a link to itself"),
    ],
)
def test_it_refuses_as_file(file: Path, make: Callable[[Path], object]) -> None:
    make(file)
    for use in (SqliteReservations, read_reservations):
        with pytest.raises(StoreError, match="is not a regular file"):
            use(file)
    assert [other.name for other in file.parent.iterdir()] == [file.name]


def test_it_loses_no_acknowledged_write_with_the_log_of_a_killed_server(file: Path) -> None:
    store = SqliteReservations(file)
    rows = []
    for number in range(1, 5):
        rows.append(example(number))
        store.put([rows[-1]])
        copy = file.with_name(f"copy-{number}")  # without the log beside it
        copy.write_bytes(file.read_bytes())
        assert read_reservations(copy) == tuple(rows)


def test_it_is_used_by_several_threads(file: Path) -> None:
    store = SqliteReservations(file)
    rows = [example(at) for at in range(24)]
    threads = [Thread(target=store.put, args=([row],)) for row in rows]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read_reservations(file) == tuple(rows)


KILLED = """
import sys
from pathlib import Path
from generator.reservations.sqlite import SqliteReservations
from tests.generator.reservations.test_sqlite import example
from dataclasses import replace
from tests.generator.reservations.worlds import id_of

store = SqliteReservations(Path(sys.argv[1]))
one = example()
for at in range(10**6):
    pair = [replace(one, id=id_of(2 * at + side)) for side in (0, 1)]
    store.put(pair)
    print(at, flush=True)
"""


def test_it_has_every_complete_write_after_a_kill(file: Path) -> None:
    running = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(file)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    ends_at = time.monotonic() + DEADLINE_S
    acknowledged = [int(running.stdout.readline()) for _ in range(20)]
    assert time.monotonic() < ends_at
    os.kill(running.pid, signal.SIGKILL)
    acknowledged += [int(line) for line in running.stdout.read().splitlines() if line]
    running.wait(DEADLINE_S)
    running.stdout.close()
    stored = {reservation.id for reservation in SqliteReservations(file).read_reservations()}
    for at in acknowledged:
        assert {id_of(2 * at), id_of(2 * at + 1)} <= stored
    assert len(stored) % 2 == 0, "the last write is complete or absent"
    assert len(stored) - 2 * len(acknowledged) in (0, 2)
