"""What it costs to start a command: python -m tests.bench.start.

Processor time of a process of its own, the least of some runs: of the help of each command, and of
the first answer about a small fabric. What else runs on the machine counts only by its caches.
"""

from __future__ import annotations

import json
import resource
import subprocess  # noqa: TID251 - the processes are measured
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import click

from generator.cli.group import cli
from tests.repository import ROOT

MAX_CPU_S: Final = 0.25
"""Of the help of a command."""
_RUNS: Final = 5
_FABRIC: Final = ("--hosts", "4", "--rails", "2")


class StartTime(NamedTuple):
    """What one command costs."""

    words: str
    cpu_s: float
    is_help: bool

    @property
    def is_within(self) -> bool:
        """Whether it is as quick as it is meant to be; only help has a bar."""
        return not self.is_help or self.cpu_s <= MAX_CPU_S


def measure_starts(names: Sequence[str], runs: int) -> Iterator[StartTime]:
    """Yield the times of the help of commands, then those of first answers."""
    for name in names:
        yield StartTime(f"{name} --help", _time_command([name, "--help"], runs), is_help=True)
    with tempfile.TemporaryDirectory(prefix="toponaut-bench-") as folder:
        out = Path(folder) / "fabric"
        _run(["simulate", "fabric", *_FABRIC, "--out", str(out)])
        for words in _list_answers(out):
            shown = " ".join(words).replace(folder, "FOLDER")
            yield StartTime(shown, _time_command(words, runs), is_help=False)


def _list_answers(fabric: Path) -> Iterator[list[str]]:
    sources = ["--reports", str(fabric / "reports"), "--nodes", str(fabric / "nodes.yaml")]
    gang = str(ROOT / "fixtures" / "demo" / "gang.yaml")
    yield ["tree", *sources]
    yield ["planes", *sources]
    yield ["findings", *sources]
    yield ["describe", "node", "node-0001", *sources]
    yield ["export", "kueue", *sources]
    yield ["place", "-f", gang, *sources]
    yield ["place", "-f", gang, "--translate"]
    yield ["compare", "-f", gang, *sources]
    yield ["reservations", "--store", str(fabric)]
    yield ["explain", "fabric.spec"]
    yield ["inspect", str(fabric / "nodes.yaml")]


def _time_command(words: Sequence[str], runs: int) -> float:
    """Return the least processor time of a command, user and system."""
    times = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        _run(words)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def _run(words: Sequence[str]) -> None:
    program = [sys.executable, "-m", "generator", *words]
    subprocess.run(program, cwd=ROOT, check=True, capture_output=True, timeout=120)


@click.command()
@click.option("--command", "names", multiple=True, help="Only this command. Repeatable.")
@click.option("--runs", type=click.IntRange(min=1), default=_RUNS, show_default=True)
@click.option(
    "--output", "-o", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def main(names: Sequence[str], runs: int, output: str) -> None:
    """Print what help and first answers cost."""
    rows = [*measure_starts(names or cli.list_commands(click.Context(cli)), runs)]
    if output == "json":
        click.echo(json.dumps([{**row._asdict(), "is_within": row.is_within} for row in rows]))
        return
    click.echo(f"help takes at most {MAX_CPU_S:g} s of processor time")
    for row in rows:
        missed = "" if row.is_within else "  MISSED"
        click.echo(f"{row.cpu_s:6.3f} s  {row.words}{missed}")


if __name__ == "__main__":
    main()
