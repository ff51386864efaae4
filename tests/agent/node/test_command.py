"""Running commands, with small real processes."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from agent.node.command import (
    DEFAULT_PATH,
    STDERR_TAIL_BYTES,
    CommandLimits,
    CommandResult,
    Runner,
    command_env,
    tail_of,
)
from runtime.stop import Stop
from tests.agent.programs import wait_until_gone, wait_until_there
from topology.model.errors import CollectError, CommandFailed, CommandMissing, CommandTimeout

ENV = {"PATH": os.environ["PATH"], "LC_ALL": "C"}


def run_python(code: str, *, deadline_s: float = 20, max_output_bytes: int = 1000) -> CommandResult:
    argv = [sys.executable, "-S", "-c", code]
    return Runner(ENV).run(argv, CommandLimits(deadline_s, max_output_bytes))


def test_it_returns_stdout_stderr_and_exit_code() -> None:
    result = run_python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)")
    assert result == CommandResult(7, b"out\n", "err\n")


def test_it_reads_more_than_a_pipe_holds_from_both_pipes() -> None:
    code = "import sys; sys.stderr.write('e' * 300000); sys.stdout.write('o' * 300000)"
    result = run_python(code, max_output_bytes=300_000)
    assert len(result.stdout) == 300_000
    assert len(result.stderr) == STDERR_TAIL_BYTES


@pytest.mark.parametrize(
    ("code", "stdout"),
    [
        pytest.param("import sys; print(len(sys.stdin.read()))", b"0\n", id="stdin is empty"),
        pytest.param(
            "import os; print(sorted(set(os.environ) - {'LC_CTYPE'}))",
            b"['LC_ALL', 'PATH']\n",
            id="the environment is the given one",
        ),
        pytest.param(
            "import os; print(os.getsid(0) == os.getpid() == os.getpgid(0))",
            b"True\n",
            id="it leads a session and a group of its own",
        ),
    ],
)
def test_it_isolates_commands_from_the_agent(code: str, stdout: bytes) -> None:
    assert run_python(code).stdout == stdout


def test_it_passes_no_file_descriptor() -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)  # noqa: FBT003 - the standard library's signature
    try:
        result = run_python(f"import os; os.fstat({writing})")
    finally:
        os.close(reading)
        os.close(writing)
    assert "Bad file descriptor" in result.stderr


def test_it_passes_arguments_to_the_program_and_never_to_a_shell() -> None:
    result = Runner(ENV).run(
        [sys.executable, "-S", "-c", "import sys; print(sys.argv[1])", "$(id); `id` > /x"],
        CommandLimits(20, 1000),
    )
    assert result.stdout == b"$(id); `id` > /x\n"


@pytest.mark.parametrize("program", ["no-such-program", "/etc/passwd", "/", ""])
def test_it_reports_a_program_that_is_missing_or_cannot_be_started(program: str) -> None:
    with pytest.raises(CommandMissing, match="not found, or not executable"):
        Runner(ENV).run([program], CommandLimits(5, 10))


def test_it_reports_a_file_that_is_not_a_program(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("\x00not a program")
    broken.chmod(0o755)
    with pytest.raises(CommandMissing, match="broken"):
        Runner(ENV).run([str(broken)], CommandLimits(5, 10))


def run_shell(script: str, *, deadline_s: float) -> CommandResult:
    """Run a script that starts quickly, so that a short deadline comes after its first command."""
    return Runner(ENV).run(["/bin/sh", "-c", script], CommandLimits(deadline_s, 10_000))


@pytest.mark.parametrize(
    ("script", "error"),
    [
        pytest.param("{family}; wait", CommandTimeout, id="one that hangs"),
        pytest.param("trap '' TERM; {family}; wait", CommandTimeout, id="one that ignores SIGTERM"),
        pytest.param("{family}; exit 0", CommandTimeout, id="one whose child holds the pipe"),
        pytest.param(
            "{family}; while :; do echo and on; done",
            CommandFailed,
            id="one that prints without end",
        ),
    ],
)
def test_it_ends_a_command_with_all_its_children(
    tmp_path: Path, script: str, error: type[CollectError]
) -> None:
    file = tmp_path / "pids"
    with pytest.raises(error):
        run_shell(script.format(family=f"sleep 600 & echo $$ $! > '{file}'"), deadline_s=0.5)
    for pid in file.read_text().split():
        wait_until_gone(int(pid))


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("{family}; wait", id="one that hangs"),
        pytest.param("trap '' TERM; {family}; wait", id="one that ignores SIGTERM"),
        pytest.param("exec >&- 2>&-; {family}; wait", id="one that has closed its pipes"),
    ],
)
def test_it_ends_a_command_at_once_on_a_stop_request(tmp_path: Path, script: str) -> None:
    file, stop = tmp_path / "pids", Stop()
    family = f"sleep 600 & echo $$ $! > '{file}.new' && mv '{file}.new' '{file}'"

    def tell() -> None:
        wait_until_there(file)
        stop.set()

    teller = threading.Thread(target=tell)
    teller.start()
    with pytest.raises(CommandFailed, match="stopped because the agent is stopping"):
        Runner(ENV, stop).run(
            ["/bin/sh", "-c", script.format(family=family)], CommandLimits(600, 10)
        )
    teller.join()
    for pid in file.read_text().split():
        wait_until_gone(int(pid))


def test_it_starts_no_command_after_a_stop_request(tmp_path: Path) -> None:
    stop, trace = Stop(), tmp_path / "trace"
    told = [stop.is_set]
    for _ in range(2):
        stop.set()
        told.append(stop.is_set)
    assert told == [False, True, True]
    with pytest.raises(CommandFailed, match="touch: stopped because the agent is stopping"):
        Runner(ENV, stop).run(["touch", str(trace)], CommandLimits(600, 10))
    assert not trace.exists()


def test_it_leaves_no_child_of_a_command_that_ended_well(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(600)'],"
        " stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
        f"open({str(file)!r}, 'w').write(str(child.pid))\n"
    )
    assert run_python(code).exit_code == 0
    wait_until_gone(int(file.read_text()))


def test_it_quotes_the_last_stderr_line_of_a_late_command() -> None:
    with pytest.raises(CommandTimeout, match=r"did not end within 0.5 s: stuck\\x1b\[2J here"):
        run_shell(r"printf 'stuck\033[2J here\n' >&2; exec sleep 99", deadline_s=0.5)


def test_it_returns_the_signal_that_ended_a_command() -> None:
    assert run_python("import os; os.kill(os.getpid(), 9)").exit_code == -9


@pytest.mark.parametrize(
    ("environ", "passed", "env"),
    [
        pytest.param({}, [], {"PATH": DEFAULT_PATH, "LC_ALL": "C"}, id="PATH has a default"),
        pytest.param(
            {"PATH": "/p", "LD_PRELOAD": "x", "LANG": "de_DE"},
            [],
            {"PATH": "/p", "LC_ALL": "C"},
            id="nothing else passes",
        ),
        pytest.param(
            {"PATH": "/p", "SIM_HOST": "h1"},
            ["SIM_HOST", "ABSENT"],
            {"PATH": "/p", "LC_ALL": "C", "SIM_HOST": "h1"},
            id="but what was named",
        ),
    ],
)
def test_it_makes_a_small_environment(
    environ: dict[str, str], passed: list[str], env: dict[str, str]
) -> None:
    assert command_env(environ, passed) == env


def test_it_looks_up_programs_in_its_own_environment() -> None:
    runner = Runner({"PATH": "/nowhere", "MARK": "1"})
    assert runner.find("sh") is None
    code = "import os; print(os.environ['MARK'])"
    result = runner.run([sys.executable, "-S", "-c", code], CommandLimits(20, 100))
    assert result.stdout == b"1\n"


@pytest.mark.parametrize(
    ("stderr", "tail"),
    [
        pytest.param("", "", id="silence"),
        pytest.param(" \n\n", "", id="blank lines"),
        pytest.param("first\nlast \n\n", ": last", id="the last line that says something"),
    ],
)
def test_it_keeps_the_tail_of_stderr(stderr: str, tail: str) -> None:
    assert tail_of(stderr) == tail
