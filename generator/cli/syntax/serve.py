"""`toponaut serve`: its options and its help."""

from __future__ import annotations

from typing import Any

import click

from generator.cli.options.serve import endpoint_options, serve_options


@click.command(name="serve")
@serve_options
@endpoint_options
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    help="Format of the log.  [default: text on a terminal, else json]",
)
def command(**options: Any) -> None:
    """Read reports, write HyperNodes and answer placement queries until SIGTERM or SIGINT.

    HyperNodes are written only if the fabric changed, and never without usable reports. A change
    that exceeds the change budget of the Fabric object is held until you approve it (`toponaut
    approve`); the conditions of that object show it. With --kube, the server watches the cluster,
    and only one of several replicas writes: the holder of the Lease toponaut-generator. With
    --switches, the server also walks switches and writes their reports to the store. A switch
    that does not answer keeps its last report and becomes a finding; the server tries it again at
    growing intervals, up to an hour. Health (grpc.health.v1) is SERVING once the first tree is
    known.
    """
    from generator.cli.commands.serve import run

    run(**options)
