"""`toponaut describe`: its options and its help."""

from __future__ import annotations

from typing import Any, Final

import click

from generator.cli.options.output_format import wide_output_option
from generator.cli.options.placement import pods_options
from generator.cli.options.source import source_options

_GANG: Final = "gang"
_KINDS: Final = ("node", "switch", "port", "domain", _GANG)


@click.command(name="describe")
@click.argument("kind", type=click.Choice(_KINDS))
@click.argument("name")
@source_options
@pods_options
@wide_output_option
@click.pass_context
def command(ctx: click.Context, /, kind: str, name: str, **options: Any) -> None:
    """Print all that is known about a node, a switch, a port, a domain or a gang.

    NAME is a name, or an id such as a GUID or a MAC; the name of a port is DEVICE:PORT, such as
    node-0001:mlx5_0/1. Pods come from --pods, from --running or, with --kube, from the cluster:
    they show which gangs run on a node, below a switch or in a domain. toponaut where prints the
    same about a gang, and also reads a saved tree.
    """
    if kind == _GANG:
        from generator.cli.commands import where

        where.run(ctx, name, tree=None, timeout=where.TIMEOUT_S, **options)
        return
    from generator.cli.commands.fabric import describe

    describe.run(ctx, kind=kind, name=name, **options)
