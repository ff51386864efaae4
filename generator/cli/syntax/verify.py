"""`toponaut verify`: its options and its help."""

from __future__ import annotations

from typing import Any, Final

import click

from generator.cli.options.output_format import output_option
from generator.cli.options.synthetic_fabric import MAX_SEED, fabric_options
from generator.cli.options.value_types import OutputFile, Quantity, WholeNumber
from generator.simulation.run_names import SIZES, GridSize, LossTarget, SourceMix

_MAX_GIB: Final = float(1 << 20)


@click.command(name="verify")
@click.option(
    "--grid",
    "grid",
    type=click.Choice([size.value for size in GridSize]),
    help=(
        "Many fabrics and faults instead of one: with 512 HCAs (quick), with up to 65,536 HCAs, "
        "which takes hours (full), or fabrics that are not regular Clos networks (odd)."
    ),
)
@click.option(
    "--hcas",
    type=click.Choice([str(num) for num in SIZES]),
    multiple=True,
    help="Only the fabrics of this size in the grid. Repeatable.",
)
@fabric_options
@click.option(
    "--lose-each",
    type=click.Choice([each.value for each in LossTarget]),
    help="Remove each switch or each host in turn, one per run, instead of using seeds.",
)
@click.option(
    "--sources",
    type=click.Choice([mix.value for mix in SourceMix]),
    multiple=True,
    help=(
        "Sources that the tree follows from. Repeatable: each seed takes the next.  [default: all "
        "mixes that show the cables]"
    ),
)
@click.option(
    "--seeds",
    type=WholeNumber(1, 100_000),
    default=5,
    show_default=True,
    help="Number of runs of each fabric, each with different random faults.",
)
@click.option(
    "--first-seed",
    type=WholeNumber(-MAX_SEED, MAX_SEED),
    default=0,
    show_default=True,
    help="Seed of the first run.",
)
@click.option(
    "--journal",
    type=OutputFile(),
    help="File to which each run appends a line of JSON; runs in the file are not repeated.",
)
@click.option(
    "--jobs",
    type=WholeNumber(1, 1024),
    help="Maximum number of processes.  [default: one per core]",
)
@click.option(
    "--memory",
    type=Quantity(_MAX_GIB),
    metavar="GIB",
    help="Memory limit of all processes; at least one runs.  [default: 80 % of the free memory]",
)
@click.option("--markdown", is_flag=True, help="Print tables in Markdown.")
@output_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Simulate fabrics with faults, infer their trees, and compare them with the true trees.

    An exact tree is right at every tier. A flagged tree is wrong, but every wrong node is listed
    as unplaced, or a finding questions its place. A silent tree is wrong without such a warning;
    then the exit code is 5. Swapped cables count only if the cabling makes them detectable. The
    sources are read in random order.

    Each seed draws new faults, and reads the next mix of sources: of InfiniBand, the sweep with the
    node list, the sweep alone, or both with the reports; of Ethernet, the reports with the list.
    With --grid full, use --journal: the grid takes hours, and about
    1.4 GiB of memory for each run with 65,536 HCAs.
    """
    from generator.cli.commands.verify import run

    run(ctx, **options)
