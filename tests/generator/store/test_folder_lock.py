"""One program writes a folder at a time, and what a killed one leaves behind is removed."""

import os
import signal
import subprocess  # noqa: TID251 - a program that is killed
import sys
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from generator.store.folder_lock import FolderLock, hold_lock
from generator.store.object_files import open_temporary
from tests.generator.scenes import Scene, run
from tests.generator.server.days import SMALL
from topology.model.errors import ConfigError, StoreError

HOLD = """
import sys
from pathlib import Path
from generator.store.folder_lock import FolderLock
from generator.store.object_files import open_temporary
lock = FolderLock(Path(sys.argv[1]))
folder = Path(sys.argv[1]) / "hypernodes"
folder.mkdir(exist_ok=True)
open_temporary(folder)
print("held", flush=True)
sys.stdin.read()
"""


def unfinished(root: Path) -> list[str]:
    return [file.name for file in root.rglob("*.tmp")]


def hold_in_a_program(root: Path) -> subprocess.Popen[bytes]:
    program = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert program.stdout is not None
    assert program.stdout.readline() == b"held\n"
    return program


def test_it_refuses_a_second_writer_and_names_the_first(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    with pytest.raises(ConfigError, match=rf"in use by another .* \(process {os.getpid()}\)"):
        FolderLock(tmp_path)
    lock.release()
    FolderLock(tmp_path).release()


def test_it_forgets_the_lock_and_the_files_of_a_killed_program(tmp_path: Path) -> None:
    with hold_in_a_program(tmp_path) as program:
        assert len(unfinished(tmp_path)) == 1
        with pytest.raises(ConfigError, match=f"process {program.pid}"):
            FolderLock(tmp_path)
        assert len(unfinished(tmp_path)) == 1, "the file is still being written"
        program.send_signal(signal.SIGKILL)
    (tmp_path / "hypernodes" / ".mine.tmp").write_text("of a person")
    FolderLock(tmp_path).release()
    assert unfinished(tmp_path) == [".mine.tmp"]


def test_it_leaves_a_file_alone_that_is_being_written(tmp_path: Path) -> None:
    number, path = open_temporary(tmp_path)
    FolderLock(tmp_path).release()
    assert path.exists()
    os.close(number)
    FolderLock(tmp_path).release()
    assert not path.exists()


def test_it_says_why_a_folder_cannot_be_locked(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot write .*file"):
        FolderLock(tmp_path / "file")
    with (
        pytest.raises(StoreError, match=r"cannot write .*file"),
        hold_lock(tmp_path / "file" / "x"),
    ):
        pass


def test_it_refuses_to_apply_while_a_server_runs(tmp_path: Path) -> None:
    store = Scene.of(tmp_path, SMALL).store()
    lock = FolderLock(store)
    ran = run("apply", "--store", store)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert f"process {os.getpid()}" in ran.err
    assert not (store / "hypernodes").exists()
    assert run("plan", "--store", store).code == ExitCode.OK, "reading needs no lock"
    lock.release()
    assert run("apply", "--store", store).code == ExitCode.OK


def test_it_refuses_a_second_server(tmp_path: Path) -> None:
    store = Scene.of(tmp_path, SMALL).store()
    lock = FolderLock(store)
    words = ("--listen", "127.0.0.1:0", "--insecure-loopback")
    ran = run("serve", "--store", store, *words)
    lock.release()
    assert ran.code == ExitCode.USAGE
    assert "in use by another toponaut serve or apply" in ran.err


def test_it_fails_to_apply_where_it_cannot_write(tmp_path: Path) -> None:
    store = Scene.of(tmp_path, SMALL).store()
    (store / ".toponaut.lock").mkdir()
    ran = run("apply", "--store", store)
    assert (ran.code, ran.out) == (ExitCode.INTERNAL, "")
    assert "cannot write" in ran.err
