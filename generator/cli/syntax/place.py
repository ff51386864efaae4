"""`toponaut place`: its options and its help."""

from __future__ import annotations

from typing import Any

import click

from generator.cli.options.client import server_options
from generator.cli.options.output_format import build_output_option
from generator.cli.options.placement import cluster_options, request_options, timeout_option
from generator.cli.output import WIDE
from generator.cli.placement_text import HostListFormat
from generator.placement.presets import Preset


@click.command(name="place")
@request_options
@click.option(
    "--translate", is_flag=True, help="Print the request as a PlacementRequest; place nothing."
)
@click.option(
    "--preset",
    type=click.Choice([preset.value for preset in Preset]),
    help="Order of preferences, instead of the preset in the request.",
)
@cluster_options
@server_options("that places the gang, instead of this command")
@timeout_option
@click.option("--check", is_flag=True, help="Exit with 5 if there is no placement.")
@build_output_option(
    WIDE,
    *(row.value for row in HostListFormat),
    note=" text prints nodes as ranges, wide lists every node; hostfile is for Open MPI, "
    "hostfile-mpich for MPICH, nodelist for Slurm, ranks has RANK NODE per line.",
)
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Print the best placement of a gang, and why no better one exists.

    Free capacity comes from --nodes, or with --kube from the cluster: the capacity that its pods
    leave free. Otherwise each node of the tree has one slot. If the gang does not fit, the exit
    code is still 0, unless --check is given. The formats hostfile, nodelist and ranks then print
    nothing and the exit code is 5, because mpirun takes an empty hostfile as this machine.
    """
    from generator.cli.commands.place import run

    run(ctx, **options)
