"""`toponaut doctor`: its options and its help."""

from __future__ import annotations

from typing import Any

import click

from generator.cli.options.kube import kube_options
from generator.cli.options.output_format import output_option
from generator.cli.options.value_types import NamespaceName


@click.command(name="doctor")
@kube_options("Read a cluster. This is the default, and the only source.")
@click.option(
    "--namespace",
    type=NamespaceName(),
    default="toponaut-system",
    show_default=True,
    help="Namespace of Toponaut.",
)
@click.option(
    "--volcano-namespace", default="volcano-system", show_default=True, help="Namespace of Volcano."
)
@click.option("--check", is_flag=True, help="Exit with 5 if there are warnings or errors.")
@output_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Check that a cluster has all that Toponaut needs, and print what to do.

    Checks kinds, the Fabric object, the generator with its rights and its certificate, the
    admission policies, agents, sweeps, the schedulers that are installed, and Volcano's settings.
    On a node, run toponaut-agent doctor.
    """
    from generator.cli.commands.doctor import run

    run(ctx, **options)
