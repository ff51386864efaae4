"""`toponaut serve`: keep HyperNodes correct and answer placement queries."""

from __future__ import annotations

import os
from typing import Any

from generator.cli.serve_values import parse_endpoint_settings, parse_server_settings
from generator.server.endpoints import Endpoints, build_metrics
from generator.server.server import Backend, FolderBackend, serve
from generator.server.settings import EndpointSettings, ServerSettings
from runtime.listener import raise_descriptor_limit
from runtime.logs import start_logging
from runtime.memory import tune_for_server
from runtime.signals import stop_signals


def run(
    *,
    log_format: str | None,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Run `toponaut serve` with the values of its options."""
    settings = parse_server_settings(options)
    ports = parse_endpoint_settings(options, is_cluster=settings.cluster is not None)
    start_logging(log_format)
    tune_for_server()
    raise_descriptor_limit()
    with stop_signals() as wait_for_stop:
        backend, endpoints = _open_backend(settings, ports)
        serve(settings, backend, endpoints, wait_for_stop)


def _open_backend(settings: ServerSettings, ports: EndpointSettings) -> tuple[Backend, Endpoints]:
    metrics = build_metrics()
    if settings.cluster is None:
        backend = FolderBackend(settings.folder, settings.nodes)
        return backend, Endpoints(ports, metrics, period_s=settings.period_s)
    from generator.server.replica import Replica  # noqa: PLC0415 - loads a client
    from generator.server.replica_endpoints import build_replica_endpoints  # noqa: PLC0415 - only for a cluster

    replica = Replica.from_settings(settings.cluster, os.environ, on_answer=metrics.on_request)
    member = build_replica_endpoints(replica, metrics, audience=ports.audience)
    return replica, Endpoints(ports, metrics, period_s=settings.period_s, replica=member)
