"""Runs of the commands of `exit_rows`, as programs of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.ground.exit_rows import MODULES, ROWS

END_S = 100.0


def command_line(name: str, inputs: dict[str, str], *more: object) -> list[str]:
    program, *words = name.split()
    own = ROWS[name].words.format(**inputs).split()
    return [sys.executable, "-m", MODULES[program], *words, *own, *map(str, more)]


def with_output(name: str, inputs: dict[str, str], folder: Path) -> list[str]:
    """Return a command line that writes to `folder`, where it has an option for that."""
    option = ROWS[name].output
    return command_line(name, inputs, *([option, folder / "out"] if option else []))


def shell(script: str, words: Iterable[str]) -> subprocess.CompletedProcess[str]:
    """Run a script that runs the words as "$@"."""
    return subprocess.run(
        ["sh", "-c", script, "sh", *words],
        check=False,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=END_S,
        stdin=subprocess.DEVNULL,
    )


def check_text(text: str) -> None:
    assert "Traceback" not in text, text
    assert "Aborted" not in text, text
    assert "Exception ignored" not in text, text


def prepare(name: str, folder: Path) -> None:
    """Create what a command expects to exist where it writes."""
    if name == "toponaut approve":
        (folder / "out").mkdir()


def leftovers(folder: Path) -> list[Path]:
    """Return temporary files; locks stay, because removing them would let two processes in."""
    return [path for path in folder.rglob(".*") if not path.name.endswith("lock")]
