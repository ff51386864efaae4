"""The options of `toponaut serve`, and the server settings that are built from them.

Checks that the options fit together; `generator.server.settings` holds the result.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from generator.cli.kube_options import kube_options, parse_access
from generator.cli.option_types import InputFile, InputFolder, NamespaceName, OutputFile
from generator.cli.options import combine_options, parse_duration
from generator.objects.plane_config import PlaneChoice, read_planes
from generator.rpc.auth.tls import TlsFiles
from generator.server.settings import (
    EndpointSettings,
    ReplicaSettings,
    ServerSettings,
    SwitchPollSettings,
)
from topology.planes.policy import COMPUTE

_FILE: Final = InputFile()
_FOLDER: Final = InputFolder()

serve_options: Final = combine_options(
    click.option(
        "--store",
        type=_FOLDER,
        help="Folder to serve: neighborreports/ is read and hypernodes/ is written.",
    ),
    kube_options("Serve a cluster instead of a folder."),
    click.option(
        "--namespace",
        type=NamespaceName(),
        help="Namespace of the agents, and of the Lease that elects the replica that writes.  "
        "[default: the namespace of the pod]",
    ),
    click.option(
        "--identity",
        help="Name of this replica; each start adds a random suffix.  [default: the name of the "
        "pod or host]",
    ),
    click.option(
        "--nodes",
        type=_FILE,
        help="Nodes of the cluster; the file is read again when it changes.",
    ),
    click.option(
        "--period",
        type=parse_duration,
        metavar="DURATION",
        default="60s",
        show_default=True,
        help="Time between two rounds. Reports of agents are stale after three periods.",
    ),
    click.option(
        "--switches",
        type=_FILE,
        help="Switches to walk by SNMP, in the format of `toponaut switches --config`; the file is "
        "read again when it changes.",
    ),
    click.option(
        "--switch-period",
        type=parse_duration,
        metavar="DURATION",
        default="60s",
        show_default=True,
        help="Time between two walks of a switch. Its report is stale after three periods.",
    ),
    click.option(
        "--switch-deadline",
        type=parse_duration,
        metavar="DURATION",
        default="20s",
        show_default=True,
        help="Time limit for one walk of a switch.",
    ),
    click.option(
        "--planes",
        type=_FILE,
        help="YAML file with the rules that assign ports to networks; read once, at startup.",
    ),
    click.option(
        "--plane",
        metavar="NAME",
        help="Network that the HyperNodes describe.  [default: the one in the Fabric object, else "
        "compute]",
    ),
    click.option(
        "--dry-run",
        is_flag=True,
        help="Write no HyperNodes; log the changes instead.",
    ),
    click.option(
        "--listen",
        default="127.0.0.1:50051",
        show_default=True,
        help="HOST:PORT for gRPC calls; loopback only without --tls-cert. Port 0: any free port.",
    ),
    click.option(
        "--ready-file",
        type=OutputFile(),
        help="File to which the bound address is written once the server listens; removed at exit.",
    ),
    click.option(
        "--history",
        type=OutputFile(),
        help="File that keeps past trees and findings.  [default: history.sqlite in --store; none "
        "with --kube]",
    ),
)


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
    return PlaneChoice(read_planes(file) if file else (), name or COMPUTE)


def _parse_switch_settings(options: dict[str, Any]) -> SwitchPollSettings | None:
    config = options.pop("switches")
    period_s, deadline_s = options.pop("switch_period"), options.pop("switch_deadline")
    return SwitchPollSettings(config, period_s, deadline_s) if config else None


_AUTH_HINT: Final = (
    "choose how callers authenticate: --tls-cert and --tls-key with --client-ca, --token-audience "
    "or both; or --insecure-loopback, which serves this machine without authentication"
)

endpoint_options: Final = combine_options(
    click.option(
        "--metrics-listen", metavar="HOST:PORT", help="Address that serves /metrics for Prometheus."
    ),
    click.option(
        "--health-listen",
        metavar="HOST:PORT",
        help="Address that serves /livez, /readyz and /startupz for the kubelet.",
    ),
    click.option(
        "--web",
        metavar="HOST:PORT",
        help="Address that serves the page for browsers, with the certificates and tokens of gRPC.",
    ),
    click.option(
        "--tls-cert", type=_FILE, help="Certificate of the server; read again when it changes."
    ),
    click.option("--tls-key", type=_FILE, help="Key of the certificate."),
    click.option(
        "--client-ca", type=_FILE, help="Require client certificates from a CA in this file."
    ),
    click.option(
        "--token-audience",
        metavar="NAME",
        help="Require a token that the cluster issued for audience NAME; needs --kube.",
    ),
    click.option(
        "--insecure-loopback", is_flag=True, help="Serve without authentication, on loopback only."
    ),
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
