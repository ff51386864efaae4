"""Record the first commands of a new user as an SVG that plays: `make screenshots`."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path
from typing import Final

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from tests.repository import ROOT

FILE: Final = ROOT / "docs" / "images" / "terminal.svg"
COMMANDS: Final = (
    "toponaut simulate fabric --hosts 64 --rails 4 --radix 16 --swap 1 --lose-links 2% --out f",
    "toponaut tree --reports f/reports --nodes f/nodes.yaml --depth 2",
    "toponaut findings --reports f/reports --nodes f/nodes.yaml --top 3",
    "toponaut path node-0001 node-0009 --reports f/reports",
    f"toponaut place -f {ROOT}/fixtures/demo/gang.yaml --reports f/reports --nodes f/nodes.yaml",
)
WIDTH: Final = 108
TYPE_S: Final = 1.2
"""From a prompt to its output."""
READ_S: Final = 3.0
"""From an output to the next prompt."""
_ERASED: Final = re.compile(r"[^\n]*\n[^\n]*\x1b\[1A\x1b\[2K")
"""A line that a program left and then removed, as rich does with a bar of progress at its end."""
_LINE: Final = re.compile(r'<text class="([\w-]+)" x="([\d.]+)" y="([\d.]+)"')


def run_in_terminal(command: str, folder: Path) -> str:
    """Return what a command prints on a terminal, with its colors."""
    leader, follower = pty.openpty()
    environment = {
        **os.environ,
        "COLUMNS": str(WIDTH),
        "LINES": "60",
        "TERM": "xterm-256color",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    with subprocess.Popen(
        command.split(), stdout=follower, stderr=follower, cwd=folder, env=environment
    ) as program:
        os.close(follower)
        printed = bytearray()
        try:
            while piece := os.read(leader, 1 << 16):
                printed += piece
        except OSError:  # Linux says so when the last writer has gone
            pass
        finally:
            os.close(leader)
    assert program.returncode == 0, (command, bytes(printed).decode())
    return keep_last_states(printed.decode().replace("\r\n", "\n"))


def keep_last_states(text: str) -> str:
    """Leave out what a program wrote over, such as the steps of its progress."""
    lines = (line.rpartition("\r")[2] for line in _ERASED.sub("", text).split("\n"))
    return "\n".join(re.sub(r"\x1b\[\??\d*[A-HJKhlsu]", "", line) for line in lines).rstrip("\n")


def draw_recording(file: Path) -> None:
    """Write the recording: each line appears when a reader has read what is above it."""
    console = Console(record=True, width=WIDTH, file=StringIO())
    starts: list[float] = []
    clock_s = 0.5
    with tempfile.TemporaryDirectory() as folder:
        for command in COMMANDS:
            shown = command.replace(f"{ROOT}/", "")
            prompt = Text.assemble(("$ ", "bold green"), (shown, "bold"))
            lines = prompt.wrap(console, WIDTH)
            starts += [clock_s] * len(lines)
            console.print(prompt)
            clock_s += TYPE_S
            for line in Text.from_ansi(run_in_terminal(command, Path(folder))).split():
                starts += [clock_s] * len(line.wrap(console, WIDTH))
                console.print(line)
            console.print()
            starts.append(clock_s)
            clock_s += READ_S
    # Fonts are those of the reader: a picture asks no other server.
    form = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    svg = console.export_svg(title="toponaut", unique_id="toponaut", code_format=form)
    file.write_text(add_times(svg, starts), encoding="utf-8")


def add_times(svg: str, starts: list[float]) -> str:
    """Return the picture with the time at which each of its lines appears."""
    heights = sorted({float(found[3]) for found in _LINE.finditer(svg)})
    time_of = dict(zip(heights, starts, strict=False))
    style = (
        "<style>@keyframes appear{from{opacity:0}to{opacity:1}}"
        ".timed{animation:appear .15s both}"
        "@media (prefers-reduced-motion:reduce){.timed{animation:none}}</style>"
    )
    timed = _LINE.sub(
        lambda found: (
            f'<text class="{found[1]} timed" style="animation-delay:'
            f'{time_of.get(float(found[3]), 0):.1f}s" x="{found[2]}" y="{found[3]}"'
        ),
        svg,
    )
    return timed.replace("<defs>", f"{style}<defs>", 1)


if __name__ == "__main__":
    draw_recording(FILE)
