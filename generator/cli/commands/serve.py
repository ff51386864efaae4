"""`toponaut serve`: keep HyperNodes true and answer placement queries."""

from __future__ import annotations

import os
from typing import Any

import click

from generator.cli.serve_options import (
    endpoint_options,
    parse_endpoint_settings,
    serve_options,
    parse_server_settings,
)
from generator.server.endpoints import Endpoints, build_metrics
from generator.server.server import FolderBackend, Backend, serve
from generator.server.settings import EndpointSettings, ServerSettings
from runtime.logs import start_logging
from runtime.process_tuning import tune_for_server
from runtime.stop import stop_signals


@click.command(name="serve")
@serve_options
@endpoint_options
@click.option("--log-format", type=click.Choice(["text", "json"]), help="Default: by terminal.")
def command(
    *,
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
    settings = parse_server_settings(options)
    asked = parse_endpoint_settings(options, is_cluster=settings.cluster is not None)
    start_logging(log_format)
    tune_for_server()
    with stop_signals() as wait_for_stop:
        ground, ports = _open_backend(settings, asked)
        serve(settings, ground, ports, wait_for_stop)


def _open_backend(settings: ServerSettings, asked: EndpointSettings) -> tuple[Backend, Endpoints]:
    metrics = build_metrics()
    if settings.cluster is None:
        ground = FolderBackend(settings.folder, settings.nodes)
        return ground, Endpoints(asked, metrics, period_s=settings.period_s)
    from generator.server.replica import Replica  # noqa: PLC0415 - no client
    from generator.server.replica_endpoints import build_replica_endpoints  # noqa: PLC0415 - who serves a folder loads

    replica = Replica.from_settings(settings.cluster, os.environ, on_answer=metrics.on_request)
    member = build_replica_endpoints(replica, metrics, audience=asked.audience)
    return replica, Endpoints(asked, metrics, period_s=settings.period_s, replica=member)
