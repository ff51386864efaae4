"""`toponaut serve`: keep HyperNodes correct and answer placement queries."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from generator.cli import options
from generator.cli.option_types import OutputFile
from generator.cli.options import ClusterOptions
from generator.kube.access import ClusterAccess
from runtime.options import Choice
from topology.planes.policy import COMPUTE

if TYPE_CHECKING:
    from generator.objects.plane_config import PlaneChoice
    from generator.server.endpoints import Endpoints
    from generator.server.server import Backend
    from generator.server.settings import EndpointSettings, ServerSettings, SwitchPollSettings

_AUTH_HINT: Final = (
    "choose how callers authenticate: --tls-cert and --tls-key with --client-ca, --token-audience "
    "or both; or --insecure-loopback, which serves this machine without authentication"
)


class _ServeOptions(NamedTuple):
    """The values of the options about what is served, and where."""

    namespace: str | None = options.namespace(
        "Namespace of the agents, and of the Lease that elects the replica that writes.  "
        "[default: the namespace of the pod]",
    )
    identity: str | None = options.option(
        "Name of this replica; each start adds a random suffix.  [default: the name of the pod or "
        "host]"
    )
    nodes: Path | None = options.option(
        "Nodes of the cluster; the file is read again when it changes."
    )
    period: float = options.duration(
        "Time between two rounds. Reports of agents are stale after three periods.", default="60s"
    )
    switches: Path | None = options.option(
        "Switches to walk by SNMP, in the format of `toponaut switches --config`; the file is read "
        "again when it changes."
    )
    switch_period: float = options.duration(
        "Time between two walks of a switch. Its report is stale after three periods.",
        default="60s",
    )
    switch_deadline: float = options.duration("Time limit for one walk of a switch.", default="20s")
    planes: Path | None = options.option(
        "YAML file with the rules that assign ports to networks; read once, at startup."
    )
    plane: str | None = options.option(
        "Network that the HyperNodes describe.  [default: the one in the Fabric object, else "
        "compute]",
        metavar="NAME",
    )
    dry_run: bool = options.option("Write no HyperNodes; log the changes instead.")
    listen: str = options.option(
        "HOST:PORT for gRPC calls; loopback only without --tls-cert. Port 0: any free port.",
        default="127.0.0.1:50051",
    )
    ready_file: Path | None = options.option(
        "File to which the bound address is written once the server listens; removed at exit.",
        type=OutputFile(),
    )
    history: Path | None = options.option(
        "File that keeps past trees and findings.  [default: history.sqlite in --store; none with "
        "--kube]",
        type=OutputFile(),
    )

    def parse(self, folder: Path | None, access: ClusterAccess | None) -> ServerSettings:
        """Return the settings of a server.

        Raises:
            click.UsageError: not exactly one store is given, or options do not fit together.
            ConfigError: the file of --planes is wrong.
        """
        from generator.server.settings import ReplicaSettings, ServerSettings

        if access is None and (self.namespace or self.identity):
            raise click.UsageError("--namespace and --identity need --kube")
        if (access is None) == (folder is None):
            raise click.UsageError("give the store to serve: either --store or --kube")
        if access is not None and self.nodes is not None:
            raise click.UsageError("--kube reads the nodes of the cluster: give no --nodes")
        return ServerSettings(
            folder=folder or Path(),
            cluster=access and ReplicaSettings(access, self.namespace, self.identity),
            nodes=self.nodes,
            period_s=self.period,
            planes=self._read_planes(),
            switches=self._poll_switches(),
            is_dry=self.dry_run,
            listen=self.listen,
            ready_file=self.ready_file,
            history=self.history,
        )

    def _poll_switches(self) -> SwitchPollSettings | None:
        from generator.server.settings import SwitchPollSettings

        if self.switches is None:
            return None
        return SwitchPollSettings(self.switches, self.switch_period, self.switch_deadline)

    def _read_planes(self) -> PlaneChoice | None:
        from generator.ingest.sources import read_plane_file
        from generator.objects.plane_config import PlaneChoice

        if self.planes is None and self.plane is None:
            return None
        return PlaneChoice(
            read_plane_file(self.planes) if self.planes else (), self.plane or COMPUTE
        )


class _EndpointOptions(NamedTuple):
    """The values of the options about the ports, and who may call."""

    metrics_listen: str | None = options.option(
        "Address that serves /metrics for Prometheus.", metavar="HOST:PORT"
    )
    health_listen: str | None = options.option(
        "Address that serves /livez, /readyz and /startupz for the kubelet.", metavar="HOST:PORT"
    )
    web: str | None = options.option(
        "Address that serves the page for browsers, with the certificates and tokens of gRPC.",
        metavar="HOST:PORT",
    )
    tls_cert: Path | None = options.option("Certificate of the server; read again when it changes.")
    tls_key: Path | None = options.option("Key of the certificate.")
    client_ca: Path | None = options.option("Require client certificates from a CA in this file.")
    token_audience: str | None = options.option(
        "Require a token that the cluster issued for audience NAME; needs --kube.", metavar="NAME"
    )
    insecure_loopback: bool = options.option("Serve without authentication, on loopback only.")

    def parse(self, *, is_cluster: bool) -> EndpointSettings:
        """Return the settings of the ports.

        Args:
            is_cluster: a cluster is served, so its API server can review tokens.

        Raises:
            click.UsageError: no authentication is chosen, or options do not fit together.
        """
        from generator.rpc.auth.tls import TlsFiles
        from generator.server.settings import EndpointSettings

        checks = self.client_ca or self.token_audience
        if (self.tls_cert is None) != (self.tls_key is None):
            raise click.UsageError("give --tls-cert and --tls-key together")
        if self.insecure_loopback and (self.tls_cert or checks):
            raise click.UsageError(
                "--insecure-loopback excludes --tls-cert, --client-ca and --token-audience"
            )
        if self.insecure_loopback:
            tls = None
        elif self.tls_cert and self.tls_key and checks:
            tls = TlsFiles(self.tls_cert, self.tls_key, self.client_ca)
        else:
            raise click.UsageError(_AUTH_HINT)
        if self.token_audience and not is_cluster:
            raise click.UsageError(
                "--token-audience needs --kube: the API server reviews the tokens"
            )
        return EndpointSettings(
            metrics=self.metrics_listen,
            health=self.health_listen,
            web=self.web,
            tls=tls,
            audience=self.token_audience,
        )


@options.command(
    "serve",
    examples=(
        "toponaut serve --store store --insecure-loopback --web 127.0.0.1:9811",
        "toponaut serve --kube --tls-cert tls.crt --tls-key tls.key --token-audience toponaut",
    ),
)
def command(
    *,
    store: Path | None = options.option(
        "Folder to serve: neighborreports/ is read and hypernodes/ is written.",
        type=options.FOLDER,
    ),
    cluster: ClusterOptions = options.kube("Serve a cluster instead of a folder."),
    settings: _ServeOptions,
    ports: _EndpointOptions,
    log_format: str | None = options.option(
        "Format of the log.  [default: text on a terminal, else json]",
        type=Choice(["text", "json"]),
    ),
) -> None:
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
    from generator.server.server import serve
    from runtime.listener import raise_descriptor_limit
    from runtime.logs import start_logging
    from runtime.process_settings import tune_for_server
    from runtime.program import stop_signals

    parsed = settings.parse(store, cluster.find_cluster())
    endpoint_settings = ports.parse(is_cluster=parsed.cluster is not None)
    start_logging(log_format)
    tune_for_server()
    raise_descriptor_limit()
    is_for_people = sys.stderr.isatty() and log_format != "json"
    with stop_signals() as wait_for_stop:
        backend, endpoints = _open_backend(parsed, endpoint_settings)
        serve(
            *(parsed, backend, endpoints, wait_for_stop),
            on_ready=_print_addresses if is_for_people else lambda _: None,
        )


def _print_addresses(addresses: Mapping[str, str]) -> None:
    """Print the address of each port on a line of its own: a terminal makes links of URLs."""
    for name, address in addresses.items():
        click.echo(f"{name + ':':8} {address}", err=True)


def _open_backend(settings: ServerSettings, ports: EndpointSettings) -> tuple[Backend, Endpoints]:
    from generator.server.endpoints import Endpoints, build_metrics
    from generator.server.server import FolderBackend

    metrics = build_metrics()
    if settings.cluster is None:
        backend = FolderBackend(settings.folder, settings.nodes)
        return backend, Endpoints(ports, metrics, period_s=settings.period_s)
    from generator.server.replica import Replica

    replica = Replica.from_settings(settings.cluster, os.environ, on_answer=metrics.on_request)
    return replica, Endpoints(ports, metrics, period_s=settings.period_s, replica=replica)
