"""Small real programs that stand in for lldpcli and ibnetdiscover in end-to-end tests."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest


def write_program(path: Path, body: str) -> Path:
    """Write an executable Python program; `words` are its arguments as one string."""
    path.write_text(
        f"#!{sys.executable} -S\nimport os, sys\nwords = ' '.join(sys.argv[1:])\n{body}"
    )
    path.chmod(0o755)
    return path


def write_answering(path: Path, answers: Mapping[str, str]) -> Path:
    """Write a program that prints the file of the first key among its arguments.

    The files may change while the agent runs; where there is none the program fails.
    """
    files = {key: str(path.with_suffix(f".{key}")) for key in answers}
    for key, text in answers.items():
        Path(files[key]).write_text(text)
    body = (
        f"files = {files!r}\n"
        "key = next(key for key in files if key in words)\n"
        "try:\n"
        "    print(open(files[key]).read())\n"
        "except FileNotFoundError:\n"
        "    sys.exit('out of order')\n"
    )
    return write_program(path, body)


def wait_until_gone(pid: int, within_s: float = 10) -> None:
    """Wait until a process has ended; fail at the deadline."""
    pause, until = threading.Event(), time.monotonic() + within_s
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state in "ZX":
            return
        pause.wait(0.01)
    pytest.fail(f"process {pid} still runs")


def wait_until_there(file: Path, within_s: float = 10) -> None:
    """Wait until a program has made a file, or until the deadline."""
    pause, until = threading.Event(), time.monotonic() + within_s
    while not file.exists() and time.monotonic() < until:
        pause.wait(0.01)
