"""Reservations in a folder: complete after a crash, written by one server, converted once."""

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from generator.reservations.legacy_sqlite import FILE_NAME, convert_file, read_reservations
from generator.reservations.objects import ReservationObjects, always_leading
from generator.reservations.records import Reservation, parse_stored_reservation, render_reservation
from generator.store.folder_store import FolderStore
from generator.store.object_store import StoreFenced
from tests.generator.reservations.worlds import World, id_of
from topology.model.errors import StoreError


def example(number: int = 1) -> Reservation:
    return World().made(number, count=3, groups=[{"name": "w", "count": 9, "min": 1}])


def open_store(root: Path) -> ReservationObjects:
    """Open the reservations of a folder as a server does."""
    objects = FolderStore(root)
    objects.begin_epoch()
    convert_file(root / FILE_NAME, objects)
    opened = ReservationObjects(objects, always_leading(objects.epoch))
    opened.refresh()
    return opened


def file_of(root: Path, number: int = 1) -> Path:
    return root / "placementreservations" / f"{id_of(number)}.yaml"


def test_it_reads_a_reservation_as_written() -> None:
    reservation = example()
    assert (
        parse_stored_reservation(json.loads(json.dumps(render_reservation(reservation))))
        == reservation
    )


def test_it_keeps_written_reservations_and_counts_the_servers(tmp_path: Path) -> None:
    first = open_store(tmp_path)
    assert first.read_reservations() == ()
    first.put([example(1), example(2)])
    first.delete([id_of(1)])
    assert first.read_reservations() == (example(2),)
    second = open_store(tmp_path)
    assert second.read_reservations() == (example(2),)
    assert second.epoch > first.epoch
    assert second.read_inherited_ids() == {id_of(2)}


def test_it_writes_nothing_once_another_server_has_begun(tmp_path: Path) -> None:
    first = open_store(tmp_path)
    first.put([example(1)])
    second = open_store(tmp_path)
    with pytest.raises(StoreFenced, match="another server has begun to write it since"):
        first.put([example(2)])
    with pytest.raises(StoreFenced):
        first.delete([id_of(1)])
    second.put([example(3)])
    assert [row.id for row in open_store(tmp_path).read_reservations()] == [id_of(1), id_of(3)]


def test_it_refuses_to_write_into_a_removed_folder(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store")
    store.put([example(1)])
    (tmp_path / "store").rename(tmp_path / "moved")
    with pytest.raises(StoreError, match="was removed or replaced; restart the server"):
        store.put([example(2)])


def test_a_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.put([example(1)])
    file_of(tmp_path, 2).mkdir()
    with pytest.raises(StoreError):
        store.put([example(2)])
    store.refresh()
    assert store.read_reservations() == (example(1),)
    assert len(store.problems) == 1
    file_of(tmp_path, 2).rmdir()
    store.put([example(2)])
    assert store.read_reservations() == (example(1), example(2))
    assert not store.problems


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param("{}", "spec: is missing", id="another object"),
        pytest.param('{"kind": "Placem', "not YAML", id="a cut file"),
        pytest.param("", "contains no object", id="an empty file"),
    ],
)
def test_a_file_that_cannot_be_used_holds_nothing_and_is_named(
    tmp_path: Path, content: str, why: str
) -> None:
    open_store(tmp_path).put([example(1), example(2)])
    file_of(tmp_path, 2).write_text(content)
    store = open_store(tmp_path)
    assert store.read_reservations() == (example(1),)
    (problem,) = store.problems
    assert str(file_of(tmp_path, 2)) in problem
    assert why in problem


def test_it_deletes_objects_that_no_caller_was_told_of(tmp_path: Path) -> None:
    open_store(tmp_path).put([example(1)])
    document = json.loads(file_of(tmp_path).read_text())
    del document["status"]
    file_of(tmp_path).write_text(json.dumps(document))
    assert open_store(tmp_path).read_reservations() == ()
    assert not file_of(tmp_path).exists()


def test_it_is_used_by_several_threads(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    rows = [example(at) for at in range(24)]
    threads = [Thread(target=store.put, args=([row],)) for row in rows]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = tuple(sorted(rows, key=lambda row: row.id))
    assert store.read_reservations() == expected
    assert open_store(tmp_path).read_reservations() == expected


def write_sqlite(file: Path, *rows: Reservation) -> None:
    """Write a file as earlier versions did."""
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE epochs (epoch INTEGER NOT NULL) STRICT")
        database.execute("INSERT INTO epochs VALUES (5)")
        database.execute(
            "CREATE TABLE reservations (id TEXT PRIMARY KEY, document TEXT NOT NULL) STRICT"
        )
        documents = [(row.id, json.dumps(render_reservation(row))) for row in rows]
        database.executemany("INSERT INTO reservations VALUES (?, ?)", documents)
        database.execute(f"PRAGMA application_id = {0x546F706E}")
        database.execute("PRAGMA user_version = 1")


def test_it_converts_the_file_of_an_earlier_version_once(tmp_path: Path) -> None:
    rows = tuple(replace(example(number), epoch=5) for number in (1, 2))
    write_sqlite(tmp_path / FILE_NAME, *rows)
    store = open_store(tmp_path)
    assert store.read_reservations() == rows
    assert store.epoch == 6
    assert not (tmp_path / FILE_NAME).exists()
    store.delete([id_of(1)])
    assert open_store(tmp_path).read_reservations() == rows[1:]


def _foreign(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE songs (title TEXT)")


def _newer(file: Path) -> None:
    write_sqlite(file, example())
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("PRAGMA user_version = 2")


def _text(file: Path) -> None:
    file.write_text("reservations: none of your business\n" * 50)


def _cut(file: Path) -> None:
    write_sqlite(file, *(example(at) for at in range(50)))
    file.write_bytes(file.read_bytes()[:10_000])


def _odd(file: Path) -> None:
    write_sqlite(file, example())
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE reservations SET document = '{}'")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        pytest.param(_foreign, "is not a database of reservations", id="another program's"),
        pytest.param(
            _newer, "has schema version 2; this program supports 1", id="a later program's"
        ),
        pytest.param(_text, "not a database", id="a text file"),
        pytest.param(lambda file: file.write_bytes(b""), "is damaged: it is empty", id="emptied"),
        pytest.param(_cut, "malformed|damaged", id="cut off"),
        pytest.param(
            _odd, "reservation .*: metadata: is missing", id="a row without a reservation"
        ),
        pytest.param(Path.mkdir, "is not a regular file", id="a folder"),
        pytest.param(os.mkfifo, "is not a regular file", id="a named pipe"),
    ],
)
def test_it_converts_no_file_that_is(
    tmp_path: Path, make: Callable[[Path], object], why: str
) -> None:
    file = tmp_path / FILE_NAME
    make(file)
    for use in (lambda: open_store(tmp_path), lambda: read_reservations(file)):
        with pytest.raises(StoreError, match=why) as caught:
            use()
        assert str(caught.value).startswith(str(file))
        assert "\n" not in str(caught.value)
    assert file.exists()
    assert not (tmp_path / "placementreservations").exists()
