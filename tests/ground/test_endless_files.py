"""An endless file or a pipe in the place of each file that an option or a variable names."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from generator.cli.exit_codes import ExitCode
from generator.cli.option_types import InputFile
from tests.effort import first_of
from tests.ground.command_runs import END_S, check_text, command_line
from tests.ground.exit_rows import PROGRAMS, ROWS, commands
from tests.lab.wait import wait_until

MAX_PEAK_KIB = 1400 << 10
"""Sweeps and node lists may have 1 GiB; every other input has less."""
REFUSED = {ExitCode.USAGE, ExitCode.SKIPPED}


def list_options() -> list[tuple[str, str]]:
    """Return each option once, with a command that has it."""
    found: dict[str, tuple[str, str]] = {}
    for name, command in commands():
        for param in command.params:
            if isinstance(param, click.Option) and isinstance(param.type, InputFile):
                found.setdefault(param.opts[0], (name, param.opts[0]))
    return list(found.values())


def with_peak(
    words: list[str], tmp_path: Path, **env: str
) -> tuple[subprocess.CompletedProcess[str], int]:
    """Run a command; return how it ended, and its peak of memory in KiB."""
    file = tmp_path / "peak"
    script = (
        "import resource, subprocess, sys; "
        "ended = subprocess.run(sys.argv[2:], stdin=subprocess.DEVNULL); "
        "peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss; "
        "open(sys.argv[1], 'w').write(str(peak)); sys.exit(ended.returncode)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, str(file), *words],
        check=False,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=END_S,
        env=os.environ | env,
    )
    return ran, int(file.read_text())


@pytest.mark.parametrize("key", first_of(list_options(), num_quick=3), ids=" ".join)
def test_an_endless_file_is_refused_in(
    key: tuple[str, str], inputs: dict[str, str], tmp_path: Path
) -> None:
    name, option = key
    more = [ROWS[name].output, tmp_path / "out"] if ROWS[name].output else []
    words = command_line(name, inputs, *more, option, "/dev/zero")
    ran, peak_kib = with_peak(words, tmp_path)
    assert ran.returncode in REFUSED, ran.stderr
    assert "error: " in ran.stderr.lower() or "skipped: " in ran.stderr
    check_text(ran.stderr)
    assert peak_kib < MAX_PEAK_KIB


KUBECONFIGS = [
    name
    for name, command in commands()
    if any(param.name == "kubeconfig" for param in command.params)
]
MAX_SMALL_KIB = 400 << 10


def endless(tmp_path: Path, kind: str) -> Path:
    """Return a file that must not be read to its end."""
    if kind == "device":
        return Path("/dev/zero")
    file = tmp_path / "large"
    with file.open("wb") as stream:
        stream.truncate(1 << 30)
    return file


def check_refusal_of_small_file(words: list[str], tmp_path: Path, **env: str) -> None:
    ran, peak_kib = with_peak(words, tmp_path, **env)
    assert ran.returncode == ExitCode.USAGE, ran.stderr
    assert "larger than" in ran.stderr or "not a regular file" in ran.stderr
    assert ran.stdout == ""
    check_text(ran.stderr)
    assert peak_kib < MAX_SMALL_KIB


@pytest.mark.parametrize("kind", ["device", "large"])
@pytest.mark.parametrize("source", ["option", "variable"])
def test_an_endless_kubeconfig_is_refused(source: str, kind: str, tmp_path: Path) -> None:
    file = str(endless(tmp_path, kind))
    given = ["--kubeconfig", file] if source == "option" else []
    env = {"KUBECONFIG": file} if source == "variable" else {}
    words = [sys.executable, "-m", "generator", "tree", "--kube", *given]
    check_refusal_of_small_file(words, tmp_path, **env)


WORDS = {
    "toponaut approve": ["0123456789abcdef"],
    "toponaut describe": ["node", "n"],
    "toponaut where": ["job"],
    "toponaut ranks": ["job"],
    "toponaut path": ["a", "b"],
    "toponaut export": ["labels"],
    "toponaut diff": ["--against", "labels"],
    "toponaut serve": ["--insecure-loopback"],
    "toponaut place": ["-f", "{request}"],
    "toponaut compare": ["-f", "{request}"],
}
"""The arguments without which a command with --kube is refused."""


@pytest.mark.parametrize("name", KUBECONFIGS)
def test_a_large_kubeconfig_is_refused_in(
    name: str, inputs: dict[str, str], tmp_path: Path
) -> None:
    words = [word.format(**inputs) for word in WORDS.get(name, [])]
    words += ["--kube"] if name != "toponaut doctor" else []
    words += ["--kubeconfig", str(endless(tmp_path, "large"))]
    ran = CliRunner().invoke(PROGRAMS["toponaut"], [*name.split()[1:], *words])
    assert (ran.exit_code, ran.stdout) == (ExitCode.USAGE, "")
    assert "larger than" in ran.stderr


@pytest.mark.parametrize("kind", ["device", "large"])
@pytest.mark.parametrize("source", ["option", "home"])
def test_an_endless_config_file_is_refused(source: str, kind: str, tmp_path: Path) -> None:
    file = endless(tmp_path, kind)
    given = ["--config", str(file)] if source == "option" else []
    if source == "home":
        (tmp_path / "toponaut").mkdir()
        (tmp_path / "toponaut" / "config.yaml").symlink_to(file)
    words = [sys.executable, "-m", "generator", *given, "schema", "tree"]
    if (source, kind) == ("home", "device"):
        ran, _ = with_peak(words, tmp_path, XDG_CONFIG_HOME=str(tmp_path))
        assert ran.returncode == ExitCode.OK, "only a regular file is the user's own"
    else:
        check_refusal_of_small_file(words, tmp_path, XDG_CONFIG_HOME=str(tmp_path))


@pytest.mark.parametrize("size", ["whole", "cut"])
def test_a_pipe_is_read_as_a_file_is(inputs: dict[str, str], tmp_path: Path, size: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    raw = Path(inputs["nodes"]).read_bytes()
    raw = raw if size == "whole" else raw[: len(raw) // 2]
    writer = threading.Thread(target=pipe.write_bytes, args=(raw,))
    writer.start()
    words = command_line("toponaut tree", inputs, "--nodes", pipe)
    ran = subprocess.run(words, check=False, capture_output=True, text=True, timeout=END_S)
    writer.join()
    assert ran.returncode == (ExitCode.OK if size == "whole" else ExitCode.SKIPPED), ran.stderr


def test_a_pipe_without_a_writer_ends_with_an_interrupt(
    inputs: dict[str, str], tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    words = command_line("toponaut tree", inputs, "--nodes", pipe)
    running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def is_not_waiting() -> str:
        call = Path(f"/proc/{running.pid}/wchan").read_text()
        return "" if "wait_for_partner" in call else call or "running"

    try:
        wait_until(is_not_waiting, deadline_s=END_S, what="it waits for the writer of the pipe")
        running.send_signal(signal.SIGINT)
        _, stderr = running.communicate(timeout=END_S)
    finally:
        running.kill()
    assert running.returncode == 128 + signal.SIGINT
    check_text(stderr)
