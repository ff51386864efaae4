"""The options of `toponaut serve`, and what they say together."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from generator.cli.options import parse_duration, combine_options
from generator.kube.access import ClusterAccess
from generator.objects.plane_config import PlaneChoice, read_planes
from generator.rpc.auth.tls import TlsFiles
from generator.server.settings import (
    ReplicaSettings,
    EndpointSettings,
    ServerSettings,
    SwitchPollSettings,
)
from topology.planes.policy import COMPUTE

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_FOLDER: Final = click.Path(exists=True, file_okay=False, path_type=Path)


serve_options: Final = combine_options(
    click.option(
        "--store",
        type=_FOLDER,
        help="Folder whose neighborreports/ is read and whose hypernodes/ is written.",
    ),
    click.option("--kube", is_flag=True, help="Serve a cluster in place of a folder."),
    click.option("--kubeconfig", help="How to reach it, in place of kubectl's files or the pod."),
    click.option("--context", help="Of the kubeconfig, in place of the current one."),
    click.option("--namespace", help="Of the Lease by which replicas agree who writes."),
    click.option("--identity", help="Of this replica; with a part that each start draws anew."),
    click.option("--nodes", type=_FILE, help="The cluster's nodes; read again when it changes."),
    click.option(
        "--period",
        type=parse_duration,
        metavar="DURATION",
        default="60s",
        show_default=True,
        help="From one round to the next; agents' reports are stale after three.",
    ),
    click.option(
        "--switches",
        type=_FILE,
        help="Switches to walk by SNMP, listed as for `toponaut switches --config`; read again "
        "when it changes.",
    ),
    click.option(
        "--switch-period",
        type=parse_duration,
        metavar="DURATION",
        default="60s",
        show_default=True,
        help="From one walk of a switch to the next; its report is stale after three.",
    ),
    click.option(
        "--switch-deadline",
        type=parse_duration,
        metavar="DURATION",
        default="20s",
        show_default=True,
        help="For one switch.",
    ),
    click.option(
        "--planes", type=_FILE, help="Which ports are whose network's, as YAML; read once."
    ),
    click.option(
        "--plane",
        metavar="NAME",
        help="Network that the HyperNodes are made of.  [default: what the Fabric object says, "
        "else compute]",
    ),
    click.option(
        "--dry-run",
        is_flag=True,
        help="Write no HyperNodes, and log what would be written instead.",
    ),
    click.option(
        "--listen",
        default="127.0.0.1:50051",
        show_default=True,
        help="HOST:PORT for calls, loopback without --tls-cert; 0: any port.",
    ),
    click.option(
        "--ready-file",
        type=click.Path(dir_okay=False, path_type=Path),
        help="File that gets the bound address once it is bound, and is gone afterwards.",
    ),
)


def parse_server_settings(options: dict[str, Any]) -> ServerSettings:
    """Take the options of a server out of a command's parameters.

    Raises:
        click.UsageError: not exactly one store is named, or options do not go together.
        ConfigError: the file of networks is wrong.
    """
    cluster, folder, nodes = (
        _parse_replica_settings(options),
        options.pop("store"),
        options.pop("nodes"),
    )
    if (cluster is None) == (folder is None):
        raise click.UsageError("name what is served: either --store or --kube")
    if cluster is not None and nodes is not None:
        raise click.UsageError("--kube brings its nodes: no --nodes")
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
    )


def _parse_replica_settings(options: dict[str, Any]) -> ReplicaSettings | None:
    access = ClusterAccess(options.pop("kubeconfig"), options.pop("context"))
    seat = ReplicaSettings(access, options.pop("namespace"), options.pop("identity"))
    if options.pop("kube"):
        return seat
    if any(access) or seat.namespace or seat.identity:
        raise click.UsageError("--kubeconfig, --context, --namespace and --identity go with --kube")
    return None


def _parse_plane_choice(options: dict[str, Any]) -> PlaneChoice | None:
    file, name = options.pop("planes"), options.pop("plane")
    if file is None and name is None:
        return None
    return PlaneChoice(read_planes(file) if file else (), name or COMPUTE)


def _parse_switch_settings(options: dict[str, Any]) -> SwitchPollSettings | None:
    config = options.pop("switches")
    walked = (options.pop("switch_period"), options.pop("switch_deadline"))
    return SwitchPollSettings(config, *walked) if config else None


_AUTH_HINT: Final = (
    "say how callers are known: --tls-cert and --tls-key with --client-ca, --token-audience or "
    "both; or --insecure-loopback, which serves this machine without asking"
)


endpoint_options: Final = combine_options(
    click.option(
        "--metrics-listen", metavar="HOST:PORT", help="Serve /metrics for Prometheus there."
    ),
    click.option(
        "--health-listen",
        metavar="HOST:PORT",
        help="Serve /livez, /readyz and /startupz for a kubelet there.",
    ),
    click.option("--tls-cert", type=_FILE, help="Certificate to serve with; read again on change."),
    click.option("--tls-key", type=_FILE, help="Its key."),
    click.option("--client-ca", type=_FILE, help="Ask callers for a certificate of this."),
    click.option(
        "--token-audience",
        metavar="NAME",
        help="Ask callers for a token of the cluster that is made for NAME; goes with --kube.",
    ),
    click.option(
        "--insecure-loopback", is_flag=True, help="Serve without authentication, on loopback only."
    ),
)


def parse_endpoint_settings(options: dict[str, Any], *, is_cluster: bool) -> EndpointSettings:
    """Take the options of ports out of a command's parameters.

    Args:
        options: of click.
        is_cluster: whether a cluster is served, whose API server can judge tokens.

    Raises:
        click.UsageError: they leave open who may call, or do not go together.
    """
    cert, key = options.pop("tls_cert"), options.pop("tls_key")
    client_ca, audience = options.pop("client_ca"), options.pop("token_audience")
    is_insecure = options.pop("insecure_loopback")
    if (cert is None) != (key is None):
        raise click.UsageError("--tls-cert and --tls-key go together")
    if is_insecure and (cert or client_ca or audience):
        raise click.UsageError("--insecure-loopback goes with no other proof")
    if not is_insecure and not (cert and (client_ca or audience)):
        raise click.UsageError(_AUTH_HINT)
    if audience and not is_cluster:
        raise click.UsageError("--token-audience goes with --kube: its API server judges tokens")
    tls = None if is_insecure else TlsFiles(cert, key, client_ca)
    return EndpointSettings(
        options.pop("metrics_listen"), options.pop("health_listen"), tls, audience
    )
