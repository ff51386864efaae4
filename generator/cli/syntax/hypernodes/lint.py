"""`toponaut lint`: its options and its help."""

from __future__ import annotations

from typing import Any

import click

from generator.cli.options.kube import kube_options
from generator.cli.options.output_format import output_option
from generator.cli.options.value_types import InputFile


@click.command(name="lint")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option(
    "--nodes",
    type=InputFile(),
    help="Nodes of the cluster, to see what patterns and labels select: output of `kubectl get "
    "nodes -o json`, or an inventory.",
)
@kube_options("Check the HyperNodes of the cluster, with its nodes.")
@click.option("--check", is_flag=True, help="Exit with 5 if there is any problem.")
@output_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """List what makes Volcano crash, stall or place wrongly in a set of HyperNodes.

    PATH is a YAML or JSON file, a folder of them, or - for stdin. Together they are one set:
    kubectl get hypernodes -o yaml | toponaut lint - --nodes nodes.json. Without --nodes, patterns
    and labels are only checked for errors.
    """
    from generator.cli.commands.hypernodes.lint import run

    run(ctx, **options)
