"""Fuzz the parsers, one on each core: python -m tests.fuzz (make fuzz)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import click

from tests.fuzz.corpus import choose, read_corpus, unpack, write_corpus
from tests.fuzz.long_input import stretch
from tests.fuzz.targets import TARGETS
from tests.fuzz.verdicts import judge
from tests.repository import ROOT

FAILURES: Final = ROOT / "fuzz-failures"
STRETCHED_SHARE: Final = 0.1
"""Share of the time of a parser that is spent on long inputs afterwards."""
SHORTER: Final = 8
"""A slow long input is compared with an input that is this many times shorter. At this factor,
quadratic time takes more than twice the time per byte."""
SPARE_S: Final = 300
"""Seconds that a run may exceed its time before it is ended."""
MAX_WORDS: Final = 300
_WORD: Final = re.compile(rb"[A-Za-z0-9][A-Za-z0-9_.:/-]{2,30}")
_EXECUTED: Final = re.compile(r"stat::number_of_executed_units:\s*(\d+)")


@dataclass(slots=True)
class Run:
    """The result of fuzzing one parser."""

    name: str
    executions: int = 0
    elapsed_s: float = 0.0
    corpus: int = 0
    """Number of inputs at the end, each of which reached new code."""
    stretched: int = 0
    slowest_s: float = 0.0
    """Time of the slowest stretched input."""
    failures: int = 0
    innocent: int = 0
    """Suspects that pass without instrumentation."""

    def row(self) -> str:
        """Return the run as a row of the table in docs/fuzzing.md."""
        cells = (
            self.name,
            f"{self.elapsed_s:.0f}",
            f"{self.executions:,}",
            str(self.corpus),
            str(self.stretched),
            f"{self.slowest_s:.2f}",
            str(self.failures),
        )
        return f"| {' | '.join(cells)} |"


HEADER: Final = (
    "| parser | s | executions | corpus | stretched | slowest, s | failures |\n"
    "|---|---|---|---|---|---|---|"
)


def fuzz(name: str, seconds: float, *, is_keeping: bool) -> Run:
    """Fuzz one parser for a time, then try long variants of the inputs that were found."""
    run = Run(name)
    kept = read_corpus(name)
    with tempfile.TemporaryDirectory(prefix="toponaut-fuzz-") as scratch:
        folder, suspects = Path(scratch) / "corpus", Path(scratch) / "suspects"
        folder.mkdir()
        suspects.mkdir()
        unpack(folder, [*TARGETS[name].seeds(), *kept])
        write_words(Path(scratch) / "words", TARGETS[name].seeds())
        while run.elapsed_s < seconds and not run.failures:
            started_s = time.monotonic()
            run.executions += run_engine(name, Path(scratch), seconds - run.elapsed_s)
            run.elapsed_s += time.monotonic() - started_s
            settle(run, suspects)
        inputs = [file.read_bytes() for file in sorted(folder.iterdir())]
    run.corpus = len(inputs)
    try_stretched(run, inputs, seconds * STRETCHED_SHARE)
    if is_keeping:
        write_corpus(name, choose(name, kept, inputs))
    return run


def write_words(file: Path, seeds: Iterable[bytes]) -> None:
    """Write the words of the seeds as a dictionary for libFuzzer."""
    words = sorted({word for raw in seeds for word in _WORD.findall(raw)}, key=len)
    file.write_text("".join(f'"{word.decode()}"\n' for word in words[:MAX_WORDS]))


def run_engine(name: str, scratch: Path, seconds: float) -> int:
    """Run the engine once; return the number of inputs that it tried."""
    command = [sys.executable, "-m", "tests.fuzz.engine", name]
    command += [str(scratch / "corpus"), str(scratch / "suspects"), str(max(1, int(seconds)))]
    log = scratch / "log"
    with log.open("wb") as stream:
        completed = subprocess.run(
            command, cwd=ROOT, stdout=stream, stderr=stream, check=False, timeout=seconds + SPARE_S
        )
    text = log.read_text(errors="replace")
    counts = _EXECUTED.findall(text)
    if not counts or (completed.returncode and not any((scratch / "suspects").iterdir())):
        raise click.ClickException(f"{name}: the engine failed\n{text[-2000:]}")
    return int(counts[-1])


def settle(run: Run, suspects: Path) -> None:
    """Judge the suspects of the engine without instrumentation."""
    for file in sorted(suspects.iterdir()):
        raw = file.read_bytes()
        problem = judge(TARGETS[run.name], raw).problem
        if problem:
            fail(run, raw, problem)
        else:
            run.innocent += 1
        file.unlink()


def fail(run: Run, raw: bytes, problem: str) -> None:
    """Save an input that breaks a parser, and print the problem."""
    FAILURES.mkdir(exist_ok=True)
    file = FAILURES / f"{run.name}-{run.failures}"
    file.write_bytes(raw)
    run.failures += 1
    click.echo(f"{run.name}: {problem[:500]}\n  saved as {file.relative_to(ROOT)}", err=True)


def try_stretched(run: Run, inputs: Sequence[bytes], seconds: float) -> None:
    """Try long variants of the inputs, the shortest inputs first, while there is time."""
    target = TARGETS[run.name]
    until_s = time.monotonic() + seconds
    for raw in sorted(inputs, key=len):
        shorter = stretch(raw, target.max_bytes // SHORTER)
        for long, short in zip(stretch(raw, target.max_bytes), shorter, strict=True):
            if run.failures or time.monotonic() > until_s:
                return
            verdict = judge(target, long, shorter=short)
            run.stretched += 1
            run.slowest_s = max(run.slowest_s, verdict.cpu_s)
            if verdict.problem:
                fail(run, long, verdict.problem)


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(sorted(TARGETS)))
@click.option("--seconds", type=click.FloatRange(min=1), default=20, show_default=True)
@click.option("--keep", is_flag=True, help="Add inputs that reach new code to fixtures/fuzz.")
@click.option(
    "--replay",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Judge only this input; requires the name of its parser.",
)
def main(names: tuple[str, ...], *, seconds: float, keep: bool, replay: Path | None) -> None:
    """Fuzz the named parsers, or all of them; exit with 1 if one fails."""
    if replay is not None:
        if len(names) != 1:
            raise click.UsageError("--replay requires the name of one parser")
        problem = judge(TARGETS[names[0]], replay.read_bytes()).problem
        click.echo(problem or "no problem found")
        sys.exit(bool(problem))
    click.echo(HEADER)
    num_failures = 0
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        work = partial(fuzz, seconds=seconds, is_keeping=keep)
        for run in pool.map(work, names or TARGETS):
            num_failures += run.failures
            click.echo(run.row())
    sys.exit(num_failures > 0)


if __name__ == "__main__":
    main()
