"""`toponaut serve`: keep HyperNodes true and answer placement queries."""

from __future__ import annotations

import os
from typing import Any

import click

from generator.logs import start_logging
from generator.running import FolderGround, Ground, serve
from generator.serve_options import ServeSettings, serve_options, settings_of
from generator.signals import stop_signals


@click.command(name="serve")
@serve_options
@click.option(
    "--insecure-loopback", is_flag=True, help="Serve without authentication, on loopback only."
)
@click.option("--log-format", type=click.Choice(["text", "json"]), help="Default: by terminal.")
def command(
    *,
    insecure_loopback: bool,
    log_format: str | None,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Read reports, write HyperNodes and answer placement queries until SIGTERM or SIGINT.

    HyperNodes are written only where the fabric changed, and never without usable reports. A
    change that exceeds the budget of the Fabric object is held until it is approved
    (`toponaut approve`); conditions in that object tell. With --kube the cluster is followed by
    watches, and of several replicas one writes: whoever holds the Lease toponaut-generator. With
    --switches it also walks switches and keeps their reports in the store: one that fails keeps
    its last facts, is a finding, and is asked again after longer and longer times, up to an hour.
    Health (grpc.health.v1) turns to SERVING when the first tree is known.
    """
    if not insecure_loopback:
        raise click.UsageError(
            "authentication is not available yet; --insecure-loopback serves without it, "
            "to this machine only"
        )
    settings = settings_of(options)
    start_logging(log_format)
    with stop_signals() as wait_for_stop:
        serve(settings, _ground(settings), wait_for_stop)


def _ground(settings: ServeSettings) -> Ground:
    if settings.cluster is None:
        return FolderGround(settings.folder, settings.nodes)
    from generator.replica import Replica  # noqa: PLC0415 - who serves a folder loads no client

    return Replica.of(settings.cluster, os.environ)
