"""Measure commands on large inputs, good and bad: python -m tests.bench.large_inputs.

Lists of nodes, lists whose every row has a fault, cabling plans of devices that nothing reports,
and captures without a chassis under names that are not their devices'. Each figure is a process of
its own; its time, less the time of the smallest input, should grow as the input.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess  # noqa: TID251 - the commands are measured as users run them
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

import click

from generator.cli.exit_codes import ExitCode
from generator.cli.output import render_table
from tests.bench.__main__ import alone
from tests.bench.measurement import WrongResultError
from tests.bench.output import exponent
from topology.model.facts import Medium
from topology.reports.neighbor_report import build_report, render_report
from topology.synthetic import (
    FabricKind,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    render_lldpcli,
    report_claims,
)

MAX_EXPONENT: Final = 1.15
MAX_PEAK_MIB: Final = 700
_MIB: Final = 1 << 20
_ROWS_PER_HOST: Final = 4
"""NICs of a host, so that a fabric of N rows has N / 4 captures of hosts."""


class Workload(NamedTuple):
    """A command and its input."""

    sizes: tuple[int, ...]
    write: Callable[[Path, int], Sequence[str]]
    """Writes an input of a number of rows into a folder; returns the words of the command."""
    code: ExitCode
    """The exit code that the command must have."""


class InputFigure(NamedTuple):
    """One command on one size of its input."""

    name: str
    num_rows: int
    seconds: float
    """Processor time of the whole command."""
    peak_bytes: int
    output_bytes: int


def _write_nodes(folder: Path, num: int) -> Sequence[str]:
    """Write a list of nodes with a GUID each."""
    rows = (
        {"name": f"node-{at:07}", "ids": [{"type": "node-guid", "value": f"{at + 1:016x}"}]}
        for at in range(num)
    )
    return ["inspect", _write_rows(folder, rows)]


def _write_bad_nodes(folder: Path, num: int) -> Sequence[str]:
    """Write a list of nodes with an id that cannot be used."""
    rows = ({"name": f"node-{at:07}", "ids": [{"type": "mac", "value": "zz"}]} for at in range(num))
    return ["inspect", _write_rows(folder, rows)]


def _write_fabric_and_bad_nodes(folder: Path, num: int) -> Sequence[str]:
    """Write the reports of a small fabric, and a list with faults in every row."""
    return [
        "findings",
        "--reports",
        _write_reports(folder),
        "--nodes",
        _write_bad_nodes(folder, num)[1],
    ]


def _write_rows(folder: Path, rows: Iterator[object]) -> str:
    file = folder / "nodes.json"
    with file.open("w", encoding="utf-8") as stream:
        stream.write('{"nodes": [\n')
        for number, row in enumerate(rows):
            stream.write(",\n" * (number > 0) + json.dumps(row))
        stream.write("\n]}\n")
    return str(file)


def _write_unknown_plan(folder: Path, num: int) -> Sequence[str]:
    """Write a cabling plan whose devices nothing reports, and the reports of a small fabric."""
    plan = folder / "plan.csv"
    with plan.open("w", encoding="utf-8") as stream:
        stream.write("device_a,port_a,device_b,port_b\n")
        stream.writelines(
            f"other-{at:07},eth0,other-leaf-{at // 32:06},swp{at % 32 + 1}\n" for at in range(num)
        )
    return ["diff", "--reports", _write_reports(folder), "--cabling", str(plan)]


def _write_reports(folder: Path) -> str:
    reports = folder / "reports"
    reports.mkdir()
    spec = SyntheticSpec(FabricKind.RAIL, 16, rails=2, radix=16, medium=Medium.ETHERNET)
    for name, device in report_claims(build_undamaged(build_wiring(spec))):
        text = json.dumps(render_report(build_report(device, name=name)))
        (reports / f"{name}.yaml").write_text(text, encoding="utf-8")
    return str(reports)


def _write_bare_captures(folder: Path, num: int) -> Sequence[str]:
    """Write captures of all devices of a fabric, without a chassis and under other names."""
    hosts = max(1, num // _ROWS_PER_HOST)
    spec = SyntheticSpec(FabricKind.RAIL, hosts, rails=_ROWS_PER_HOST, medium=Medium.ETHERNET)
    numbers = count()
    for name, text in render_lldpcli(build_undamaged(build_wiring(spec))):
        if name.endswith(".neighbors.json0"):
            file = folder / f"capture-{next(numbers):06}.neighbors.json0"
            file.write_text(text, encoding="utf-8")
    return ["tree", "--lldpcli", str(folder)]


WORKLOADS: Final = {
    "inspect a list of nodes": Workload((100_000, 300_000, 1_000_000), _write_nodes, ExitCode.OK),
    "inspect a list of bad rows": Workload(
        (100_000, 300_000, 1_000_000), _write_bad_nodes, ExitCode.SKIPPED
    ),
    "findings with a list of bad rows": Workload(
        (20_000, 60_000, 200_000), _write_fabric_and_bad_nodes, ExitCode.SKIPPED
    ),
    "diff with a plan of unknown devices": Workload(
        (100_000, 300_000, 1_000_000), _write_unknown_plan, ExitCode.OK
    ),
    "tree of bare captures": Workload((1024, 4096, 16_384), _write_bare_captures, ExitCode.OK),
}


def measure_command(name: str, num: int) -> InputFigure:
    """Write an input, and run its command; meant for a process of its own.

    Raises:
        WrongResultError: the command ends with another exit code than it must.
    """
    workload = WORKLOADS[name]
    with tempfile.TemporaryDirectory(prefix="toponaut-bench-") as folder:
        words = workload.write(Path(folder), num)
        code = "import sys; from generator.__main__ import main; sys.exit(main())"
        command = [sys.executable, "-c", code, *words]
        ran = subprocess.run(command, capture_output=True, check=False, env=dict(os.environ))
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ran.returncode != workload.code:
        raise WrongResultError(f"{name}, {num} rows: {ran.returncode}: {ran.stderr.decode()[:400]}")
    size = len(ran.stdout) + len(ran.stderr)
    return InputFigure(name, num, spent.ru_utime + spent.ru_stime, spent.ru_maxrss * 1024, size)


def find_exponents(figures: Sequence[InputFigure]) -> dict[str, float | None]:
    """Return how the time of each command grows with its input."""
    points: dict[str, list[tuple[float, float]]] = {}
    for one in figures:
        points.setdefault(one.name, []).append((one.num_rows, max(one.seconds, 1e-3)))
    slopes = {name: exponent(rows) for name, rows in points.items()}
    return {name: None if slope is None else round(slope, 2) for name, slope in slopes.items()}


def render_text(figures: Sequence[InputFigure]) -> str:
    """Return the figures as tables; a goal that is not met is marked."""
    rows = [
        (
            one.name,
            str(one.num_rows),
            f"{one.seconds:.2f} s",
            f"{one.peak_bytes / _MIB:.0f}",
            f"{one.output_bytes / 1024:.0f}",
            "" if one.peak_bytes <= MAX_PEAK_MIB * _MIB else f"above {MAX_PEAK_MIB} MiB",
        )
        for one in figures
    ]
    slopes = [
        (
            name,
            "-" if slope is None else f"{slope}",
            "" if (slope or 0) <= MAX_EXPONENT else f"above {MAX_EXPONENT}",
        )
        for name, slope in find_exponents(figures).items()
    ]
    return "\n\n".join(
        (
            render_table(("COMMAND", "ROWS", "TIME", "PEAK MIB", "OUTPUT KIB", "GOAL"), rows),
            render_table(("COMMAND", "GROWS AS ROWS TO THE POWER OF", "GOAL"), slopes),
        )
    )


@click.command()
@click.option(
    "--part",
    type=click.FloatRange(min=0, max=1, min_open=True),
    default=1.0,
    show_default=True,
    help="Part of each size to measure.",
)
def main(part: float) -> None:
    """Print processor time, peak memory, size of the output, and growth."""
    figures = []
    for name, workload in WORKLOADS.items():
        for size in workload.sizes:
            num = max(1, int(size * part))
            click.echo(f"{name}, {num} rows", err=True)
            figures.append(alone(measure_command, name, num))
    click.echo(render_text(figures))


if __name__ == "__main__":
    main()
