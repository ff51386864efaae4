"""`toponaut serve`: keep HyperNodes correct and answer placement queries."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from generator.cli import options
from generator.cli.option_types import OutputFile, parse_namespace
from generator.cli.options import ClusterOptions
from generator.kube.access import ClusterAccess
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

    namespace: str | None
    identity: str | None
    nodes: Path | None
    period: float
    switches: Path | None
    switch_period: float
    switch_deadline: float
    planes: Path | None
    plane: str | None
    dry_run: bool
    listen: str
    ready_file: Path | None
    history: Path | None

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

    metrics_listen: str | None
    health_listen: str | None
    web: str | None
    tls_cert: Path | None
    tls_key: Path | None
    client_ca: Path | None
    token_audience: str | None
    insecure_loopback: bool

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


@click.command(name="serve")
@click.option(
    "--store",
    type=options.FOLDER,
    help="Folder to serve: neighborreports/ is read and hypernodes/ is written.",
)
@options.kube("Serve a cluster instead of a folder.")
@options.group(
    "settings",
    _ServeOptions,
    click.option(
        "--namespace",
        type=parse_namespace,
        metavar="NAME",
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
        type=options.FILE,
        help="Nodes of the cluster; the file is read again when it changes.",
    ),
    options.duration(
        "--period",
        "60s",
        help="Time between two rounds. Reports of agents are stale after three periods.",
    ),
    click.option(
        "--switches",
        type=options.FILE,
        help="Switches to walk by SNMP, in the format of `toponaut switches --config`; the file is "
        "read again when it changes.",
    ),
    options.duration(
        "--switch-period",
        "60s",
        help="Time between two walks of a switch. Its report is stale after three periods.",
    ),
    options.duration("--switch-deadline", "20s", help="Time limit for one walk of a switch."),
    click.option(
        "--planes",
        type=options.FILE,
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
@options.group(
    "ports",
    _EndpointOptions,
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
        "--tls-cert",
        type=options.FILE,
        help="Certificate of the server; read again when it changes.",
    ),
    click.option("--tls-key", type=options.FILE, help="Key of the certificate."),
    click.option(
        "--client-ca", type=options.FILE, help="Require client certificates from a CA in this file."
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
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    help="Format of the log.  [default: text on a terminal, else json]",
)
def command(
    cluster: ClusterOptions,
    settings: _ServeOptions,
    ports: _EndpointOptions,
    *,
    store: Path | None,
    log_format: str | None,
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
    from runtime.memory import tune_for_server
    from runtime.signals import stop_signals

    parsed = settings.parse(store, cluster.find_cluster())
    endpoint_settings = ports.parse(is_cluster=parsed.cluster is not None)
    start_logging(log_format)
    tune_for_server()
    raise_descriptor_limit()
    with stop_signals() as wait_for_stop:
        backend, endpoints = _open_backend(parsed, endpoint_settings)
        serve(parsed, backend, endpoints, wait_for_stop)


def _open_backend(settings: ServerSettings, ports: EndpointSettings) -> tuple[Backend, Endpoints]:
    from generator.server.endpoints import Endpoints, build_metrics
    from generator.server.server import FolderBackend

    metrics = build_metrics()
    if settings.cluster is None:
        backend = FolderBackend(settings.folder, settings.nodes)
        return backend, Endpoints(ports, metrics, period_s=settings.period_s)
    from generator.server.replica import Replica
    from generator.server.replica_endpoints import build_replica_endpoints

    replica = Replica.from_settings(settings.cluster, os.environ, on_answer=metrics.on_request)
    member = build_replica_endpoints(replica, metrics, audience=ports.audience)
    return replica, Endpoints(ports, metrics, period_s=settings.period_s, replica=member)
