"""The options that name the sources of a fabric, shared by all commands that read one."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from generator.cli.options import parse_access, combine_options
from generator.ingest.sources import Sources

_FOLDER: Final = click.Path(exists=True, file_okay=False, path_type=Path)


_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


source_options: Final = combine_options(
    click.option("--reports", type=_FOLDER, help="Folder of agents' NeighborReports."),
    click.option(
        "--ibnetdiscover",
        type=_FILE,
        multiple=True,
        help="Output of ibnetdiscover, ibdiagnet or opensm; repeatable.",
    ),
    click.option(
        "--lldpcli",
        type=_FOLDER,
        help="Folder of DEVICE.neighbors.json0, what `lldpcli -f json0 show neighbors "
        "details` printed there, and DEVICE.chassis.json0.",
    ),
    click.option(
        "--snmpwalk",
        type=_FOLDER,
        help="Folder of DEVICE.snmpwalk.txt, what `snmpbulkwalk -On` printed of each switch.",
    ),
    click.option("--hypernodes", type=_FOLDER, help="Folder of HyperNode objects."),
    click.option(
        "--nodes",
        type=_FILE,
        help="The cluster's nodes: `kubectl get nodes -o json`, or our inventory.",
    ),
    click.option("--planes", type=_FILE, help="Which ports are whose network's, as YAML."),
    click.option("--plane", help="Network to look at.  [default: compute]", metavar="NAME"),
    click.option("--kube", is_flag=True, help="Read the cluster's reports and nodes."),
    click.option("--kubeconfig", help="How to reach it, in place of kubectl's files."),
    click.option("--context", help="Of the kubeconfig, in place of the current one."),
    click.argument("files", nargs=-1, type=_FILE),
)
"""The options that all reading commands share."""


def parse_sources(options: dict[str, Any]) -> Sources:
    """Take the shared options out of a command's parameters.

    Raises:
        click.UsageError: sources that exclude each other.
    """
    sources = Sources(
        cluster=parse_access(options),
        reports=options.pop("reports"),
        ibnetdiscover=(*options.pop("ibnetdiscover"), *options.pop("files")),
        lldpcli=options.pop("lldpcli"),
        snmpwalk=options.pop("snmpwalk"),
        hypernodes=options.pop("hypernodes"),
        nodes=options.pop("nodes"),
        planes=options.pop("planes"),
        plane=options.pop("plane"),
    )
    if sources.hypernodes and not sources._replace(hypernodes=None).is_empty:
        raise click.UsageError("--hypernodes is a tree already; name no other source beside it")
    if sources.cluster and sources.reports:
        raise click.UsageError("--kube brings its reports: no --reports")
    if sources.hypernodes and (sources.planes or sources.plane):
        raise click.UsageError("--hypernodes is a tree already: no --planes, no --plane")
    return sources
