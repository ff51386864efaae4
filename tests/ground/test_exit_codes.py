"""Every command under the conditions of a bad machine: README's table of exit codes holds.

Each command of `exit_rows` runs as a program of its own. Whatever happens, stderr has no
traceback, and a file that was not written completely does not exist.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ground.command_runs import END_S, check_text, leftovers, prepare, shell, with_output
from tests.ground.exit_rows import (
    ROWS,
    commands,
    ending,
    names_of,
    pairs_of,
)

pytestmark = pytest.mark.timeout(400)
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def test_it_has_a_row_for_every_command() -> None:
    assert {name for name, _ in commands()} == ROWS.keys()


@pytest.mark.parametrize("name", names_of(ending()))
def test_it_works_in(name: str, inputs: dict[str, str], tmp_path: Path) -> None:
    prepare(name, tmp_path)
    done = shell('exec "$@"', with_output(name, inputs, tmp_path))
    assert done.returncode in ROWS[name].codes, done.stderr
    assert bool(done.stdout) is ROWS[name].prints
    check_text(done.stderr)


BAD_OUTPUTS = {
    ">/dev/full": "No space left on device",
    ">&-": "Bad file descriptor",
    ">&- 2>&-": "",
    ">/dev/full 2>/dev/full": "",
    "</dev/null >/dev/full": "No space left on device",
}


@pytest.mark.parametrize(("name", "to"), pairs_of(ending(prints=True), BAD_OUTPUTS))
def test_it_exits_with_1_if_it_cannot_print_in(
    name: str, to: str, inputs: dict[str, str], tmp_path: Path
) -> None:
    done = shell(f'exec "$@" {to}', with_output(name, inputs, tmp_path))
    check_text(done.stderr)
    assert done.returncode == 1
    if BAD_OUTPUTS[to]:
        last = done.stderr.splitlines()[-1]
        assert last == f"error: cannot write to stdout: {BAD_OUTPUTS[to]}"


@pytest.mark.parametrize(
    ("name", "to"), pairs_of(set(ending()) - set(ending(prints=True)), [">/dev/full", ">&-"])
)
def test_it_needs_no_stdout_for_what_it_does_not_print_in(
    name: str, to: str, inputs: dict[str, str], tmp_path: Path
) -> None:
    prepare(name, tmp_path)
    done = shell(f'exec "$@" {to}', with_output(name, inputs, tmp_path))
    check_text(done.stderr)
    assert done.returncode in ROWS[name].codes, done.stderr


@pytest.mark.parametrize("words", ["--help", "--version", "tree --help"])
@pytest.mark.parametrize("to", [">/dev/full", ">&-"])
def test_it_exits_with_1_if_it_cannot_print_help(words: str, to: str) -> None:
    line = [sys.executable, "-m", "generator", *words.split()]
    done = shell(f'exec "$@" {to}', line)
    assert done.returncode == 1
    assert done.stderr.startswith("error: cannot write to stdout: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", names_of(ending(prints=True)))
def test_it_ends_in_silence_if_its_reader_has_left(
    name: str, inputs: dict[str, str], tmp_path: Path
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run(
        with_output(name, inputs, tmp_path),
        stdout=writing,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
        timeout=END_S,
    )
    os.close(writing)
    assert ran.returncode == 128 + signal.SIGPIPE, ran.stderr
    check_text(ran.stderr)


@pytest.mark.parametrize(("name", "to"), pairs_of(ending(prints=True), ["2>/dev/full", "<&- 2>&-"]))
def test_it_answers_without_stderr_or_stdin_in(
    name: str, to: str, inputs: dict[str, str], tmp_path: Path
) -> None:
    done = shell(f'exec "$@" {to}', with_output(name, inputs, tmp_path))
    assert done.returncode in ROWS[name].codes
    assert done.stdout


@pytest.mark.parametrize("of", ["<&-", "</dev/null"], ids=["closed", "empty"])
@pytest.mark.parametrize("command", ["place -f -", "rpc Place --server 127.0.0.1:9 -f -"])
def test_it_refuses_a_stdin_that_it_cannot_read(
    command: str, of: str, inputs: dict[str, str]
) -> None:
    more = ["--tree", inputs["tree"]] if command.startswith("place") else []
    line = [sys.executable, "-m", "generator", *command.split(), *more]
    done = shell(f'exec "$@" {of}', line)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(("error: stdin", "error: "))
    check_text(done.stderr)


def started(line: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        line,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def wait_until(is_met: Callable[[], object], what: str) -> None:
    """Wait for a condition; the deadline is far above what a loaded machine needs."""
    end_s = time.monotonic() + END_S
    while not is_met():
        assert time.monotonic() < end_s, what
        os.sched_yield()


def wait_for_handler(process: subprocess.Popen[str]) -> None:
    """Wait until the program, and not the interpreter, decides what the stop signals do.

    It takes SIGALRM last, after all of them.
    """
    status = Path(f"/proc/{process.pid}/status")

    def is_caught() -> int:
        assert process.poll() is None, "it ended by itself"
        caught = next(line for line in status.read_text().splitlines() if "SigCgt" in line)
        return int(caught.split()[1], 16) >> (signal.SIGALRM - 1) & 1

    wait_until(is_caught, "it takes no signal")


def end(process: subprocess.Popen[str], number: signal.Signals) -> tuple[int, str, str]:
    process.send_signal(number)
    try:
        out, err = process.communicate(timeout=END_S)
    finally:
        process.kill()
    return process.returncode, out, err


@pytest.mark.parametrize(("name", "number"), pairs_of(ROWS, SIGNALS))
def test_it_reports_a_signal_that_comes_at_once_in(
    name: str, number: signal.Signals, inputs: dict[str, str], tmp_path: Path
) -> None:
    process = started(with_output(name, inputs, tmp_path))
    wait_for_handler(process)
    code, out, err = end(process, number)
    assert (code, out) == (128 + number, "")
    # On a loaded machine the command may have begun before the signal arrives.
    notes = ("; nothing was read or written", "")
    assert err in {f"interrupted by {number.name}{note}\n" for note in notes}
    assert list(tmp_path.iterdir()) == []


LATER_S = (0.1, 0.3, 0.6, 1.2)


@pytest.mark.parametrize(("name", "after_s", "number"), pairs_of(ROWS, LATER_S, SIGNALS))
def test_it_reports_a_signal_that_comes_later_in(
    name: str, after_s: float, number: signal.Signals, inputs: dict[str, str], tmp_path: Path
) -> None:
    prepare(name, tmp_path)
    process = started(with_output(name, inputs, tmp_path))
    wait_for_handler(process)
    try:
        process.wait(after_s)
    except subprocess.TimeoutExpired:
        code, _, err = end(process, number)
    else:
        code, err = process.wait(), process.communicate()[1]
    check_text(err)
    # The interpreter itself ends by the signal once it has ended the program.
    assert code in {128 + number, -number, *ROWS[name].codes}, err
    if code == 128 + number:
        assert f"interrupted by {number.name}" in err
    assert not leftovers(tmp_path)


SIGNALLED_IMPORT = """
import os, signal, sys
from runtime.program import run_program
from runtime.program import interruptible, start_command

def command():
    with interruptible():
        start_command()
        import interrupted_module

sys.path.insert(0, sys.argv[1])
run_program(lambda: command)
"""


@pytest.mark.parametrize("number", SIGNALS)
def test_it_reports_a_signal_that_comes_in_the_last_import(
    number: signal.Signals, tmp_path: Path
) -> None:
    module = tmp_path / "interrupted_module.py"
    module.write_text(f"import os\nos.kill(os.getpid(), {int(number)})\n")
    done = shell('exec "$@"', [sys.executable, "-c", SIGNALLED_IMPORT, str(tmp_path)])
    assert (done.returncode, done.stderr) == (
        128 + number,
        f"interrupted by {number.name}\n",
    )


SIGNALLED_MODEL = """
import os, sys, time
from enum import Enum
from pydantic import BaseModel, ConfigDict
from runtime.program import run_program
from runtime.program import interruptible, start_command

class Kind(Enum):
    A = "a"

    @property
    def value(self):
        if is_started:
            os.kill(os.getpid(), int(sys.argv[1]))
        return "a"

is_started = []

class Model(BaseModel):
    model_config = ConfigDict(defer_build=True)
    kind: Kind

def command():
    with interruptible():
        start_command()
        is_started.append(True)
        Model.model_validate({"kind": "a"})
        end_s = time.monotonic() + 10
        while time.monotonic() < end_s:
            pass
        raise AssertionError("the signal was lost")

run_program(lambda: command)
"""


@pytest.mark.parametrize("number", SIGNALS)
def test_it_reports_a_signal_that_comes_while_a_model_is_built(number: signal.Signals) -> None:
    done = shell('exec "$@"', [sys.executable, "-c", SIGNALLED_MODEL, str(int(number))])
    assert (done.returncode, done.stderr) == (128 + number, f"interrupted by {number.name}\n")


SWALLOWED = """
import os, sys, time
from runtime import program
from runtime.program import run_program

program.END_S = 0.1

def command():
    with program.interruptible():
        program.start_command()
        try:
            os.kill(os.getpid(), int(sys.argv[1]))
        except BaseException:
            pass
        end_s = time.monotonic() + 60
        while time.monotonic() < end_s:
            pass

run_program(lambda: command)
"""


def test_it_ends_soon_after_a_signal_whose_exception_is_swallowed() -> None:
    done = shell('exec "$@"', [sys.executable, "-c", SWALLOWED, str(int(signal.SIGTERM))])
    line = "interrupted by SIGTERM; unfinished files may be left\n"
    assert (done.returncode, done.stderr) == (128 + signal.SIGTERM, line)


SIGNALLED_START = """
import os, signal, sys

class Interruption:
    def find_spec(self, name, path, target=None):
        if name == "runtime.program":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interruption())
from {program}.cli.main import main
main()
"""


@pytest.mark.parametrize("program", ["agent", "generator"])
def test_it_prints_no_traceback_for_a_signal_before_its_handlers(program: str) -> None:
    code = SIGNALLED_START.format(program=program)
    done = shell('"$@"; exit $?', [sys.executable, "-c", code])
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGINT, "", "")


def test_it_says_that_an_interrupted_simulation_left_the_folder_as_it_was(tmp_path: Path) -> None:
    out = tmp_path / "fabric"
    words = ["simulate", "fabric", "--hosts", "2048", "--rails", "8", "--out", str(out)]
    process = started([sys.executable, "-m", "generator", *words])
    wait_until(lambda: list(tmp_path.glob(".fabric.*/new/*")), "it writes nothing")
    code, _, err = end(process, signal.SIGINT)
    assert (code, err) == (130, f"interrupted by SIGINT; {out} is as before\n")
    assert list(tmp_path.iterdir()) == []
