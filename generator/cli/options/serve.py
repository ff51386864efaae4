"""The options of `toponaut serve`."""

from __future__ import annotations

from typing import Final

import click

from generator.cli.options.decorators import combine_options
from generator.cli.options.kube import kube_options
from generator.cli.options.value_types import InputFile, InputFolder, NamespaceName, OutputFile
from generator.cli.options.values import parse_duration

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
