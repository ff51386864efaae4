"""Measure parse, inference, plan and placement by size: python -m tests.bench (make bench)."""

from __future__ import annotations

import json
import multiprocessing
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

import click

from tests.bench.dumps import write_dump
from tests.bench.measurement import Measured, measure
from tests.bench.output import render_figures, text_figures

SIZES: Final = (128, 1024, 8192, 32768, 65536)

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def alone(
    work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """Run in a fresh process, so that peak memory is that of this work alone."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context) as pool:
        return pool.submit(work, *args, **kwargs).result()


def measure_sizes(sizes: Sequence[int], rounds: int) -> list[Measured]:
    """Measure each size in a process of its own; progress on stderr."""
    found = []
    with tempfile.TemporaryDirectory(prefix="toponaut-bench-") as folder:
        for size in sizes:
            click.echo(f"{size} HCAs: making the fabric", err=True)
            dump = alone(write_dump, Path(folder), size)
            click.echo(f"{size} HCAs: measuring, {rounds} round(s)", err=True)
            found.append(alone(measure, dump, rounds))
            dump.sweep.unlink()
    return found


@click.command()
@click.option(
    "--sizes",
    default=",".join(map(str, SIZES)),
    show_default=True,
    help="Numbers of HCAs, comma-separated; rail fabrics of 8 rails and 64-port switches.",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Interleaved; the median counts.",
)
@click.option(
    "--output", "-o", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def main(sizes: str, rounds: int, output: str) -> None:
    """Print times, ratios to the reference parser in the same run, peak memory and growth."""
    try:
        wanted = sorted({int(size) for size in sizes.split(",")})
    except ValueError as error:
        raise click.BadParameter(
            "expected numbers, such as 128,1024", param_hint="--sizes"
        ) from error
    if wanted[0] < 1:
        raise click.BadParameter("expected at least one HCA", param_hint="--sizes")
    found = measure_sizes(wanted, rounds)
    click.echo(
        json.dumps(render_figures(found), indent=2) if output == "json" else text_figures(found)
    )


if __name__ == "__main__":
    main()
