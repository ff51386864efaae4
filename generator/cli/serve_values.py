"""The settings of `toponaut serve`, from the values of its options."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from generator.cli.connection_values import parse_access
from generator.ingest.sources import read_plane_file
from generator.objects.plane_config import PlaneChoice
from generator.rpc.auth.tls import TlsFiles
from generator.server.settings import (
    EndpointSettings,
    ReplicaSettings,
    ServerSettings,
    SwitchPollSettings,
)
from topology.planes.policy import COMPUTE


def parse_server_settings(options: dict[str, Any]) -> ServerSettings:
    """Remove the options of a server from a command's parameters, and return its settings.

    Raises:
        click.UsageError: not exactly one store is given, or options do not fit together.
        ConfigError: the file of --planes is wrong.
    """
    cluster, folder, nodes = (
        _parse_replica_settings(options),
        options.pop("store"),
        options.pop("nodes"),
    )
    if (cluster is None) == (folder is None):
        raise click.UsageError("give the store to serve: either --store or --kube")
    if cluster is not None and nodes is not None:
        raise click.UsageError("--kube reads the nodes of the cluster: give no --nodes")
    return ServerSettings(
        folder=folder or Path(),
        cluster=cluster,
        nodes=nodes,
        period_s=options.pop("period"),
        planes=_parse_plane_choice(options),
        switches=_parse_switch_settings(options),
        is_dry=options.pop("dry_run"),
        listen=options.pop("listen"),
        ready_file=options.pop("ready_file"),
        history=options.pop("history"),
    )


def _parse_replica_settings(options: dict[str, Any]) -> ReplicaSettings | None:
    access = parse_access(options)
    namespace, identity = options.pop("namespace"), options.pop("identity")
    if access is not None:
        return ReplicaSettings(access, namespace, identity)
    if namespace or identity:
        raise click.UsageError("--namespace and --identity need --kube")
    return None


def _parse_plane_choice(options: dict[str, Any]) -> PlaneChoice | None:
    file, name = options.pop("planes"), options.pop("plane")
    if file is None and name is None:
        return None
    return PlaneChoice(read_plane_file(file) if file else (), name or COMPUTE)


def _parse_switch_settings(options: dict[str, Any]) -> SwitchPollSettings | None:
    config = options.pop("switches")
    period_s, deadline_s = options.pop("switch_period"), options.pop("switch_deadline")
    return SwitchPollSettings(config, period_s, deadline_s) if config else None


_AUTH_HINT: Final = (
    "choose how callers authenticate: --tls-cert and --tls-key with --client-ca, --token-audience "
    "or both; or --insecure-loopback, which serves this machine without authentication"
)


def parse_endpoint_settings(options: dict[str, Any], *, is_cluster: bool) -> EndpointSettings:
    """Remove the options of the ports from a command's parameters, and return their settings.

    Args:
        options: the command's parameters.
        is_cluster: a cluster is served, so its API server can review tokens.

    Raises:
        click.UsageError: no authentication is chosen, or options do not fit together.
    """
    cert, key = options.pop("tls_cert"), options.pop("tls_key")
    client_ca, audience = options.pop("client_ca"), options.pop("token_audience")
    is_insecure = options.pop("insecure_loopback")
    if (cert is None) != (key is None):
        raise click.UsageError("give --tls-cert and --tls-key together")
    if is_insecure and (cert or client_ca or audience):
        raise click.UsageError(
            "--insecure-loopback excludes --tls-cert, --client-ca and --token-audience"
        )
    if not is_insecure and not (cert and (client_ca or audience)):
        raise click.UsageError(_AUTH_HINT)
    if audience and not is_cluster:
        raise click.UsageError("--token-audience needs --kube: the API server reviews the tokens")
    tls = None if is_insecure else TlsFiles(cert, key, client_ca)
    return EndpointSettings(
        metrics=options.pop("metrics_listen"),
        health=options.pop("health_listen"),
        web=options.pop("web"),
        tls=tls,
        audience=audience,
    )
